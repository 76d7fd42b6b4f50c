import type { Command } from './program/command.ts';
import { command } from './program/command.ts';
import { versionLine } from './program/package.ts';
import { EXIT_OK } from './common/errors.ts';
import {
  COMMON_OPTIONS,
  MANIFESTS_OPTIONS,
  MIGRATE_OPTIONS,
  TOP_OPTIONS,
} from './flags/options.ts';
import { checkFlags, runOptions } from './program/run-options.ts';
import { groupResourceOf } from '../api/resource.ts';
import { optionGroup } from './flags/option.ts';
import type { ProgramCommand, ProgramOptions } from './program/program.ts';

/**
 * Returns all commands of a program, in the order of the help. The first one is the default command. The
 * modules of a command are imported when it runs, so that `--help` and usage errors are fast.
 */
export function commandsOf(program: ProgramOptions): readonly [Command, ...Command[]] {
  const { name, controllers, commands = [], deploy } = program;
  const [first = ''] = Object.keys(controllers);
  const customResources = customResourcesOf(program);
  const [kind = 'websites.example.com'] = customResources;
  const all: readonly [Command, ...Command[]] = [
    command({
      name: 'run',
      summary: 'Run the controllers against a cluster (default command)',
      description: 'Run the controllers against a cluster until SIGTERM or SIGINT.',
      options: runOptions(program),
      examples: [
        [
          '--kubeconfig=$HOME/.kube/config -v=4',
          'Run locally against a cluster, and log each sync with its causes',
        ],
        [`--controllers=${first} --namespaces=dev`, 'Run one controller, for one namespace'],
        ['--dry-run --once', 'Log what the controllers would write, and exit'],
      ],
      run: async (flags, context) => {
        const { runConfig } = await import('./program/run-config.ts');
        const { runController } = await import('./commands/run.ts');
        return runController(program, runConfig(flags, program), context);
      },
    }),
    ...commands.map(ownCommand),
    command({
      name: 'check',
      summary: 'Check permissions, CRDs and clocks before a run',
      description:
        'Check what the controllers need in a cluster: a reachable API server of a supported version, synchronised clocks, the CustomResourceDefinitions, each permission, and the holder of the Lease. Takes the flags, environment and configuration file of run. Changes nothing. The exit code is 1 if a check failed.',
      options: checkFlags(program),
      examples: [
        [
          `check --controllers=${first} --namespaces=dev`,
          'Check for one controller and one namespace',
        ],
        [
          `check --leader-elect --as=system:serviceaccount:${name}-system:${name}`,
          'Check the permissions of the installed ServiceAccount',
        ],
      ],
      run: async (flags, context) => {
        const { check } = await import('./commands/check.ts');
        return check(program, flags, context);
      },
    }),
    command({
      name: 'top',
      summary: 'Show a running daemon live: queues, keys, informers, leader',
      description:
        'Show live what a daemon on this machine does: queues and workers, informers, the most frequent and the slowest syncs with their causes, the leader, event loop lag and memory. Enter opens the selected queue or key and shows why the key ran; ? lists the keys. The daemon must serve its debug pages (--debug-bind-address). If standard output is not a terminal, print once. NO_COLOR and FORCE_COLOR apply.',
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
      name: 'migrate',
      summary: 'Rewrite the objects of a custom resource in its storage version',
      description:
        'Rewrite the stored objects of a custom resource in the storage version of its CustomResourceDefinition, and remove the other versions from status.storedVersions. Then a version that is no longer served can be removed from the definition. If an object cannot be rewritten, the definition is unchanged. The command can be run again at any time.',
      operands: 'KIND',
      operandCompletion: customResources,
      options: MIGRATE_OPTIONS,
      examples: [
        [`migrate ${kind} --dry-run`, 'Check that every object can be rewritten'],
        [`migrate ${kind}`, 'Rewrite the objects'],
      ],
      run: async (flags, context, operands) => {
        const { migrate } = await import('./commands/migrate.ts');
        return migrate(operands, flags.values, context);
      },
    }),
    ...(deploy ? [manifestsCommand(program, deploy, first)] : []),
    command({
      name: 'completion',
      summary: 'Print the completion script of a shell',
      description:
        'Print the completion script for bash, zsh or fish. It completes commands, flags and values of flags. Its first lines say how to enable it.',
      operands: 'bash|zsh|fish',
      operandCompletion: ['bash', 'zsh', 'fish'],
      options: COMMON_OPTIONS,
      examples: [
        [`completion bash >/etc/bash_completion.d/${name}`, 'Enable completion in new bash shells'],
      ],
      run: async (_, context, operands) => {
        const { completion } = await import('./commands/completion.ts');
        return completion(operands, program, all, context);
      },
    }),
    command({
      name: 'version',
      summary: 'Print the version',
      description: 'Print the version of this program, the version of Node.js and the platform.',
      options: COMMON_OPTIONS,
      examples: [],
      run: async (_, { print }) => {
        print(versionLine(program, process));
        return EXIT_OK;
      },
    }),
  ];
  const names = all.map((each) => each.name);
  const twice = names.find((each, at) => names.indexOf(each) < at);
  if (twice !== undefined) throw new RangeError(`runDaemon: the command ${twice} exists already`);
  return all;
}

function manifestsCommand(program: ProgramOptions, deploy: URL, controller: string): Command {
  return command({
    name: 'manifests',
    summary: 'Print the manifests of an installation',
    description:
      'Print the manifests of this version, as YAML: Namespace, CustomResourceDefinitions, RBAC, and the Deployment.',
    options: MANIFESTS_OPTIONS,
    examples: [
      ['manifests | kubectl apply --server-side -f -', 'Install or upgrade'],
      [
        `manifests --controllers=${controller} --namespaces=dev,test`,
        'Install one controller, with permissions in two namespaces only',
      ],
      ['manifests --only=crds', 'Print what requires a cluster administrator to install'],
    ],
    run: async (flags, context) => {
      const { manifests } = await import('./commands/manifests.ts');
      return manifests(program, deploy, flags.values, context);
    },
  });
}

/** Returns the names of the custom resources that the program reconciles. */
function customResourcesOf({ controllers }: ProgramOptions): string[] {
  const names = Object.values(controllers).map(({ resource }) => groupResourceOf(resource));
  return [...new Set(names)].filter((name) => /\..*\./.test(name));
}

/** Returns a command of the program, with the flags of every command. */
function ownCommand(own: ProgramCommand): Command {
  const { name, summary, description = `${summary}.`, flags = {}, examples = [] } = own;
  const { operands, operandCompletion } = own;
  return command({
    name,
    summary,
    description,
    examples,
    ...(operands !== undefined && { operands }),
    ...(operandCompletion !== undefined && { operandCompletion }),
    options: { ...optionGroup('Other', flags, { flagOnly: true }), ...COMMON_OPTIONS },
    run: ({ values }, context, rest) => own.run(values, context, rest),
  });
}
