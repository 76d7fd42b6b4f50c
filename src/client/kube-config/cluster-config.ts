/** How to reach a cluster and as whom: plain data, made by `loadClusterConfig` or by hand. */
export interface ClusterConfig {
  /** Where this came from, for messages: a file, or `in-cluster`. */
  readonly source: string;
  /** `https://10.0.0.1:6443`, maybe with a path. */
  readonly server: string;
  /** Absent: the authorities Node trusts. */
  readonly ca?: PemSource;
  /** Name to expect in the server's certificate instead of the host's. */
  readonly tlsServerName?: string;
  /** Accept any certificate of the server. */
  readonly insecureSkipTlsVerify: boolean;
  /** Proxy that tunnels to the server: `http://`, `https://` or `socks5://`. A secret may be in it. */
  readonly proxyUrl?: string;
  readonly credentials: CredentialSource;
  readonly impersonation?: Impersonation;
  /** Where objects without a namespace belong. */
  readonly namespace: string;
  /** Nobody has named that namespace: it is `default` because there must be one. */
  readonly namespaceIsAssumed?: boolean;
}

/** PEM text, or the file that has it (and may change). */
export type PemSource =
  | { readonly kind: 'data'; readonly pem: string }
  | { readonly kind: 'file'; readonly path: string };

/** What proves who we are. */
export type CredentialSource =
  | { readonly kind: 'none' }
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'tokenFile'; readonly path: string }
  | { readonly kind: 'clientCertificate'; readonly certificate: PemSource; readonly key: PemSource }
  | { readonly kind: 'basic'; readonly username: string; readonly password: string }
  | ({ readonly kind: 'exec' } & ExecSource);

/** A program that prints credentials. */
export interface ExecSource {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment of the program. */
  readonly environment: Readonly<Record<string, string>>;
  readonly apiVersion: ExecApiVersion;
  /** What to tell who lacks the program. */
  readonly installHint?: string;
  /** Tell the program of the cluster it is to give credentials for. */
  readonly provideClusterInfo: boolean;
  /** The cluster's own settings for the program, passed on as they are. */
  readonly clusterSettings?: unknown;
}

export type ExecApiVersion =
  'client.authentication.k8s.io/v1' | 'client.authentication.k8s.io/v1beta1';

/** Act as somebody else, as far as the server lets us. */
export interface Impersonation {
  readonly user: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra: ReadonlyMap<string, readonly string[]>;
}

/** Headers of an impersonation; names repeat. */
export function impersonationHeaders(
  impersonation: Impersonation | undefined,
): readonly (readonly [name: string, value: string])[] {
  if (!impersonation) return [];
  const { user, uid, groups, extra } = impersonation;
  return [
    ['impersonate-user', user],
    ...(uid === undefined ? [] : [['impersonate-uid', uid] as const]),
    ...groups.map((group) => ['impersonate-group', group] as const),
    ...[...extra].flatMap(([key, values]) =>
      values.map(
        (value) => [`impersonate-extra-${encodeURIComponent(key).toLowerCase()}`, value] as const,
      ),
    ),
  ];
}
