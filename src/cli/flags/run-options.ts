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
import { COMMON_OPTIONS, CLUSTER_OPTIONS } from './options.ts';

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
    environment: ['POD_NAMESPACE'],
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
  'kube-api-content-type': choiceOption({
    group: 'API client',
    help: 'What requests and answers are written in: custom resources are JSON, in any cluster',
    default: 'application/json',
    choices: ['application/json'],
    hidden: true,
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
  'enable-profiling': booleanOption({
    group: 'Endpoints',
    help: 'Serve CPU and heap profiles of this process at --profiler-address',
    default: false,
  }),
  'profiler-address': bindAddressOption({
    group: 'Endpoints',
    help: 'Where --enable-profiling serves /debug/pprof/; beyond this machine over TLS, to whom the cluster allows it, and no heap snapshots',
    default: '127.0.0.1:6060',
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
