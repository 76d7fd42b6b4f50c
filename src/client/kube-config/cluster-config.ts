/** Address of a cluster and credentials for it, as plain data. `loadClusterConfig` reads it from a kubeconfig. */
export interface ClusterConfig {
  /** Origin of the configuration, for messages: a file, or `in-cluster`. */
  readonly source: string;
  /** `https://10.0.0.1:6443`, optionally with a path. */
  readonly server: string;
  /** Trusted CAs; absent: the CAs that Node trusts. */
  readonly ca?: PemSource;
  /** Expected name in the server's certificate; absent: the host name. */
  readonly tlsServerName?: string;
  /** Disables the verification of the server's certificate. */
  readonly insecureSkipTlsVerify: boolean;
  /** URL of an `http://`, `https://` or `socks5://` proxy; it can contain a password. */
  readonly proxyUrl?: string;
  readonly credentials: CredentialSource;
  readonly impersonation?: Impersonation;
  /** Default namespace. */
  readonly namespace: string;
  /** True if no source names the namespace, so that it is `default`. */
  readonly namespaceIsAssumed?: boolean;
}

/** PEM text, or the path of a PEM file, which can change. */
export type PemSource =
  | { readonly kind: 'data'; readonly pem: string }
  | { readonly kind: 'file'; readonly path: string };

/** Source of the client's credentials. */
export type CredentialSource =
  | { readonly kind: 'none' }
  | HeaderSource
  | {
      readonly kind: 'clientCertificate';
      readonly certificate: PemSource;
      readonly key: PemSource;
      /** Sent beside the certificate. */
      readonly header?: HeaderSource;
    }
  | ({ readonly kind: 'exec' } & ExecSource);

/** Source of the Authorization header. */
export type HeaderSource =
  | { readonly kind: 'token'; readonly token: string }
  | {
      readonly kind: 'tokenFile';
      readonly path: string;
      /** Used until the file can be read. */
      readonly token?: string;
    }
  | { readonly kind: 'basic'; readonly username: string; readonly password: string }
  | ({ readonly kind: 'oidc' } & OidcSource);

/** An OpenID Connect provider: `auth-provider` with the name `oidc`. */
export interface OidcSource {
  /** URL of the provider. */
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret?: string;
  /** Sent until it expires. */
  readonly idToken?: string;
  /** Exchanged for a new `idToken`. */
  readonly refreshToken?: string;
  /** CAs of the provider; absent: the CAs that Node trusts. */
  readonly ca?: PemSource;
  /** Environment with the proxy for the provider. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where new tokens are stored; absent: in memory only. */
  readonly store?: { readonly file: string; readonly user: string };
}

/** An exec credential plugin. */
export interface ExecSource {
  readonly command: string;
  readonly args: readonly string[];
  /** The complete environment of the plugin. */
  readonly environment: Readonly<Record<string, string>>;
  readonly apiVersion: ExecApiVersion;
  /** Hint for error messages if the plugin is not installed. */
  readonly installHint?: string;
  /** Passes information about the cluster to the plugin. */
  readonly provideClusterInfo: boolean;
  /** Settings of the cluster for the plugin, passed unchanged. */
  readonly clusterSettings?: unknown;
}

export type ExecApiVersion =
  'client.authentication.k8s.io/v1' | 'client.authentication.k8s.io/v1beta1';

/** The user that requests impersonate, if the server permits it. */
export interface Impersonation {
  readonly user: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra: ReadonlyMap<string, readonly string[]>;
}

/** Returns the headers of an impersonation; names can repeat. */
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
