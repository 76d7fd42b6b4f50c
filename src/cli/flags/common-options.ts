import type { FlagForm } from './arguments.ts';
import {
  booleanOption,
  choiceOption,
  integerOption,
  listOption,
  textOption,
  vmoduleOption,
} from './option.ts';

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
