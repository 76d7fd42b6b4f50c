import { KUBERNETES_VERSIONS } from '../../apiserver/objects/kubernetes-version.ts';
import type { FlagForm } from './arguments.ts';
import {
  apiVersionOption,
  booleanOption,
  choiceOption,
  choicesOption,
  durationOption,
  hostOption,
  integerOption,
  listOption,
  optionGroup,
  textOption,
  vmoduleOption,
} from './option.ts';

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

/** Parts of an installation, named after the folders of hack/deploy, in the order of their application. */
const MANIFEST_PARTS = ['namespace', 'crds', 'rbac', 'manager', 'webhook'] as const;

export type ManifestPart = (typeof MANIFEST_PARTS)[number];

/** Flags of `top`. */
export const TOP_OPTIONS = {
  ...COMMON_OPTIONS,
  ...optionGroup(
    'Other',
    {
      address: textOption({
        help: 'Address of the debug pages of the program',
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

const WEB_PORT_OPTION = integerOption({
  help: 'Port of the page of --web; 0 selects a free port',
  default: 0,
  min: 0,
  max: 65_535,
});

/** Flags of `replay`. */
export const REPLAY_OPTIONS = {
  ...COMMON_OPTIONS,
  ...optionGroup(
    'Other',
    {
      story: booleanOption({ help: 'Print what happened, and do not replay it' }),
      web: booleanOption({
        help: 'Serve a page for a browser, on a loopback address, that shows the recording as a timeline and where the replay differs',
      }),
      'web-port': WEB_PORT_OPTION,
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
  'web-port': WEB_PORT_OPTION,
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
      help: 'Folder to keep all objects, the CA and the credentials in, for the next start. Default: objects are in memory only',
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
    record: textOption({
      help: 'File in which the program is recorded, for replay',
      completion: 'file',
    }),
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
      chart: textOption({
        help: 'Folder to write the Helm chart to. Default: dist/chart',
        completion: 'folder',
      }),
      image: textOption({
        help: 'Image of the program in the Helm chart. Default: as in the manifests',
      }),
      name: textOption({
        help: 'Name of the program in manifests. Default: the name in package.json',
      }),
      'test-timeout': durationOption({
        help: 'Time limit of the tests that generate rbac runs',
        default: '10m',
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
        help: 'Add the kind to a project that init created: files that exist stay as they are, except the lists of controllers and manifests. A kind that exists gets webhooks, or the version of --api-version with its conversion',
      }),
      update: booleanOption({
        help: 'Merge what this version of init would write into a project that a former version created. Files with conflicts get markers, as in git, and the exit code is 1',
      }),
      'dry-run': booleanOption({
        help: 'With --update: print the changes as a patch, and write nothing',
      }),
      webhooks: booleanOption({
        help: 'Add webhooks to the project: a function that sets defaults, one that validates, and their tests. With --add also to an existing project',
      }),
      group: textOption({
        help: 'API group of the kind: a domain that you own. Default: example.com, with --add the group of the first CRD',
      }),
      'api-version': apiVersionOption({
        help: 'API version of the kind, such as v1beta1',
        default: 'v1alpha1',
      }),
      name: textOption({
        help: 'Name of the program, its image and its ServiceAccount. Default: KIND-controller',
      }),
      schema: choiceOption({
        help: 'How the kind is defined: "yaml" is a CRD from which types are generated, "ts" a TypeScript module from which the CRD is generated. With --add, as in the project',
        choices: ['yaml', 'ts'],
        default: 'yaml',
      }),
      'test-runner': choiceOption({
        help: 'What runs the tests: "node" is node:test, "vitest" Vitest. With --add, as in the project',
        choices: ['node', 'vitest'],
        default: 'node',
      }),
      plural: textOption({
        help: 'Plural of the kind, as in URLs and commands. Default: the English plural',
      }),
      scope: choiceOption({
        help: 'Whether objects of the kind are in namespaces',
        choices: ['Namespaced', 'Cluster'],
        default: 'Namespaced',
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
