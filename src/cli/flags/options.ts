import type { FlagForm } from './arguments.ts';
import {
  bindAddressOption,
  booleanOption,
  choiceOption,
  choicesOption,
  durationOption,
  featureGatesOption,
  hostOption,
  integerOption,
  labelSelectorOption,
  listOption,
  textOption,
  vmoduleOption,
} from './option.ts';
import type { Option, Options } from './option.ts';

/**
 * Flags of several commands. Each flag is defined once: here, in `run-options.ts` or in
 * `command-options.ts`. Help texts and the options table are generated from the definitions.
 */

/** Flags of every command. */
export const COMMON_OPTIONS = {
  help: booleanOption({
    group: 'Other',
    help: 'Print this help and exit',
    default: false,
    aliases: ['h'],
    flagOnly: true,
  }),
  version: booleanOption({
    group: 'Other',
    help: 'Print the version and exit',
    default: false,
    flagOnly: true,
  }),
  v: integerOption({
    group: 'Logging',
    help: 'Log verbosity: 0 start, stop and failures; 2 changes of objects; 4 each sync; 6 requests to the API server',
    default: 0,
    min: 0,
  }),
  vmodule: vmoduleOption({
    group: 'Logging',
    help: 'Verbosity by source file, as in reflector=6,work-*=4 (text format only)',
    default: '',
  }),
  'logging-format': choiceOption({
    group: 'Logging',
    help: 'Log format: "text" (klog) or "json"',
    default: 'text',
    choices: ['text', 'json'],
  }),
  'log-json-split-stream': booleanOption({
    group: 'Logging',
    help: 'With --logging-format=json, write errors to standard error and everything else to standard output',
    default: false,
  }),
  'skip-headers': booleanOption({
    group: 'Logging',
    help: 'Omit time, process ID and source line from log lines',
    default: false,
    hidden: true,
  }),
  'add-dir-header': booleanOption({
    group: 'Logging',
    help: 'Show the folder of the source file in log lines',
    default: false,
    hidden: true,
  }),
} as const;

/** Flags that select the cluster and the user. */
export const CLUSTER_OPTIONS = {
  kubeconfig: textOption({
    group: 'Cluster access',
    help: 'Path to a kubeconfig file. Default: the files in $KUBECONFIG, the service account of the Pod, ~/.kube/config',
    default: '',
    completion: 'file',
  }),
  context: textOption({
    group: 'Cluster access',
    help: 'Context of the kubeconfig to use',
    default: '',
  }),
  master: textOption({
    group: 'Cluster access',
    help: 'URL of the API server; overrides the kubeconfig',
    default: '',
  }),
  as: textOption({ group: 'Cluster access', help: 'User to impersonate', default: '' }),
  'as-group': listOption({
    group: 'Cluster access',
    help: 'Groups to impersonate; requires --as',
    default: '',
  }),
} as const;

/**
 * Legacy flags of klog. Their behaviour is the default here, or they configure log files, which do not exist
 * here. They are accepted and ignored.
 */
export const KLOG_FLAGS: readonly FlagForm[] = [
  ...[
    'logtostderr',
    'alsologtostderr',
    'one-output',
    'skip-log-headers',
    'legacy-stderr-threshold-behavior',
  ].map((name) => ({ name, isBoolean: true, isList: false })),
  ...[
    'stderrthreshold',
    'alsologtostderrthreshold',
    'log-dir',
    'log-file',
    'log-file-max-size',
    'log-backtrace-at',
    'log-flush-frequency',
  ].map((name) => ({ name, isBoolean: false, isList: false })),
];

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

/** Parts of an installation, named after the folders of hack/deploy, in the order of their application. */
export const MANIFEST_PARTS = ['namespace', 'crds', 'rbac', 'manager'] as const;

export type ManifestPart = (typeof MANIFEST_PARTS)[number];

/**
 * Flags of `check`: all flags of `run`, so that a command line can be checked unchanged. Flags without
 * effect on the checks are hidden.
 */
export const CHECK_OPTIONS = {
  ...onlyShowing(RUN_OPTIONS, [
    ...keysOf(COMMON_OPTIONS),
    ...keysOf(CLUSTER_OPTIONS),
    'config',
    'controllers',
    'namespaces',
    'leader-elect',
    'leader-elect-resource-name',
    'leader-elect-resource-namespace',
    'shards',
    'kube-api-request-timeout',
  ]),
  output: choiceOption({
    group: 'Other',
    help: 'Output format: "table" or "json"',
    default: 'table',
    choices: ['table', 'json'],
    aliases: ['o'],
    flagOnly: true,
  }),
} as const;

/** Flags of `top`. */
export const TOP_OPTIONS = {
  ...COMMON_OPTIONS,
  address: textOption({
    group: 'Other',
    help: 'Address of the debug pages of the daemon',
    default: '127.0.0.1:6060',
    flagOnly: true,
  }),
  interval: durationOption({
    group: 'Other',
    help: 'Refresh interval',
    default: '2s',
    flagOnly: true,
  }),
  once: booleanOption({
    group: 'Other',
    help: 'Print once and exit; the default if standard output is not a terminal',
    default: false,
    flagOnly: true,
  }),
} as const;

/** Flags of `apply`. */
export const APPLY_OPTIONS = {
  ...COMMON_OPTIONS,
  ...CLUSTER_OPTIONS,
  filename: listOption({
    group: 'Files',
    help: 'File, folder or URL with manifests in YAML or JSON, or "-" for standard input; may be repeated',
    default: '',
    completion: 'file',
    aliases: ['f'],
    flagOnly: true,
  }),
  recursive: booleanOption({
    group: 'Files',
    help: 'Include subfolders',
    default: false,
    aliases: ['R'],
    flagOnly: true,
  }),
  namespace: textOption({
    group: 'Apply',
    help: 'Namespace for objects that name none; an object that names another is an error. Default: the namespace of the context',
    default: '',
    aliases: ['n'],
    flagOnly: true,
  }),
  'field-manager': textOption({
    group: 'Apply',
    help: 'Field manager; fields that this manager applied before and omits now are removed',
    default: 'crd-controller-apply',
    flagOnly: true,
  }),
  'force-conflicts': booleanOption({
    group: 'Apply',
    help: 'Take over fields that other managers own',
    default: false,
    flagOnly: true,
  }),
  'dry-run': choiceOption({
    group: 'Apply',
    help: '"server" validates on the server and stores nothing',
    default: 'none',
    choices: ['none', 'server'],
    flagOnly: true,
  }),
  validate: choiceOption({
    group: 'Apply',
    help: 'How the server treats unknown fields: reject the object, warn, or ignore them',
    default: 'strict',
    choices: ['strict', 'warn', 'ignore'],
    flagOnly: true,
  }),
  timeout: durationOption({
    group: 'Apply',
    help: 'Time to wait until a CustomResourceDefinition is served',
    default: '1m',
    flagOnly: true,
  }),
} as const;

/** Flags of `serve`. */
export const SERVE_OPTIONS = {
  ...COMMON_OPTIONS,
  host: hostOption({ group: 'Server', help: 'Address to listen on', default: '127.0.0.1' }),
  port: integerOption({
    group: 'Server',
    help: 'Port to listen on; 0 selects a free port',
    default: 0,
    min: 0,
    max: 65_535,
    // Kubernetes sets CRD_CONTROLLER_PORT=tcp://… in Pods if there is a Service named crd-controller.
    flagOnly: true,
  }),
  'write-kubeconfig': textOption({
    group: 'Server',
    help: 'File to write the kubeconfig to. Default: a temporary file, removed at exit',
    default: '',
    completion: 'file',
  }),
  'no-cluster-controllers': booleanOption({
    group: 'Server',
    help: 'Serve the API only, without garbage collector, scheduler and simulated kubelet',
    default: false,
  }),
} as const;

/** Flags of `demo`. */
export const DEMO_OPTIONS = {
  ...COMMON_OPTIONS,
  only: listOption({
    group: 'Other',
    help: 'Controllers to show, by name; empty means all',
    default: '',
    completion: 'controllers',
    flagOnly: true,
  }),
  keep: booleanOption({
    group: 'Other',
    help: 'Keep running at the end, with a kubeconfig for kubectl',
    default: false,
  }),
} as const;

/** Flags of `manifests`. */
export const MANIFESTS_OPTIONS = {
  ...COMMON_OPTIONS,
  namespace: textOption({
    group: 'Installation',
    help: 'Namespace of the controller. Default: crd-controller-system',
    default: '',
    aliases: ['n'],
    flagOnly: true,
  }),
  image: textOption({
    group: 'Installation',
    help: 'Image to run. Default: crd-controller, in the version of this program',
    default: '',
    flagOnly: true,
  }),
  controllers: listOption({
    group: 'Installation',
    help: 'Controllers to run, as in run --controllers; the CRDs and roles of others are omitted',
    default: '*',
    completion: 'controllers',
    flagOnly: true,
  }),
  namespaces: listOption({
    group: 'Installation',
    help: 'Namespaces to watch, with Roles in each and no ClusterRole; empty means all',
    default: '',
    flagOnly: true,
  }),
  only: choicesOption({
    group: 'Installation',
    help: `Parts to print: ${MANIFEST_PARTS.join(', ')}; empty means all`,
    default: '',
    choices: MANIFEST_PARTS,
    flagOnly: true,
  }),
} as const;

/** Flags of `generate`. */
export const GENERATE_OPTIONS = {
  ...COMMON_OPTIONS,
  out: textOption({
    group: 'Files',
    help: 'Folder to write the modules to',
    default: 'src/generated',
    completion: 'folder',
    flagOnly: true,
  }),
  check: booleanOption({
    group: 'Files',
    help: 'Write nothing; fail if the files are not up to date',
    default: false,
    flagOnly: true,
  }),
} as const;

/** Flags of `init`. */
export const INIT_OPTIONS = {
  ...COMMON_OPTIONS,
  group: textOption({
    group: 'Files',
    help: 'API group of the kind: a domain that you own',
    default: 'example.com',
    flagOnly: true,
  }),
  plural: textOption({
    group: 'Files',
    help: 'Plural of the kind, as in URLs and commands. Default: the English plural',
    default: '',
    flagOnly: true,
  }),
  dir: textOption({
    group: 'Files',
    help: 'Folder to write the project to; existing files are not overwritten',
    default: '.',
    completion: 'folder',
    flagOnly: true,
  }),
} as const;

function keysOf<O extends Options>(options: O): (keyof O)[] {
  return Object.keys(options);
}

/** Returns the options with all but the `shown` ones hidden. */
function onlyShowing<O extends Options>(options: O, shown: readonly (keyof O)[]): O {
  const entries = Object.entries(options).map(([name, option]): [string, Option<unknown>] => [
    name,
    shown.includes(name) ? option : { ...option, hidden: true },
  ]);
  return Object.fromEntries(entries) as O;
}
