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
import { COMMON_OPTIONS, CLUSTER_OPTIONS } from './common-options.ts';
import { RUN_OPTIONS } from './run-options.ts';

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
