import { DEFAULT_CONCURRENCY } from '../../manager/controller-options.ts';
import { KUBERNETES_VERSIONS } from '../../apiserver/version.ts';
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
  optionGroup,
  textOption,
  vmoduleOption,
} from './option.ts';
import type { Option, Options } from './option.ts';
import type { ProgramOptions } from '../program.ts';

/** Flags of all commands. Each flag is defined once. Help texts and the options table are generated from them. */

/** Flags of every command. */
export const COMMON_OPTIONS = {
  ...optionGroup(
    'Other',
    {
      help: booleanOption({ help: 'Print this help and exit', aliases: ['h'] }),
      version: booleanOption({ help: 'Print the version and exit' }),
    },
    { flagOnly: true },
  ),
  ...optionGroup('Logging', {
    v: integerOption({
      help: 'Log verbosity: 0 start, stop and failures; 2 changes of objects; 4 each sync; 6 requests to the API server',
      default: 0,
      min: 0,
    }),
    vmodule: vmoduleOption({
      help: 'Verbosity by source file, as in reflector=6,work-*=4 (text format only)',
    }),
    'logging-format': choiceOption({
      help: 'Log format: "text" (klog) or "json"',
      default: 'text',
      choices: ['text', 'json'],
    }),
    'log-json-split-stream': booleanOption({
      help: 'With --logging-format=json, write errors to standard error and everything else to standard output',
    }),
    'skip-headers': booleanOption({
      help: 'Omit time, process ID and source line from log lines',
      hidden: true,
    }),
    'add-dir-header': booleanOption({
      help: 'Show the folder of the source file in log lines',
      hidden: true,
    }),
  }),
} as const;

/** Flags that select the cluster and the user. */
export const CLUSTER_OPTIONS = {
  ...optionGroup('Cluster access', {
    kubeconfig: textOption({
      help: 'Path to a kubeconfig file. Default: the files in $KUBECONFIG, the service account of the Pod, ~/.kube/config',
      completion: 'file',
    }),
    context: textOption({ help: 'Context of the kubeconfig to use' }),
    master: textOption({ help: 'URL of the API server; overrides the kubeconfig' }),
    as: textOption({ help: 'User to impersonate' }),
    'as-group': listOption({ help: 'Groups to impersonate; requires --as' }),
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

/** Flags of `run` in every program. */
const RUN_OPTIONS = {
  ...COMMON_OPTIONS,
  ...CLUSTER_OPTIONS,
  ...optionGroup('Process', {
    config: textOption({
      help: 'Path to a ControllerConfiguration file, with a field for each flag. Flags and environment variables have precedence',
      completion: 'file',
    }),
    'feature-gates': featureGatesOption(),
    'dry-run': booleanOption({
      help: 'Send every write as a server-side dry run, and log it. No Lease is acquired',
    }),
    tracing: booleanOption({
      help: 'Create OpenTelemetry spans of syncs and their requests. Needs the package @opentelemetry/api, and an SDK in a module loaded by node --import',
    }),
    once: booleanOption({
      help: 'Sync every object once and exit: 0 if nothing is left to do, 1 if something failed or, with --dry-run, would be written',
    }),
    'graceful-shutdown-timeout': durationOption({
      help: 'Maximum time to stop after SIGTERM or SIGINT; running syncs have three quarters of it to finish',
      default: '30s',
    }),
  }),
  ...optionGroup('Controllers', {
    controllers: listOption({
      help: 'Controllers to run. "*" enables all that are on by default, "name" enables one, "-name" disables one',
      default: '*',
      completion: 'controllers',
    }),
    namespaces: listOption({
      help: 'Namespaces to watch; empty means all',
      aliases: ['namespace'],
      environment: ['WATCH_NAMESPACE'],
    }),
    'watch-label-selector': labelSelectorOption({
      help: 'Label selector for the objects to reconcile, as in team=a or !team. Owned objects do not need the labels',
    }),
    'resync-period': durationOption({
      help: 'Period after which every object is synced again without a change; 0 disables resyncs',
      default: '10h',
    }),
    'event-api-version': choiceOption({
      help: 'API of Events: "v1", or "events.k8s.io/v1" with series of repetitions',
      default: 'v1',
      choices: ['v1', 'events.k8s.io/v1'],
    }),
  }),
  ...optionGroup('Leader election', {
    'leader-elect': booleanOption({
      help: 'Run the controllers only while this replica holds the Lease; other replicas are standbys',
    }),
    'leader-elect-lease-duration': durationOption({
      help: 'Time that standbys wait before they acquire a Lease that is not renewed',
      default: '15s',
    }),
    'leader-elect-renew-deadline': durationOption({
      help: 'Time without a successful renewal after which the leader stops; less than the lease duration',
      default: '10s',
    }),
    'leader-elect-retry-period': durationOption({
      help: 'Time between renewals and between attempts to acquire the Lease; 1.2 times this must be less than the renew deadline',
      default: '2s',
    }),
    'leader-elect-release-on-cancel': booleanOption({
      help: 'Release the Lease at a clean stop, so that the next leader does not wait until it expires',
      default: true,
    }),
    'leader-elect-resource-lock': choiceOption({
      help: 'Kind of the lock object; only leases are supported',
      default: 'leases',
      choices: ['leases'],
      hidden: true,
    }),
    'leader-elect-resource-name': textOption({
      help: 'Name of the Lease; the same for all replicas, different for each installation',
      // The default is the name of the program.
    }),
    'leader-elect-resource-namespace': textOption({
      help: 'Namespace of the Lease. Default: the namespace of the service account or of the kubeconfig context',
      environment: ['POD_NAMESPACE'],
    }),
    'leader-elect-step-down': booleanOption({
      help: 'After the Lease is lost, stop the controllers and stand by again instead of exiting; not with --shards',
    }),
    shards: integerOption({
      help: 'Number of shards. The replica that holds the Lease of a shard reconciles its objects; more than 1 requires --leader-elect',
      default: 1,
      min: 1,
      max: 100,
    }),
  }),
  ...optionGroup('API client', {
    'kube-api-qps': integerOption({
      help: 'Maximum requests per second to the API server; -1 disables client-side rate limiting',
      default: -1,
      min: -1,
    }),
    'kube-api-burst': integerOption({
      help: 'Burst of requests above --kube-api-qps',
      default: 30,
      min: 1,
    }),
    'kube-api-content-type': choiceOption({
      help: 'Content type of requests and responses; only JSON is supported',
      default: 'application/json',
      choices: ['application/json'],
      hidden: true,
    }),
    'kube-api-request-timeout': durationOption({
      help: 'Timeout of requests other than watches; 0 disables it',
      default: '30s',
    }),
  }),
  ...optionGroup('Endpoints', {
    'debug-bind-address': bindAddressOption({
      help: 'Address of the debug pages, as in "127.0.0.1:6060". An address that is not loopback uses TLS and requires authorization by the cluster; "0" disables them',
      default: '0',
    }),
    'enable-profiling': booleanOption({
      help: 'Serve CPU and heap profiles at --profiler-address',
    }),
    'profiler-address': bindAddressOption({
      help: 'Address of /debug/pprof/ if --enable-profiling is set. An address that is not loopback uses TLS, requires authorization by the cluster, and serves no heap snapshots',
      default: '127.0.0.1:6060',
    }),
    'health-probe-bind-address': bindAddressOption({
      help: 'Address of /livez, /readyz and /healthz, as in ":8081"; "0" disables them',
      default: '0',
    }),
    'metrics-bind-address': bindAddressOption({
      help: 'Address of /metrics, as in ":8443"; "0" disables it',
      default: '0',
    }),
    'metrics-secure': booleanOption({
      help: 'Serve /metrics over TLS, to clients that the cluster authorizes; false serves plain HTTP to every client',
      default: true,
    }),
    'metrics-cert-path': textOption({
      help: 'Directory of the serving certificate, reloaded when it changes. Default: a self-signed certificate created at start',
      completion: 'folder',
    }),
    'metrics-cert-name': textOption({
      help: 'Name of the certificate file in --metrics-cert-path',
      default: 'tls.crt',
    }),
    'metrics-cert-key': textOption({
      help: 'Name of the private key file in --metrics-cert-path',
      default: 'tls.key',
    }),
    'tls-min-version': choiceOption({
      help: 'Minimum TLS version to serve, as Go spells it',
      default: 'VersionTLS12',
      choices: ['VersionTLS12', 'VersionTLS13'],
    }),
    'tls-cipher-suites': listOption({
      help: 'Cipher suites to serve, as Go spells them. All TLS 1.3 suites stay enabled unless some are named. Default: those of Node.js',
    }),
    'enable-http2': booleanOption({
      help: 'Serve HTTP/2 in addition to HTTP/1.1, on ports with TLS',
    }),
  }),
} as const;

export type RunOptions = typeof RUN_OPTIONS;

/** Flags of `run` for programs with webhooks. */
export const WEBHOOK_OPTIONS = {
  ...optionGroup('Endpoints', {
    'webhook-bind-address': bindAddressOption({
      help: 'Address of the webhooks, over TLS; "0" disables them',
      default: ':9443',
    }),
    'webhook-cert-path': textOption({
      help: 'Directory of the serving certificate of the webhooks, reloaded when it changes. Default: a certificate of its own, in a Secret',
      completion: 'folder',
    }),
    'webhook-cert-name': textOption({
      help: 'Name of the certificate file in --webhook-cert-path',
      default: 'tls.crt',
    }),
    'webhook-cert-key': textOption({
      help: 'Name of the private key file in --webhook-cert-path',
      default: 'tls.key',
    }),
  }),
} as const;

/**
 * Returns the flags of `run`: those of every program, one for the concurrency of each controller, and the
 * program's own.
 *
 * @throws {RangeError} if a flag of the program exists already
 */
export function runOptions({
  name,
  controllers,
  flags = {},
  webhooks,
  webhooksOnByDefault = true,
}: ProgramOptions): RunOptions {
  const lease = RUN_OPTIONS['leader-elect-resource-name'];
  const concurrency = Object.entries(controllers).map(([each, { resource }]) => [
    concurrencyFlag(each),
    integerOption({
      help: `Number of ${resource.kind} objects that are reconciled at the same time`,
      default: DEFAULT_CONCURRENCY,
      min: 1,
      max: 1000,
    }),
  ]);
  const options = {
    ...RUN_OPTIONS,
    'leader-elect-resource-name': { ...lease, default: name },
    ...optionGroup('Controllers', Object.fromEntries(concurrency)),
    ...(webhooks && WEBHOOK_OPTIONS),
    ...(webhooks &&
      !webhooksOnByDefault && {
        'webhook-bind-address': { ...WEBHOOK_OPTIONS['webhook-bind-address'], default: '0' },
      }),
  };
  const taken = Object.keys(flags).find((flag) => Object.hasOwn(options, flag));
  if (taken !== undefined) throw new RangeError(`runDaemon: the flag --${taken} exists already`);
  return { ...options, ...optionGroup('Controllers', flags) };
}

/** Returns the flag of a controller's concurrency. */
export function concurrencyFlag(controller: string): string {
  return `concurrent-${controller}-syncs`;
}

/** Parts of an installation, named after the folders of hack/deploy, in the order of their application. */
export const MANIFEST_PARTS = ['namespace', 'crds', 'rbac', 'manager', 'webhook'] as const;

export type ManifestPart = (typeof MANIFEST_PARTS)[number];

/**
 * Flags of `check`: all flags of `run`, so that a command line can be checked unchanged. Flags without
 * effect on the checks are hidden.
 */
export function checkFlags(program: ProgramOptions): CheckOptions {
  return { ...onlyShowing(runOptions(program), SHOWN_BY_CHECK), ...CHECK_OUTPUT };
}

export type CheckOptions = RunOptions & typeof CHECK_OUTPUT;

const SHOWN_BY_CHECK: readonly (keyof RunOptions)[] = [
  ...keysOf(COMMON_OPTIONS),
  ...keysOf(CLUSTER_OPTIONS),
  'config',
  'controllers',
  'namespaces',
  'event-api-version',
  'leader-elect',
  'leader-elect-resource-name',
  'leader-elect-resource-namespace',
  'shards',
  'kube-api-request-timeout',
];

const CHECK_OUTPUT = optionGroup(
  'Other',
  {
    output: choiceOption({
      help: 'Output format: "table" or "json"',
      default: 'table',
      choices: ['table', 'json'],
      aliases: ['o'],
    }),
  },
  { flagOnly: true },
);

/** Flags of `top`. */
export const TOP_OPTIONS = {
  ...COMMON_OPTIONS,
  ...optionGroup(
    'Other',
    {
      address: textOption({
        help: 'Address of the debug pages of the daemon',
        default: '127.0.0.1:6060',
      }),
      interval: durationOption({ help: 'Refresh interval', default: '2s' }),
      once: booleanOption({
        help: 'Print once and exit; the default if standard output is not a terminal',
      }),
    },
    { flagOnly: true },
  ),
} as const;

/** Flags of `apply`. */
export const APPLY_OPTIONS = {
  ...COMMON_OPTIONS,
  ...CLUSTER_OPTIONS,
  ...optionGroup(
    'Files',
    {
      filename: listOption({
        help: 'File, folder or URL with manifests in YAML or JSON, or "-" for standard input; may be repeated',
        completion: 'file',
        aliases: ['f'],
      }),
      recursive: booleanOption({ help: 'Include subfolders', aliases: ['R'] }),
    },
    { flagOnly: true },
  ),
  ...optionGroup(
    'Apply',
    {
      namespace: textOption({
        help: 'Namespace for objects that name none; an object that names another is an error. Default: the namespace of the context',
        aliases: ['n'],
      }),
      'field-manager': textOption({
        help: 'Field manager; fields that this manager applied before and omits now are removed',
        default: 'crd-controller-apply',
      }),
      'force-conflicts': booleanOption({ help: 'Take over fields that other managers own' }),
      'dry-run': choiceOption({
        help: '"server" validates on the server and stores nothing',
        default: 'none',
        choices: ['none', 'server'],
      }),
      validate: choiceOption({
        help: 'How the server treats unknown fields: reject the object, warn, or ignore them',
        default: 'strict',
        choices: ['strict', 'warn', 'ignore'],
      }),
      timeout: durationOption({
        help: 'Time to wait until a CustomResourceDefinition is served',
        default: '1m',
      }),
    },
    { flagOnly: true },
  ),
} as const;

/** Flags of `migrate`. */
export const MIGRATE_OPTIONS = {
  ...COMMON_OPTIONS,
  ...CLUSTER_OPTIONS,
  ...optionGroup(
    'Other',
    {
      'dry-run': booleanOption({
        help: 'Send every write as a server-side dry run, and print what would be written',
      }),
    },
    { flagOnly: true },
  ),
} as const;

/** Flags of commands that serve a page for a browser. */
const WEB_OPTIONS = {
  web: booleanOption({
    help: 'Serve a page for a browser, on a loopback address, that shows the cluster and can inject faults',
  }),
  'web-port': integerOption({
    help: 'Port of the page of --web; 0 selects a free port',
    default: 0,
    min: 0,
    max: 65_535,
  }),
} as const;

/** Flags of `serve`. */
export const SERVE_OPTIONS = {
  ...COMMON_OPTIONS,
  ...optionGroup('Server', {
    host: hostOption({ help: 'Address to listen on', default: '127.0.0.1' }),
    'write-kubeconfig': textOption({
      help: 'File to write the kubeconfig to. Default: the file kubeconfig in --data-dir, or a temporary file, removed at exit',
      completion: 'file',
    }),
    'data-dir': textOption({
      help: 'Folder to keep all objects, the CA and the token in, for the next start. Default: objects are in memory only',
      completion: 'folder',
    }),
    load: listOption({
      help: 'Files, folders or URLs with manifests, or "-" for standard input, to apply before the server is announced; may be repeated',
      completion: 'file',
    }),
    'kubernetes-version': choiceOption({
      help: 'Version of Kubernetes that /version shows; nothing else depends on it',
      default: '1.37',
      choices: KUBERNETES_VERSIONS,
    }),
    'audit-policy-file': textOption({
      help: 'File with a Policy of audit.k8s.io/v1, which selects the requests and the content of audit events',
      completion: 'file',
    }),
    'audit-log-path': textOption({
      help: 'File to append audit events to as lines of JSON, or "-" for standard output',
      completion: 'file',
    }),
    'no-cluster-controllers': booleanOption({
      help: 'Serve the API only, without garbage collector, scheduler and simulated kubelet',
    }),
    ...WEB_OPTIONS,
  }),
  ...optionGroup(
    'Server',
    {
      port: integerOption({
        help: 'Port to listen on; 0 selects a free port',
        default: 0,
        min: 0,
        max: 65_535,
        // Kubernetes sets CRD_CONTROLLER_PORT=tcp://… in Pods if there is a Service named crd-controller.
      }),
      controllers: listOption({
        help: 'Cluster controllers to run. "*" enables all, "name" enables one, "-name" disables one',
        default: '*',
      }),
    },
    { flagOnly: true },
  ),
} as const;

/** Flags of `demo`. */
export const DEMO_OPTIONS = {
  ...COMMON_OPTIONS,
  ...optionGroup(
    'Other',
    {
      only: listOption({
        help: 'Controllers to show, by name; empty means all',
        completion: 'controllers',
      }),
    },
    { flagOnly: true },
  ),
  ...optionGroup('Other', {
    keep: booleanOption({ help: 'Keep running at the end, with a kubeconfig for kubectl' }),
    ...WEB_OPTIONS,
  }),
} as const;

/** Flags of `manifests`. */
export const MANIFESTS_OPTIONS = {
  ...COMMON_OPTIONS,
  ...optionGroup(
    'Installation',
    {
      namespace: textOption({
        help: 'Namespace of the controller. Default: as in the files of the installation',
        aliases: ['n'],
      }),
      image: textOption({
        help: 'Image to run. Default: as in the files of the installation',
      }),
      controllers: listOption({
        help: 'Controllers to run, as in run --controllers; the CRDs and roles of others are omitted',
        default: '*',
        completion: 'controllers',
      }),
      namespaces: listOption({
        help: 'Namespaces to watch, with Roles in each and no ClusterRole; empty means all',
      }),
      only: choicesOption({
        help: `Parts to print: ${MANIFEST_PARTS.join(', ')}; empty means all`,
        choices: MANIFEST_PARTS,
      }),
    },
    { flagOnly: true },
  ),
} as const;

/** Flags of `generate`. */
export const GENERATE_OPTIONS = {
  ...COMMON_OPTIONS,
  ...optionGroup(
    'Files',
    {
      out: textOption({
        help: 'Folder to write to, or "-" to print CRDs to standard output',
        default: 'src/generated',
        completion: 'folder',
      }),
      check: booleanOption({ help: 'Write nothing; fail if the files are not up to date' }),
      deploy: textOption({
        help: 'Folder to write manifests to; existing files are kept. Default: print them',
        completion: 'folder',
      }),
      name: textOption({
        help: 'Name of the program in manifests. Default: the name in package.json',
      }),
    },
    { flagOnly: true },
  ),
} as const;

/** Flags of `init`. */
export const INIT_OPTIONS = {
  ...COMMON_OPTIONS,
  ...optionGroup(
    'Files',
    {
      add: booleanOption({
        help: 'Add the kind to a project that init created: files that exist stay as they are, except the lists of controllers and manifests',
      }),
      webhooks: booleanOption({
        help: 'Add webhooks to the project: a function that sets defaults, one that validates, and their tests',
      }),
      group: textOption({
        help: 'API group of the kind: a domain that you own. Default: example.com, with --add the group of the first CRD',
      }),
      name: textOption({
        help: 'Name of the program, its image and its ServiceAccount. Default: KIND-controller',
      }),
      schema: choiceOption({
        help: 'How the kind is defined: "yaml" is a CRD from which types are generated, "ts" a TypeScript module from which the CRD is generated. With --add, as in the project',
        choices: ['yaml', 'ts'],
        default: 'yaml',
      }),
      plural: textOption({
        help: 'Plural of the kind, as in URLs and commands. Default: the English plural',
      }),
      dir: textOption({
        help: 'Folder to write the project to; existing files are not overwritten',
        default: '.',
        completion: 'folder',
      }),
    },
    { flagOnly: true },
  ),
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
