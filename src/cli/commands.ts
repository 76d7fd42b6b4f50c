import type { Command } from './command.ts';
import { command } from './command.ts';
import { manifest, versionLine } from './package.ts';
import { EXIT_OK } from './errors.ts';
import {
  APPLY_OPTIONS,
  CHECK_OPTIONS,
  COMMON_OPTIONS,
  DEMO_OPTIONS,
  GENERATE_OPTIONS,
  INIT_OPTIONS,
  MANIFESTS_OPTIONS,
  RUN_OPTIONS,
  SERVE_OPTIONS,
  TOP_OPTIONS,
} from './flags/options.ts';

/**
 * All commands, in the order of the help. The first one is the default command. The modules of a command are
 * imported when it runs, so that `--help` and usage errors are fast.
 */
export const COMMANDS: readonly [Command, ...Command[]] = [
  command({
    name: 'run',
    summary: 'Run the controllers against a cluster (default command)',
    description: 'Run the controllers against a cluster until SIGTERM or SIGINT.',
    options: RUN_OPTIONS,
    examples: [
      [
        '--kubeconfig=$HOME/.kube/config -v=4',
        'Run locally against a cluster, and log each sync with its causes',
      ],
      ['--controllers=count --namespaces=dev', 'Run one controller, for one namespace'],
      ['--dry-run --once', 'Log what the controllers would write, and exit'],
    ],
    run: async (flags, context) => {
      const { runConfig } = await import('./run-config.ts');
      const { runController } = await import('./commands/run.ts');
      return runController(runConfig(flags), context);
    },
  }),
  command({
    name: 'demo',
    summary: 'Run a demo of all controllers, without a cluster',
    description:
      'Start an API server in this process, run the controllers against it, and show what each controller does. The exit code is 0 if all checks of the demo pass.',
    options: DEMO_OPTIONS,
    examples: [
      ['demo', 'Show all controllers, in at most 30 s'],
      ['demo --only=at,foo', 'Show two controllers'],
      ['demo --keep', 'Keep the server and the daemon running, for kubectl'],
    ],
    run: async (flags, context) => {
      const { demo } = await import('./commands/demo.ts');
      return demo(flags.values, context);
    },
  }),
  command({
    name: 'serve',
    summary: 'Serve the embedded Kubernetes API, for kubectl and for tests',
    description:
      'Serve a Kubernetes API over HTTPS, with a garbage collector, a scheduler and a simulated kubelet, until SIGTERM or SIGINT.',
    options: SERVE_OPTIONS,
    examples: [
      ['serve --port=6444 --write-kubeconfig=dev.kubeconfig', 'Serve a cluster for kubectl'],
    ],
    run: async (flags, context) => {
      const { serve } = await import('./commands/serve.ts');
      return serve(flags.values, context);
    },
  }),
  command({
    name: 'apply',
    summary: 'Create and update objects of any kind from files',
    description:
      'Apply the manifests in files, folders and URLs to a cluster, by server-side apply: Namespaces and CustomResourceDefinitions first, then all other objects in their order. If a manifest cannot be read, nothing is sent.',
    options: APPLY_OPTIONS,
    examples: [
      ['apply -f crds -f examples/01-count', 'Apply CRDs and their objects'],
      ['apply -f - --dry-run=server < count.yaml', 'Validate on the server, and store nothing'],
    ],
    run: async (flags, context) => {
      const { apply } = await import('./commands/apply.ts');
      return apply(flags.values, context);
    },
  }),
  command({
    name: 'check',
    summary: 'Check permissions, CRDs and clocks before a run',
    description:
      'Check what the controllers need in a cluster: a reachable API server of a supported version, synchronised clocks, the CustomResourceDefinitions, each permission, and the holder of the Lease. Takes the flags, environment and configuration file of run. Changes nothing. The exit code is 1 if a check failed.',
    options: CHECK_OPTIONS,
    examples: [
      ['check --controllers=count --namespaces=dev', 'Check for one controller and one namespace'],
      [
        'check --leader-elect --as=system:serviceaccount:crd-controller-system:crd-controller',
        'Check the permissions of the installed ServiceAccount',
      ],
    ],
    run: async (flags, context) => {
      const { check } = await import('./commands/check.ts');
      return check(flags, context);
    },
  }),
  command({
    name: 'top',
    summary: 'Show a running daemon live: queues, keys, informers, leader',
    description:
      'Show live what a daemon on this machine does: queues and workers, informers, the most frequent and the slowest syncs with their causes, the leader, event loop lag and memory. The daemon must serve its debug pages (--debug-bind-address). If standard output is not a terminal, print once.',
    options: TOP_OPTIONS,
    examples: [
      ['top --address=127.0.0.1:6060', 'Show a daemon on this machine'],
      ['top --once | less', 'Print once'],
    ],
    run: async (flags, context) => {
      const { top } = await import('./commands/top.ts');
      return top(flags.values, context);
    },
  }),
  command({
    name: 'manifests',
    summary: 'Print the manifests of an installation',
    description:
      'Print the manifests of this version, as YAML: Namespace, CustomResourceDefinitions, RBAC, and a Deployment with two replicas.',
    options: MANIFESTS_OPTIONS,
    examples: [
      ['manifests | kubectl apply --server-side -f -', 'Install or upgrade'],
      [
        'manifests --controllers=count --namespaces=dev,test',
        'Install one controller, with permissions in two namespaces only',
      ],
      ['manifests --only=crds', 'Print what requires a cluster administrator to install'],
    ],
    run: async (flags, context) => {
      const { manifests } = await import('./commands/manifests.ts');
      return manifests(flags.values, context);
    },
  }),
  command({
    name: 'generate',
    summary: 'Generate TypeScript from CustomResourceDefinitions',
    description:
      'Write a TypeScript module for each kind and served version in the given files, or in the .yaml, .yml and .json files of the given folders: its types, and the resource descriptor for typed informers, listers and clients.',
    operands: 'CRD.yaml...',
    operandCompletion: 'file',
    options: GENERATE_OPTIONS,
    examples: [
      ['generate crds --out=src/generated', 'Generate types for all CRDs in a folder'],
      ['generate crds --check', 'Fail if the files are not up to date, as in CI'],
    ],
    run: async (flags, context, operands) => {
      const { generate } = await import('./commands/generate.ts');
      return generate(operands, flags.values, context);
    },
  }),
  command({
    name: 'init',
    summary: 'Create a project for a controller of your own',
    description:
      'Write a project for a controller of a new kind: CRD, types, controller, sample object, a test in virtual time, and an embedded cluster to run it on.',
    operands: 'KIND',
    options: INIT_OPTIONS,
    examples: [['init Website --group=acme.org --dir=website', 'Create a project in a new folder']],
    run: async (flags, context, operands) => {
      const { init } = await import('./commands/init.ts');
      return init(operands, flags.values, context);
    },
  }),
  command({
    name: 'completion',
    summary: 'Print the completion script of a shell',
    description:
      'Print the completion script for bash, zsh or fish. It completes commands, flags and values of flags. Its first lines say how to enable it.',
    operands: 'bash|zsh|fish',
    operandCompletion: ['bash', 'zsh', 'fish'],
    options: COMMON_OPTIONS,
    examples: [
      [
        'completion bash >/etc/bash_completion.d/crd-controller',
        'Enable completion in new bash shells',
      ],
    ],
    run: async (_, context, operands) => {
      const { completion } = await import('./commands/completion.ts');
      return completion(operands, COMMANDS, context);
    },
  }),
  command({
    name: 'version',
    summary: 'Print the version',
    description: 'Print the version of this program, the version of Node.js and the platform.',
    options: COMMON_OPTIONS,
    examples: [],
    run: async (_, { print }) => {
      print(versionLine(manifest(), process));
      return EXIT_OK;
    },
  }),
];
