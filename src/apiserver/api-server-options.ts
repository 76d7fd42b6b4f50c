import type { WebhookFunction } from './objects/webhook-call.ts';
import type { ApiServerMetrics } from '../metrics/api-server-metrics.ts';
import type { OptionNames } from '../util/check-options.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { Certificate } from '../util/x509.ts';
import type { ApiUser } from './auth/access.ts';
import type { AuditOptions } from './audit/audit.ts';
import type { Kubelets, WatchLimits } from './operations/call.ts';
import type { ResourceDefinition } from './objects/resource-definition.ts';
import type { KubernetesVersion } from './objects/kubernetes-version.ts';

/** Options of `ApiServer`. */
export interface ApiServerOptions extends Partial<WatchLimits> {
  /** @default the system clock */
  readonly clock?: Clock;
  /**
   * Numbers in [0, 1), for generated names.
   * @default Math.random
   */
  readonly random?: () => number;
  /**
   * Source of uids.
   * @default random UUIDs
   */
  readonly uid?: () => string;
  /** @default no logs */
  readonly log?: Logger;
  /**
   * Whether requests through `handler` require authentication. Network requests always do.
   * @default false
   */
  readonly authenticate?: boolean;
  /**
   * Maximum number of changes of each resource that a watch can resume from.
   * @default 10_000
   */
  readonly historySize?: number;
  /**
   * Approximate memory for the changes of all resources, in bytes. Beyond it, old changes are dropped:
   * watches cannot resume from them, and lists and watches of slow clients that need them end.
   * @default 64 MiB
   */
  readonly historyBytes?: number;
  /**
   * Folder for the objects and their history, created if it does not exist. A new server with the same folder
   * continues with the objects, the resourceVersions and the watches, also after a crash. `close` releases it.
   * @default none: the objects are in memory only
   */
  readonly dataDir?: string | undefined;
  /**
   * Version of Kubernetes that `/version` shows. Nothing else depends on it.
   * @default '1.37'
   */
  readonly kubernetesVersion?: KubernetesVersion;
  /**
   * Served kinds in addition to those of CRDs.
   * @default the built-in kinds
   */
  readonly kinds?: readonly ResourceDefinition[];
  /**
   * Returns the kubelet of a node, which serves the logs of its Pods and connections to them:
   * `(node) => cluster.kubelet(node)`.
   * @default no kubelets; `kubectl logs` and `kubectl exec` get an error
   */
  readonly kubelets?: Kubelets;
  /**
   * Users in addition to the administrator, with their permissions. Roles and bindings grant further ones.
   * Other requests get 403.
   * @default none
   */
  readonly users?: readonly ApiUser[];
  /**
   * Functions that the server calls instead of webhooks, by the URL of the webhook. The URL of a Service is
   * `https://NAME.NAMESPACE.svc/PATH`.
   * @default none; webhooks are called over HTTPS
   */
  readonly webhooks?: Readonly<Record<string, WebhookFunction>>;
  /**
   * Policy of the audit events of requests, and their receiver.
   * @default no events
   */
  readonly audit?: AuditOptions | undefined;
  /**
   * Records metrics, which `/metrics` shows: `apiServerMetrics(registry)` of `crd-controller/metrics`.
   * @default none; `/metrics` does not exist
   */
  readonly metrics?: ApiServerMetrics | undefined;
  /**
   * Whether new Pods need an existing ServiceAccount, and get its token volume and image pull secrets, as by the
   * admission plugin ServiceAccount of kube-apiserver. Enable it only if cluster controllers create the
   * ServiceAccounts of namespaces.
   * @default false, as in envtest
   */
  readonly serviceAccounts?: boolean;
  /**
   * Whether new PersistentVolumeClaims and PersistentVolumes get the finalizer that keeps them while they are in use,
   * as by the admission plugin StorageObjectInUseProtection of kube-apiserver. Enable it
   * only if cluster controllers remove the finalizers; otherwise deleted objects remain, as with envtest.
   * @default false
   */
  readonly storageProtection?: boolean;
  /**
   * The administrator's bearer token.
   * @default a random token
   */
  readonly token?: string;
  /**
   * The authority that signs the certificates of listeners, from `createServerAuthority`. Clients that
   * trust it trust every server with the same authority.
   * @default a new authority with its key in memory
   */
  readonly authority?: Certificate;
}

/** Options of `ApiServer.listen`. */
export interface ListenOptions {
  /**
   * Port; 0 selects a free port.
   * @default 0
   */
  readonly port?: number;
  /**
   * Address to listen on; the certificate is valid for it and for localhost.
   * @default '127.0.0.1'
   */
  readonly host?: string;
  /**
   * Certificate chain and key of the listener, in PEM.
   * @default a certificate of the server's authority
   */
  readonly certificate?: Certificate;
  /**
   * Certificates in PEM of authorities whose client certificates are accepted, in addition to the server's own. The
   * common name is the user, the organizations are the groups.
   * @default none
   */
  readonly clientAuthoritiesPem?: string;
}

/** An open network listener of the server. */
export interface Listening {
  /** `https://127.0.0.1:36443` */
  readonly url: string;
  readonly port: number;
  /** CA certificate that clients must trust; with a given certificate, that certificate. */
  readonly caPem: string;
  /** Bearer token for clients. */
  readonly token: string;
  /**
   * Returns a kubeconfig document for this server.
   *
   * @param client certificate of the administrator, in addition to the token
   */
  kubeconfig(client?: Certificate): object;
  /** Closes watches and connections and releases the port. Objects stay in the store. */
  close(): Promise<void>;
}

export const SERVER_OPTIONS: OptionNames<ApiServerOptions> = {
  clock: true,
  random: true,
  uid: true,
  log: true,
  authenticate: true,
  historySize: true,
  historyBytes: true,
  dataDir: true,
  kubernetesVersion: true,
  kinds: true,
  kubelets: true,
  users: true,
  webhooks: true,
  audit: true,
  metrics: true,
  serviceAccounts: true,
  storageProtection: true,
  token: true,
  authority: true,
  bookmarkIntervalMs: true,
  watchTimeoutMs: true,
  watchBufferLimit: true,
};
