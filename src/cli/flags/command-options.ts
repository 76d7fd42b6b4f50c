import { PARTS } from '../manifests/parts.ts';
import {
  booleanOption,
  choiceOption,
  choicesOption,
  durationOption,
  hostOption,
  integerOption,
  listOption,
  textOption,
} from './option.ts';
import type { Option, Options } from './option.ts';
import { COMMON_OPTIONS, CLUSTER_OPTIONS } from './options.ts';
import { RUN_OPTIONS } from './run-options.ts';

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
