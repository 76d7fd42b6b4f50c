import type { Command } from './command.ts';
import { command } from './command.ts';
import { versionLine } from './commands/version.ts';
import { EXIT_OK } from './exit-codes.ts';
import {
  APPLY_OPTIONS,
  CHECK_OPTIONS,
  DEMO_OPTIONS,
  GENERATE_OPTIONS,
  INIT_OPTIONS,
  MANIFESTS_OPTIONS,
  SERVE_OPTIONS,
  TOP_OPTIONS,
} from './flags/command-options.ts';
import { COMMON_OPTIONS } from './flags/options.ts';
import { RUN_OPTIONS } from './flags/run-options.ts';
import { manifest } from './package.ts';

/**
 * The commands, in the order of the help text; the first is the one that runs without a name. What
 * a command needs is imported when it runs, so that `--help` and a mistyped flag answer at once.
 */
export const COMMANDS: readonly [Command, ...Command[]] = [
  command({
    name: 'run',
    summary: 'Run the controllers against a cluster (default command)',
    description: 'Run the controllers against a cluster until SIGTERM or SIGINT.',
    options: RUN_OPTIONS,
    examples: [
      ['--kubeconfig=$HOME/.kube/config -v=4', 'Run here against a cluster, and say why'],
      ['--controllers=count --namespaces=dev', 'One controller, one namespace'],
      ['--dry-run --once', 'What would it do?'],
    ],
    run: async (flags, world) => {
      const { CONTROLLERS, DEFAULT_CONTROLLERS } = await import('../controllers/registry.ts');
      const { runConfig } = await import('./run-config.ts');
      const { runController } = await import('./commands/run.ts');
      return runController(
        runConfig(flags, { all: [...CONTROLLERS.keys()], onByDefault: DEFAULT_CONTROLLERS }),
        world,
      );
    },
  }),
  command({
    name: 'demo',
    summary: 'Run a demo of all controllers, without a cluster',
    description:
      'Start an API server in this process, run the controllers against it, and show what each of them does. Checks what it shows; exits with 0 if all of it is so.',
    options: DEMO_OPTIONS,
    examples: [
      ['demo', 'Every controller, half a minute at most'],
      ['demo --only=at,foo', 'Two of them'],
      ['demo --keep', 'And then stay for kubectl'],
    ],
    run: async (flags, world) => {
      const { demo } = await import('./commands/demo.ts');
      return demo(flags.values, world);
    },
  }),
  command({
    name: 'serve',
    summary: 'Serve the embedded Kubernetes API, for kubectl and for tests',
    description:
      'Serve a Kubernetes API over HTTPS, with garbage collection and a kubelet that pretends to run Pods, until SIGTERM or SIGINT.',
    options: SERVE_OPTIONS,
    examples: [['serve --port=6444 --write-kubeconfig=dev.kubeconfig', 'A cluster for kubectl']],
    run: async (flags, world) => {
      const { serve } = await import('./commands/serve.ts');
      return serve(flags.values, world);
    },
  }),
  command({
    name: 'apply',
    summary: 'Create and update objects of any kind from files',
    description:
      'Apply the manifests in files, folders and URLs to a cluster, by server-side apply: Namespaces and CustomResourceDefinitions first, then all others in their order. Nothing is sent unless everything can be read.',
    options: APPLY_OPTIONS,
    examples: [
      ['apply -f crds -f examples/01-count', 'A definition and an object of it, in one go'],
      ['apply -f - --dry-run=server < count.yaml', 'What would happen?'],
    ],
    run: async (flags, world) => {
      const { apply } = await import('./commands/apply.ts');
      return apply(flags.values, world);
    },
  }),
  command({
    name: 'check',
    summary: 'Check permissions, CRDs and clocks before a run',
    description:
      'Look at all that the controllers need of a cluster: that its API server answers, and in time; its version; the clocks; the CustomResourceDefinitions; every right; and who holds the Lease. Takes the flags of run, environment and configuration file included. Changes nothing; exits with 1 if anything failed.',
    options: CHECK_OPTIONS,
    examples: [
      ['check --controllers=count --namespaces=dev', 'What is going to be run, as it will be run'],
      [
        'check --leader-elect --as=system:serviceaccount:crd-controller-system:crd-controller',
        'May the installed one do its work?',
      ],
    ],
    run: async (flags, world) => {
      const { check } = await import('./commands/check.ts');
      return check(flags, world);
    },
  }),
  command({
    name: 'top',
    summary: 'Show a running daemon live: queues, keys, informers, leader',
    description:
      'Show what a daemon on this machine does, live: its queues and workers, its informers, the keys that run most often and the runs that took longest, with why; who leads; event loop and memory. It must have been given --debug-bind-address. Where standard output is no terminal it prints that once.',
    options: TOP_OPTIONS,
    examples: [
      ['top --address=127.0.0.1:6060', 'A daemon on this machine'],
      ['top --once | less', 'As it is now'],
    ],
    run: async (flags, world) => {
      const { top } = await import('./commands/top.ts');
      return top(flags.values, world);
    },
  }),
  command({
    name: 'manifests',
    summary: 'Print the manifests of an installation',
    description:
      'Print the manifests that fit this build, as YAML: namespace, CustomResourceDefinitions, rights, and the Deployment of two replicas.',
    options: MANIFESTS_OPTIONS,
    examples: [
      ['manifests | kubectl apply --server-side -f -', 'Install, or upgrade'],
      [
        'manifests --controllers=count --namespaces=dev,test',
        'One controller, without any right beyond two namespaces',
      ],
      ['manifests --only=crds', 'What an admin of the cluster has to install'],
    ],
    run: async (flags, world) => {
      const { manifests } = await import('./commands/manifests.ts');
      return manifests(flags.values, world);
    },
  }),
  command({
    name: 'generate',
    summary: 'Generate TypeScript from CustomResourceDefinitions',
    description:
      'Write one TypeScript module for each kind and served version in the files (folders: their .yaml, .yml and .json files): its types, and the descriptor by which informers, listers and clients of it are typed.',
    operands: 'CRD.yaml...',
    operandCompletion: 'file',
    options: GENERATE_OPTIONS,
    examples: [
      ['generate crds --out=src/generated', 'Types for all that is in a folder'],
      ['generate crds --check', 'Fail if they are stale, as in CI'],
    ],
    run: async (flags, world, operands) => {
      const { generate } = await import('./commands/generate.ts');
      return generate(operands, flags.values, world);
    },
  }),
  command({
    name: 'init',
    summary: 'Create a project for a controller of your own',
    description:
      'Write a project for a controller of a new kind: its CRD and types, the controller, a sample, a test in virtual time, and a cluster in the process to try it on.',
    operands: 'KIND',
    options: INIT_OPTIONS,
    examples: [['init Website --group=acme.org --dir=website', 'A project in a new folder']],
    run: async (flags, world, operands) => {
      const { init } = await import('./commands/init.ts');
      return init(operands, flags.values, world);
    },
  }),
  command({
    name: 'completion',
    summary: 'Print the completion script of a shell',
    description:
      'Print a script by which bash, zsh or fish completes commands, flags, and the values of flags. What to do with it is in its first lines.',
    operands: 'bash|zsh|fish',
    operandCompletion: ['bash', 'zsh', 'fish'],
    options: COMMON_OPTIONS,
    examples: [['completion bash >/etc/bash_completion.d/crd-controller', 'For every new bash']],
    run: async (_, world, operands) => {
      const { completion } = await import('./commands/completion.ts');
      return completion(operands, COMMANDS, world);
    },
  }),
  command({
    name: 'version',
    summary: 'Print the version',
    description: 'Print the version of this program, of Node.js and of the machine.',
    options: COMMON_OPTIONS,
    examples: [],
    run: async (_, { print }) => {
      print(versionLine(manifest(), process));
      return EXIT_OK;
    },
  }),
];
