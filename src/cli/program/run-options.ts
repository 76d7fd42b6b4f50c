import { DEFAULT_CONCURRENCY } from '../../manager/controller-options.ts';
import {
  bindAddressOption,
  booleanOption,
  choiceOption,
  durationOption,
  featureGatesOption,
  integerOption,
  labelSelectorOption,
  listOption,
  optionGroup,
  textOption,
} from '../flags/option.ts';
import type { Option, Options } from '../flags/option.ts';
import { CLUSTER_OPTIONS, COMMON_OPTIONS } from '../flags/options.ts';
import type { ProgramOptions } from './program.ts';

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
    record: textOption({
      help: 'File in which to record what the controllers see and do, for replay. An existing file becomes FILE.1. Contents of Secrets, and credentials are not recorded',
      completion: 'file',
    }),
    'record-max-size': integerOption({
      help: 'Size in MiB after which the file of --record becomes FILE.1, and a new one starts',
      default: 100,
      min: 1,
    }),
    'record-redact': listOption({
      help: 'Resources of which --record writes only metadata and a hash, as of Secrets: "configmaps" or "databases.example.com"',
    }),
    'graceful-shutdown-timeout': durationOption({
      help: 'Maximum time to stop after SIGTERM or SIGINT; running syncs have three quarters of it to finish, the last events what is left',
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
    'webhook-client-ca-file': textOption({
      help: 'File with the authorities of client certificates. If set, only API servers with such a certificate can call the webhooks',
      completion: 'file',
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
  if (taken !== undefined) throw new RangeError(`runProgram: the flag --${taken} exists already`);
  return { ...options, ...optionGroup('Controllers', flags) };
}

/** Returns the flag of a controller's concurrency. */
export function concurrencyFlag(controller: string): string {
  return `concurrent-${controller}-syncs`;
}

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
