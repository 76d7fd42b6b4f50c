/**
 * The test kit: a Kubernetes API server in this process, cluster controllers, and a clock with virtual time.
 * An `HttpClient` with the server's `handler` opens no socket.
 *
 * @experimental
 * @module
 */
export type { ApiUser } from './apiserver/auth/access.ts';
export type { WebhookFunction, WebhookRequest } from './apiserver/objects/webhook-call.ts';
export type { PolicyRule } from './api/policy-rule.ts';
export { ApiServer, createServerAuthority } from './apiserver/api-server.ts';
export type { ApiServerOptions, Listening, ListenOptions } from './apiserver/api-server-options.ts';
export { BUILTIN_KINDS } from './apiserver/builtin/kinds.ts';
export type { Kubelets } from './apiserver/operations/call.ts';
export type { ResourceDefinition } from './apiserver/objects/resource-definition.ts';
export type { RequestInfo } from './apiserver/request/request-info.ts';
export { ConnectionReset, Faults } from './apiserver/http/faults.ts';
export type { Failure, FaultOptions, RequestMatcher } from './apiserver/http/faults.ts';
export type { ObservedRole } from './apiserver/auth/observed-rbac.ts';
export type { StoreSnapshot } from './apiserver/storage/store-log.ts';
export type { RequestLog, RequestRecord } from './apiserver/audit/request-log.ts';
export type { ExpressionWarning } from './apiserver/admission/type-check.ts';
export type { PolicyTypeCheck } from './cluster/admission-policy-status.ts';
export { Cluster } from './cluster/cluster.ts';
export type { ClusterOptions } from './cluster/cluster.ts';
export type { ClusterKubeletOptions } from './cluster/cluster-controllers.ts';
export { explore, ViolationError } from './explore/explore.ts';
export type { Exploration, ExploreBudget, ExploreOptions } from './explore/explore.ts';
export type { Fault, Interference, Outage, Upheaval } from './explore/faults.ts';
export type { ChangeRecord, ObservedState } from './explore/history.ts';
export type { StepFault, TransportFault } from './explore/step.ts';
export type { ScenarioAction } from './explore/scenario-objects.ts';
export type { ExploredService } from './explore/transport.ts';
export type { Invariant } from './explore/schedule.ts';
export { checkConversion } from './property/check-conversion.ts';
export type { ConversionCheckOptions } from './property/check-conversion.ts';
export type {
  FastCheck,
  FastCheckArbitrary,
  FastCheckDetails,
  FastCheckParameters,
  FastCheckProperty,
} from './property/fast-check.ts';
export { replay } from './replay/replay.ts';
export type { ReplayOptions, ReplayReport } from './replay/replay.ts';
export { RecordingError } from './replay/read-recording.ts';
export { describeReport } from './replay/report.ts';
export type { SyncDifference } from './replay/replayed-sync.ts';
export type { FieldDifference, WriteDifference } from './replay/comparison.ts';
export type { Certificate, CertificateAuthority, CertificateRequest } from './util/x509.ts';
export { FakeClock, settle } from './util/fake-clock.ts';
export { FakeFetch } from './util/fake-fetch.ts';
export { TestedRole } from './codegen/tested-role.ts';
export type { RecordingServer } from './codegen/tested-role.ts';
export { installWebhooks } from './webhook/install.ts';
export type { InstallWebhooksOptions, WebhookRegistry } from './webhook/install.ts';
