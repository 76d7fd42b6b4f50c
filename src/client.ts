/**
 * Talking to an API server: requests, options, discovery, kinds that are known only at run time, dry run, the write fence,
 * and kubeconfig errors.
 *
 * @public
 * @module
 */
export type {
  DeleteOptions,
  GetOptions,
  JsonPatchOperation,
  ListOptions,
  Patch,
  Selection,
  WatchOptions,
  WatchStream,
  WriteOptions,
} from './client/client.ts';
export type { ClusterConnectionOptions } from './client/cluster-connection.ts';
export { discover, serverVersion } from './client/discovery.ts';
export type { DiscoveredResource, Discovery, ServerVersion } from './client/discovery.ts';
export { dryRunClient } from './client/dry-run.ts';
export type { HttpClientOptions, SharedClientOptions } from './client/http-client.ts';
export type {
  ClusterConfig,
  CredentialSource,
  ExecSource,
  HeaderSource,
  Impersonation,
  OidcSource,
  PemSource,
} from './client/kube-config/cluster-config.ts';
export { KubeConfigError } from './client/kube-config/kube-config-error.ts';
export { fromKubeConfig } from './client/kube-config/kube-config.ts';
export type { ClusterConfigOptions } from './client/kube-config/kube-config.ts';
export { NoMatchError, RestMapper } from './client/rest-mapper.ts';
export type { RestMapperOptions, RestMapping } from './client/rest-mapper.ts';
export type { RetryOnConflictOptions } from './client/retry-on-conflict.ts';
export { isConnectionRefused } from './client/transport/connection-error.ts';
export { ServerReachability } from './client/server-reachability.ts';
export { isWriteFenced, WriteFence } from './client/write-fence.ts';
export type { BackoffPolicy } from './util/backoff.ts';
export type { HttpHandler, HttpRequest, HttpResponse } from './util/http.ts';
