import type { FlagForm } from './arguments.ts';
import { PARTS } from './manifests/parts.ts';
import { featureGatesOption } from './feature-gates.ts';
import {
  bindAddressOption,
  booleanOption,
  choiceOption,
  choicesOption,
  durationOption,
  hostOption,
  integerOption,
  labelSelectorOption,
  listOption,
  textOption,
  vmoduleOption,
} from './option.ts';
import type { Option, Options } from './option.ts';

/**
 * Every flag there is, once: its name, default, meaning and place. Help texts and the README's
 * table are printed from here.
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
    help: 'Verbosity: 0 starts, stops and failures; 2 changes to objects; 4 decisions; 6 requests to the API server',
    default: 0,
    min: 0,
  }),
  vmodule: vmoduleOption({
    group: 'Logging',
    help: 'Verbosity of single source files, as in reflector=6,work-*=4 (text format only)',
    default: '',
  }),
  'logging-format': choiceOption({
    group: 'Logging',
    help: 'Form of log lines: "text" as klog writes them, or "json"',
    default: 'text',
    choices: ['text', 'json'],
  }),
  'log-json-split-stream': booleanOption({
    group: 'Logging',
    help: 'With --logging-format=json: errors to standard error, all else to standard output',
    default: false,
  }),
  'skip-headers': booleanOption({
    group: 'Logging',
    help: 'Leave time, process id and source line out of log lines',
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

/** Flags that say which cluster, and as whom. */
export const CLUSTER_OPTIONS = {
  kubeconfig: textOption({
    group: 'Cluster access',
    help: 'Path to a kubeconfig file. Without it: the files in $KUBECONFIG, the service account of the Pod, ~/.kube/config',
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
    help: 'URL of the API server, instead of the one in the kubeconfig',
    default: '',
  }),
  as: textOption({ group: 'Cluster access', help: 'User to impersonate', default: '' }),
  'as-group': listOption({
    group: 'Cluster access',
    help: 'Groups to impersonate; needs --as',
    default: '',
  }),
} as const;

function concurrencyOption(kind: string): Option<number> {
  return integerOption({
    group: 'Controllers',
    help: `${kind} that are reconciled at the same time`,
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
    help: 'Path to a ControllerConfiguration, which has a field for every flag; flags and environment come before it',
    default: '',
    completion: 'file',
  }),
  'feature-gates': featureGatesOption({ group: 'Process' }),
  'dry-run': booleanOption({
    group: 'Process',
    help: 'Have the server check every write and store none, and log what would have been written; no Lease is taken',
    default: false,
  }),
  once: booleanOption({
    group: 'Process',
    help: 'Look at every object once, do what can be done now, and exit: 0 if nothing is left to do, 1 if something failed or, with --dry-run, would be written',
    default: false,
  }),
  controllers: listOption({
    group: 'Controllers',
    help: 'Controllers to run: "*" is all that are on by default, "name" turns one on, "-name" turns one off',
    default: '*',
    completion: 'controllers',
  }),
  namespaces: listOption({
    group: 'Controllers',
    help: 'Namespaces to look after; empty means all',
    default: '',
    aliases: ['namespace'],
    environment: ['WATCH_NAMESPACE'],
  }),
  'watch-label-selector': labelSelectorOption({
    group: 'Controllers',
    help: 'Labels of the objects to look after, as in team=a or !team; what those objects own need not have them',
    default: '',
  }),
  'concurrent-count-syncs': concurrencyOption('Counts'),
  'concurrent-webapp-syncs': concurrencyOption('WebApps'),
  'concurrent-at-syncs': concurrencyOption('Ats'),
  'concurrent-foo-syncs': concurrencyOption('Foos'),
  'pod-count-events': booleanOption({
    group: 'Controllers',
    help: 'Whether pod-count, if it is on, tells each new Pod the count by an event',
    default: true,
  }),
  'resync-period': durationOption({
    group: 'Controllers',
    help: 'How often every object is looked at again although nothing happened; 0 is never',
    default: '10h',
  }),
  'leader-elect': booleanOption({
    group: 'Leader election',
    help: 'Run the controllers only while holding a Lease, so that of several replicas one works and the others stand by',
    default: false,
  }),
  'leader-elect-lease-duration': durationOption({
    group: 'Leader election',
    help: 'How long the others wait before they take over a Lease that is not renewed',
    default: '15s',
  }),
  'leader-elect-renew-deadline': durationOption({
    group: 'Leader election',
    help: 'How long the leader may go without a renewal before it stops itself; less than the lease duration',
    default: '10s',
  }),
  'leader-elect-retry-period': durationOption({
    group: 'Leader election',
    help: 'Pause between two renewals, or two attempts to get the Lease; 1.2 times that is less than the renew deadline',
    default: '2s',
  }),
  'leader-elect-release-on-cancel': booleanOption({
    group: 'Leader election',
    help: 'Give the Lease back at the end of an orderly stop, so that the next leader need not wait for its end',
    default: true,
  }),
  'leader-elect-resource-lock': choiceOption({
    group: 'Leader election',
    help: 'Kind of object that is held: only Leases are left in Kubernetes',
    default: 'leases',
    choices: ['leases'],
    hidden: true,
  }),
  'leader-elect-resource-name': textOption({
    group: 'Leader election',
    help: 'Name of the Lease: the same for all replicas, another for each installation',
    default: 'crd-controller',
  }),
  'leader-elect-resource-namespace': textOption({
    group: 'Leader election',
    help: 'Namespace of the Lease. Without it: that of the service account, or of the context of the kubeconfig',
    default: '',
  }),
  shards: integerOption({
    group: 'Leader election',
    help: 'Parts into which the objects are split, each worked on by the replica that holds its Lease; more than 1 needs --leader-elect',
    default: 1,
    min: 1,
    max: 100,
  }),
  'kube-api-qps': integerOption({
    group: 'API client',
    help: "Requests a second to the API server; -1 leaves the rate to the server's own priority and fairness",
    default: -1,
    min: -1,
  }),
  'kube-api-burst': integerOption({
    group: 'API client',
    help: 'Requests that may exceed --kube-api-qps for a moment',
    default: 30,
    min: 1,
  }),
  'kube-api-request-timeout': durationOption({
    group: 'API client',
    help: 'How long a request other than a watch may take; 0 is for ever',
    default: '30s',
  }),
  'graceful-shutdown-timeout': durationOption({
    group: 'Process',
    help: 'How long stopping may take after SIGTERM or SIGINT; work in flight gets three quarters of it to finish',
    default: '30s',
  }),
  'debug-bind-address': bindAddressOption({
    group: 'Endpoints',
    help: 'Where /debug/ is served, as in "127.0.0.1:6060"; beyond this machine over TLS, to whom the cluster allows it; "0" is off',
    default: '0',
  }),
  'health-probe-bind-address': bindAddressOption({
    group: 'Endpoints',
    help: 'Where /livez, /readyz and /healthz are served, as in ":8081"; "0" is off',
    default: '0',
  }),
  'metrics-bind-address': bindAddressOption({
    group: 'Endpoints',
    help: 'Where /metrics is served, as in ":8443"; "0" is off',
    default: '0',
  }),
  'metrics-secure': booleanOption({
    group: 'Endpoints',
    help: 'Serve /metrics over TLS, and only to whom the cluster allows to get that path; false is plain HTTP, for everybody',
    default: true,
  }),
  'metrics-cert-path': textOption({
    group: 'Endpoints',
    help: 'Folder of the certificate to serve with, read again when it changes. Without it: one that nobody vouches for, made at the start',
    default: '',
    completion: 'folder',
  }),
  'metrics-cert-name': textOption({
    group: 'Endpoints',
    help: 'File of the certificate in --metrics-cert-path',
    default: 'tls.crt',
  }),
  'metrics-cert-key': textOption({
    group: 'Endpoints',
    help: 'File of its private key in --metrics-cert-path',
    default: 'tls.key',
  }),
  'tls-min-version': choiceOption({
    group: 'Endpoints',
    help: 'Oldest version of TLS to serve with, as Go spells it',
    default: 'VersionTLS12',
    choices: ['VersionTLS12', 'VersionTLS13'],
  }),
  'tls-cipher-suites': listOption({
    group: 'Endpoints',
    help: 'Cipher suites to serve with, as Go spells them; those of TLS 1.3 all stay unless some are named. Without it: those of Node.js',
    default: '',
  }),
  'enable-http2': booleanOption({
    group: 'Endpoints',
    help: 'Serve HTTP/2 where there is TLS, besides HTTP/1.1',
    default: false,
  }),
} as const;

/**
 * Flags of `check`: all that `run` takes, so that a command line can be checked as it is. Those that
 * make no difference to it are not shown.
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
    help: 'Form of what is printed: "table" for people, "json" for scripts',
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
    help: 'What the daemon was given as --debug-bind-address',
    default: '127.0.0.1:6060',
    flagOnly: true,
  }),
  interval: durationOption({
    group: 'Other',
    help: 'Pause between two looks',
    default: '2s',
    flagOnly: true,
  }),
  once: booleanOption({
    group: 'Other',
    help: 'Look once, print, and exit; so it is where standard output is no terminal',
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
    help: 'Look into the folders of a folder too',
    default: false,
    aliases: ['R'],
    flagOnly: true,
  }),
  namespace: textOption({
    group: 'Apply',
    help: 'Namespace of the objects that name none; one that names another is refused. Without it: that of the context',
    default: '',
    aliases: ['n'],
    flagOnly: true,
  }),
  'field-manager': textOption({
    group: 'Apply',
    help: 'Who applies: fields that the same manager applied before and leaves out now are removed',
    default: 'crd-controller-apply',
    flagOnly: true,
  }),
  'force-conflicts': booleanOption({
    group: 'Apply',
    help: 'Take over fields that others have set to something else',
    default: false,
    flagOnly: true,
  }),
  'dry-run': choiceOption({
    group: 'Apply',
    help: '"server" has the server check everything and store nothing',
    default: 'none',
    choices: ['none', 'server'],
    flagOnly: true,
  }),
  validate: choiceOption({
    group: 'Apply',
    help: 'What the server does about fields that a kind does not have: refuses the object, warns, or says nothing',
    default: 'strict',
    choices: ['strict', 'warn', 'ignore'],
    flagOnly: true,
  }),
  timeout: durationOption({
    group: 'Apply',
    help: 'How long a CustomResourceDefinition may take until its objects can be applied',
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
    help: 'Port to listen on; 0 takes a free one',
    default: 0,
    min: 0,
    max: 65_535,
    // Kubernetes sets CRD_CONTROLLER_PORT=tcp://… in Pods beside a Service called crd-controller.
    flagOnly: true,
  }),
  'write-kubeconfig': textOption({
    group: 'Server',
    help: 'File to write the kubeconfig to. Without it: a temporary file, removed at the end',
    default: '',
    completion: 'file',
  }),
  'no-cluster-controllers': booleanOption({
    group: 'Server',
    help: 'Serve the API alone, without garbage collection and without the kubelet that pretends to run Pods',
    default: false,
  }),
} as const;

/** Flags of `demo`. */
export const DEMO_OPTIONS = {
  ...COMMON_OPTIONS,
  only: listOption({
    group: 'Other',
    help: 'Controllers to show, by the names that --controllers takes; empty means all',
    default: '',
    completion: 'controllers',
    flagOnly: true,
  }),
  keep: booleanOption({
    group: 'Other',
    help: 'Stay up at the end, with a kubeconfig for kubectl',
    default: false,
  }),
} as const;

/** Flags of `manifests`. */
export const MANIFESTS_OPTIONS = {
  ...COMMON_OPTIONS,
  namespace: textOption({
    group: 'Installation',
    help: 'Namespace that the controller itself lives in. Without it: crd-controller-system',
    default: '',
    aliases: ['n'],
    flagOnly: true,
  }),
  image: textOption({
    group: 'Installation',
    help: 'Image to run. Without it: crd-controller, in the version of this program',
    default: '',
    flagOnly: true,
  }),
  controllers: listOption({
    group: 'Installation',
    help: 'Controllers to run, as in run --controllers: others get neither CRDs nor rights',
    default: '*',
    completion: 'controllers',
    flagOnly: true,
  }),
  namespaces: listOption({
    group: 'Installation',
    help: 'Namespaces to look after, with Roles in each and no ClusterRole; empty means all',
    default: '',
    flagOnly: true,
  }),
  only: choicesOption({
    group: 'Installation',
    help: `Parts to print: ${PARTS.join(', ')}; empty means all`,
    default: '',
    choices: PARTS,
    flagOnly: true,
  }),
} as const;

/** Flags of `generate`. */
export const GENERATE_OPTIONS = {
  ...COMMON_OPTIONS,
  out: textOption({
    group: 'Files',
    help: 'Folder the modules are written to',
    default: 'src/generated',
    completion: 'folder',
    flagOnly: true,
  }),
  check: booleanOption({
    group: 'Files',
    help: 'Write nothing, and fail if what is there is not what would be written',
    default: false,
    flagOnly: true,
  }),
} as const;

/** Flags of `init`. */
export const INIT_OPTIONS = {
  ...COMMON_OPTIONS,
  group: textOption({
    group: 'Files',
    help: 'API group of the kind: a domain of yours',
    default: 'example.com',
    flagOnly: true,
  }),
  dir: textOption({
    group: 'Files',
    help: 'Folder the project is written to; nothing in it is overwritten',
    default: '.',
    completion: 'folder',
    flagOnly: true,
  }),
} as const;

/**
 * What klog once had and many a script still sets. Each asks for something that holds here anyway,
 * or for log files, which this program does not write: accepted, without effect.
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

function keysOf<O extends Options>(options: O): (keyof O)[] {
  return Object.keys(options);
}

/** The same options, of which help shows some. */
function onlyShowing<O extends Options>(options: O, shown: readonly (keyof O)[]): O {
  const entries = Object.entries(options).map(([name, option]): [string, Option<unknown>] => [
    name,
    shown.includes(name) ? option : { ...option, hidden: true },
  ]);
  return Object.fromEntries(entries) as O;
}
