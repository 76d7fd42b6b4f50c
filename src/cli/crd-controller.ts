import { NODES } from '../api/builtin.ts';
import { ATS } from '../api/generated/at.ts';
import { COUNTS } from '../api/generated/count.ts';
import { FOOS } from '../api/generated/foo.ts';
import { WEB_APPS } from '../api/generated/web-app.ts';
import { atWebhooks } from '../controllers/at/webhooks.ts';
import { booleanOption } from './flags/option.ts';
import {
  APPLY_OPTIONS,
  COMMON_OPTIONS,
  DEMO_OPTIONS,
  GENERATE_OPTIONS,
  INIT_OPTIONS,
  SERVE_OPTIONS,
} from './flags/options.ts';
import { UsageError } from './common/errors.ts';
import { manifest, packageRoot } from './program/package.ts';
import { programCommand } from './program/program.ts';
import type { ProgramCommand, ProgramController, ProgramOptions } from './program/program.ts';
import { runProgram } from './command-line.ts';

const FLAGS = {
  'pod-count-events': booleanOption({
    help: 'Emit an event with the count on each new Pod, if pod-count is enabled',
    default: true,
  }),
};

/** The controllers by their names in `--controllers`. */
const CONTROLLERS: Readonly<Record<string, ProgramController<typeof FLAGS>>> = {
  count: {
    resource: COUNTS,
    load: async () => (await import('../controllers/count/controller.ts')).countController,
  },
  webapp: {
    resource: WEB_APPS,
    load: async () => {
      const { webAppController } = await import('../controllers/webapp/controller.ts');
      return (kit) => webAppController(kit);
    },
  },
  at: {
    resource: ATS,
    load: async () => (await import('../controllers/at/controller.ts')).atController,
  },
  foo: {
    resource: FOOS,
    load: async () => (await import('../controllers/foo/controller.ts')).fooController,
  },
  'pod-count': {
    resource: NODES,
    load: async () => {
      const { podCountController } = await import('../controllers/pod-count/controller.ts');
      return (kit, flags) => podCountController(kit, { podEvents: flags['pod-count-events'] });
    },
    isClusterScoped: true,
    // It writes to cluster-scoped objects.
    isOnByDefault: false,
  },
};

/** Flags of `generate`, and what can be generated with them. */
const USERS_OF = {
  chart: ['helm'],
  deploy: ['manifests', 'dashboard'],
  image: ['helm'],
  name: ['manifests', 'helm'],
} as const;

/** The modules of a command are imported when it runs, so that `--help` and usage errors are fast. */
const COMMANDS: readonly ProgramCommand[] = [
  programCommand({
    name: 'demo',
    summary: 'Run a demo of all controllers, without a cluster',
    description:
      'Start an API server in this process, run the controllers against it, and show what each controller does. The exit code is 0 if all checks of the demo pass.',
    flags: DEMO_OPTIONS,
    examples: [
      ['demo', 'Show all controllers, in at most 30 s'],
      ['demo --only=at,foo', 'Show two controllers'],
      ['demo --keep', 'Keep the server and the program running, for kubectl'],
    ],
    run: async (flags, context) => {
      const { demo } = await import('./commands/demo.ts');
      return demo(flags, context);
    },
  }),
  programCommand({
    name: 'serve',
    summary: 'Serve the embedded Kubernetes API, for kubectl and for tests',
    description:
      'Serve a Kubernetes API over HTTPS, with a garbage collector, a scheduler and a simulated kubelet, until SIGTERM or SIGINT. With COMMAND, run it with KUBECONFIG and USE_EXISTING_CLUSTER=true, and end with its exit code.',
    operands: '[-- COMMAND...]',
    flags: SERVE_OPTIONS,
    examples: [
      ['serve --port=6444 --write-kubeconfig=dev.kubeconfig', 'Serve a cluster for kubectl'],
      ['serve --load=crds -- pytest -q', 'Run tests in any language against a cluster'],
    ],
    run: async (flags, context, operands) => {
      const { serve } = await import('./commands/serve.ts');
      return serve(flags, context, operands);
    },
  }),
  programCommand({
    name: 'envtest-assets',
    summary: 'Write programs for envtest that run the embedded API',
    description:
      'Write programs that stand in for etcd and kube-apiserver, and kubectl if there is one, to a folder for KUBEBUILDER_ASSETS, and print the folder. The tests of an operator in any language that use the binaries of envtest use the embedded API server instead. Without FOLDER, the folder is in the caches of the user.',
    operands: '[FOLDER]',
    operandCompletion: 'folder',
    flags: COMMON_OPTIONS,
    examples: [
      [
        'KUBEBUILDER_ASSETS=$(npx crd-controller envtest-assets) go test ./...',
        'Run the tests of a Go operator',
      ],
    ],
    run: async (_, context, operands) => {
      const { envtestAssets } = await import('./commands/envtest-assets.ts');
      return envtestAssets(operands, context);
    },
  }),
  programCommand({
    name: 'apply',
    summary: 'Create and update objects of any kind from files',
    description:
      'Apply the manifests in files, folders and URLs to a cluster, by server-side apply: Namespaces and CustomResourceDefinitions first, then all other objects in their order. If a manifest cannot be read, nothing is sent.',
    flags: APPLY_OPTIONS,
    examples: [
      ['apply -f crds -f examples/01-count', 'Apply CRDs and their objects'],
      ['apply -f - --dry-run=server < count.yaml', 'Validate on the server, and store nothing'],
    ],
    run: async (flags, context) => {
      const { apply } = await import('./commands/apply.ts');
      return apply(flags, context);
    },
  }),
  programCommand({
    name: 'generate',
    summary: 'Generate types, CRDs, roles, manifests, charts, dashboards',
    description:
      'Write a TypeScript module for each kind and served version in the given files, or in the .yaml, .yml and .json files of the given folders: its types, and the resource descriptor for typed informers, listers and clients. For a TypeScript or JavaScript module, write the CustomResourceDefinition of each kind that it defines with customResource of crd-controller/schema. "generate rbac" runs the tests (npm test) and writes the ClusterRoles that their TestedRoles needed. "generate manifests" prints the manifests of a program for CRDs, and for the webhooks that a module exports. "generate helm" writes a Helm chart of the same manifests: those of the program that src/program.ts or another module exports, or those for CRDs. "generate dashboard" writes a Grafana dashboard with the metrics of the program, and its alerts, to deploy/monitoring.',
    operands: '[rbac|manifests|helm|dashboard] CRD.yaml...',
    operandCompletion: 'file',
    flags: GENERATE_OPTIONS,
    examples: [
      ['generate crds --out=src/generated', 'Generate types for all CRDs in a folder'],
      ['generate src/kinds.ts --out=crds', 'Generate the CRDs of the kinds that a module defines'],
      ['generate crds --check', 'Fail if the files are not up to date, as in CI'],
      ['generate rbac', 'Write the ClusterRoles of a project from the requests of its tests'],
      [
        'generate manifests crds --name=my-program --deploy=deploy',
        'Write the kustomization of a program',
      ],
      ['generate helm', 'Write a Helm chart of the project in this folder to dist/chart'],
      ['generate helm --name=crd-controller', 'Write a Helm chart of this program'],
    ],
    run: async (flags, context, operands) => {
      const [what, ...rest] = operands;
      const unused = (['chart', 'deploy', 'image', 'name'] as const).find(
        (flag) => flags[flag] !== '' && !USERS_OF[flag].some((user) => user === what),
      );
      if (unused !== undefined) {
        const users = USERS_OF[unused].map((user) => `generate ${user}`).join(' or ');
        throw new UsageError(`--${unused}=${flags[unused]} requires: ${users}`);
      }
      if (what === 'helm') {
        const { generateHelm } = await import('./commands/generate-helm.ts');
        return generateHelm(rest, flags, context);
      }
      if (what === 'dashboard') {
        const { generateDashboard } = await import('./commands/generate-dashboard.ts');
        return generateDashboard(rest, flags, context);
      }
      if (what === 'rbac') {
        const { generateRbac } = await import('./commands/generate-rbac.ts');
        return generateRbac(rest, flags, context);
      }
      if (what === 'manifests') {
        const { generateManifests } = await import('./commands/generate-manifests.ts');
        return generateManifests(rest, flags, context);
      }
      const { generate } = await import('./commands/generate.ts');
      return generate(operands, flags, context);
    },
  }),
  programCommand({
    name: 'init',
    summary: 'Create a project for a controller of your own',
    description:
      'Write a project for a controller of a new kind: CRD, types, controller, sample object, tests in virtual time, an embedded cluster to run it on, and what production needs: image, manifests with exact roles, CI. With --add, add a kind to such a project.',
    operands: 'KIND',
    flags: INIT_OPTIONS,
    examples: [
      ['init Website --group=acme.org --dir=website', 'Create a project in a new folder'],
      ['init --add Domain', 'Add a kind to the project in this folder'],
    ],
    run: async (flags, context, operands) => {
      const { init } = await import('./commands/init.ts');
      return init(operands, flags, context);
    },
  }),
];

/** Runs the program of this package. */
export function runCrdController(): Promise<void> {
  return runProgram(crdController());
}

/** Returns the program of this package. */
export function crdController(): ProgramOptions {
  const { version, gitHead } = manifest();
  return {
    name: 'crd-controller',
    version,
    revision: gitHead,
    controllers: CONTROLLERS,
    webhooks: atWebhooks,
    // They need permissions that the component `webhooks` of the installation grants.
    webhooksOnByDefault: false,
    flags: FLAGS,
    commands: COMMANDS,
    deploy: new URL('hack/deploy/', packageRoot()),
  };
}
