import { featureGatesOption } from './feature-gates.ts';
import {
  bindAddressOption,
  booleanOption,
  choiceOption,
  durationOption,
  integerOption,
  labelSelectorOption,
  listOption,
  textOption,
} from './option.ts';
import type { Option } from './option.ts';
import { COMMON_OPTIONS, CLUSTER_OPTIONS } from './common-options.ts';

function concurrencyOption(kind: string): Option<number> {
  return integerOption({
    group: 'Controllers',
    help: `Number of ${kind} that are reconciled at the same time`,
    default: 2,
    min: 1,
    max: 1000,
  });
}

/** Flags of `run`. */
export const RUN_OPTIONS = {
  ...COMMON_OPTIONS,
  ...CLUSTER_OPTIONS,
  config: textOption({
    group: 'Process',
    help: 'Path to a ControllerConfiguration file, with a field for each flag. Flags and environment variables have precedence',
    default: '',
    completion: 'file',
  }),
  'feature-gates': featureGatesOption({ group: 'Process' }),
  'dry-run': booleanOption({
    group: 'Process',
    help: 'Send every write as a server-side dry run, and log it. No Lease is acquired',
    default: false,
  }),
  once: booleanOption({
    group: 'Process',
    help: 'Sync every object once and exit: 0 if nothing is left to do, 1 if something failed or, with --dry-run, would be written',
    default: false,
  }),
  controllers: listOption({
    group: 'Controllers',
    help: 'Controllers to run. "*" enables all that are on by default, "name" enables one, "-name" disables one',
    default: '*',
    completion: 'controllers',
  }),
  namespaces: listOption({
    group: 'Controllers',
    help: 'Namespaces to watch; empty means all',
    default: '',
    aliases: ['namespace'],
    environment: ['WATCH_NAMESPACE'],
  }),
  'watch-label-selector': labelSelectorOption({
    group: 'Controllers',
    help: 'Label selector for the objects to reconcile, as in team=a or !team. Owned objects do not need the labels',
    default: '',
  }),
  'concurrent-count-syncs': concurrencyOption('Counts'),
  'concurrent-webapp-syncs': concurrencyOption('WebApps'),
  'concurrent-at-syncs': concurrencyOption('Ats'),
  'concurrent-foo-syncs': concurrencyOption('Foos'),
  'pod-count-events': booleanOption({
    group: 'Controllers',
    help: 'Emit an event with the count on each new Pod, if pod-count is enabled',
    default: true,
  }),
  'resync-period': durationOption({
    group: 'Controllers',
    help: 'Period after which every object is synced again without a change; 0 disables resyncs',
    default: '10h',
  }),
  'leader-elect': booleanOption({
    group: 'Leader election',
    help: 'Run the controllers only while this replica holds the Lease; other replicas are standbys',
    default: false,
  }),
  'leader-elect-lease-duration': durationOption({
    group: 'Leader election',
    help: 'Time that standbys wait before they acquire a Lease that is not renewed',
    default: '15s',
  }),
  'leader-elect-renew-deadline': durationOption({
    group: 'Leader election',
    help: 'Time without a successful renewal after which the leader stops; less than the lease duration',
    default: '10s',
  }),
  'leader-elect-retry-period': durationOption({
    group: 'Leader election',
    help: 'Time between renewals and between attempts to acquire the Lease; 1.2 times this must be less than the renew deadline',
    default: '2s',
  }),
  'leader-elect-release-on-cancel': booleanOption({
    group: 'Leader election',
    help: 'Release the Lease at a clean stop, so that the next leader does not wait until it expires',
    default: true,
  }),
  'leader-elect-resource-lock': choiceOption({
    group: 'Leader election',
    help: 'Kind of the lock object; only leases are supported',
    default: 'leases',
    choices: ['leases'],
    hidden: true,
  }),
  'leader-elect-resource-name': textOption({
    group: 'Leader election',
    help: 'Name of the Lease; the same for all replicas, different for each installation',
    default: 'crd-controller',
  }),
  'leader-elect-resource-namespace': textOption({
    group: 'Leader election',
    help: 'Namespace of the Lease. Default: the namespace of the service account or of the kubeconfig context',
    default: '',
    environment: ['POD_NAMESPACE'],
  }),
  shards: integerOption({
    group: 'Leader election',
    help: 'Number of shards. The replica that holds the Lease of a shard reconciles its objects; more than 1 requires --leader-elect',
    default: 1,
    min: 1,
    max: 100,
  }),
  'kube-api-qps': integerOption({
    group: 'API client',
    help: 'Maximum requests per second to the API server; -1 disables client-side rate limiting',
    default: -1,
    min: -1,
  }),
  'kube-api-burst': integerOption({
    group: 'API client',
    help: 'Burst of requests above --kube-api-qps',
    default: 30,
    min: 1,
  }),
  'kube-api-content-type': choiceOption({
    group: 'API client',
    help: 'Content type of requests and responses; only JSON is supported',
    default: 'application/json',
    choices: ['application/json'],
    hidden: true,
  }),
  'kube-api-request-timeout': durationOption({
    group: 'API client',
    help: 'Timeout of requests other than watches; 0 disables it',
    default: '30s',
  }),
  'graceful-shutdown-timeout': durationOption({
    group: 'Process',
    help: 'Maximum time to stop after SIGTERM or SIGINT; running syncs have three quarters of it to finish',
    default: '30s',
  }),
  'debug-bind-address': bindAddressOption({
    group: 'Endpoints',
    help: 'Address of the debug pages, as in "127.0.0.1:6060". An address that is not loopback uses TLS and requires authorization by the cluster; "0" disables them',
    default: '0',
  }),
  'enable-profiling': booleanOption({
    group: 'Endpoints',
    help: 'Serve CPU and heap profiles at --profiler-address',
    default: false,
  }),
  'profiler-address': bindAddressOption({
    group: 'Endpoints',
    help: 'Address of /debug/pprof/ if --enable-profiling is set. An address that is not loopback uses TLS, requires authorization by the cluster, and serves no heap snapshots',
    default: '127.0.0.1:6060',
  }),
  'health-probe-bind-address': bindAddressOption({
    group: 'Endpoints',
    help: 'Address of /livez, /readyz and /healthz, as in ":8081"; "0" disables them',
    default: '0',
  }),
  'metrics-bind-address': bindAddressOption({
    group: 'Endpoints',
    help: 'Address of /metrics, as in ":8443"; "0" disables it',
    default: '0',
  }),
  'metrics-secure': booleanOption({
    group: 'Endpoints',
    help: 'Serve /metrics over TLS, to clients that the cluster authorizes; false serves plain HTTP to every client',
    default: true,
  }),
  'metrics-cert-path': textOption({
    group: 'Endpoints',
    help: 'Directory of the serving certificate, reloaded when it changes. Default: a self-signed certificate created at start',
    default: '',
    completion: 'folder',
  }),
  'metrics-cert-name': textOption({
    group: 'Endpoints',
    help: 'Name of the certificate file in --metrics-cert-path',
    default: 'tls.crt',
  }),
  'metrics-cert-key': textOption({
    group: 'Endpoints',
    help: 'Name of the private key file in --metrics-cert-path',
    default: 'tls.key',
  }),
  'tls-min-version': choiceOption({
    group: 'Endpoints',
    help: 'Minimum TLS version to serve, as Go spells it',
    default: 'VersionTLS12',
    choices: ['VersionTLS12', 'VersionTLS13'],
  }),
  'tls-cipher-suites': listOption({
    group: 'Endpoints',
    help: 'Cipher suites to serve, as Go spells them. All TLS 1.3 suites stay enabled unless some are named. Default: those of Node.js',
    default: '',
  }),
  'enable-http2': booleanOption({
    group: 'Endpoints',
    help: 'Serve HTTP/2 in addition to HTTP/1.1, on ports with TLS',
    default: false,
  }),
} as const;
