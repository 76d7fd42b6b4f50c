import { groupResourceOf } from '../api/resource.ts';
import { KubeConfigError } from '../client/kube-config/kube-config-error.ts';
import { AddressError } from '../serving/address-error.ts';
import { terminationSignal } from '../manager/signals.ts';
import type { Logger } from '../util/logger.ts';
import { exitProcess } from '../util/process-exit.ts';
import { ownCommand } from './common/own-command.ts';
import {
  errorText,
  EXIT_FAILURE,
  EXIT_OK,
  EXIT_USAGE,
  isProgrammerError,
  UsageError,
} from './common/errors.ts';
import { COMPLETION_FLAG, completionAnswer } from './flags/flag-parser.ts';
import {
  MANIFESTS_OPTIONS,
  MIGRATE_OPTIONS,
  REPLAY_OPTIONS,
  TOP_OPTIONS,
} from './flags/options.ts';
import { helpWidth } from './program/help.ts';
import { cycleVerbosityOnSignal } from './logs/log-level.ts';
import { logText } from './logs/log-value.ts';
import { createLogging } from './logs/logging.ts';
import type { LoggingOptions } from './logs/logging.ts';
import { sourceStack } from './logs/source-stack.ts';
import { findCommand, readCommand } from './program/command.ts';
import type { CommandRequest, Commands } from './program/command.ts';
import { versionLine } from './program/package.ts';
import { checkProgram, environmentPrefix, programCommand } from './program/program.ts';
import type { Flags, ProgramCommand, ProgramOptions } from './program/program.ts';
import { checkFlags, runOptions } from './program/run-options.ts';
import { printableTerminal, processTerminal } from './terminal.ts';
import type { Terminal } from './terminal.ts';

/**
 * Runs a program with the command line of this process, and exits with its code. The program has the flags
 * and commands of `crd-controller`: `run`, which is the default, `check`, `top`, `manifests`, `completion`
 * and `version`.
 *
 * @param argv flags and arguments; by default those of the process
 * @throws {TypeError} on an unknown option
 * @throws {RangeError} if a name is malformed or used twice
 */
export async function runProgram<F extends Flags>(
  program: ProgramOptions<F>,
  argv: readonly string[] = process.argv.slice(2),
): Promise<void> {
  const code = await commandLine(program, argv, process.env);
  process.exitCode = code;
  // All work has ended. An open handle must not delay the exit.
  setTimeout(() => exitProcess(process, code), 1000).unref();
}

/**
 * Runs the program. Standard output has the output of the command. Standard error has the log, and one line
 * with the error if the command fails.
 *
 * @returns the exit code
 */
export async function commandLine(
  program: ProgramOptions,
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  terminal: Terminal = processTerminal(),
): Promise<number> {
  checkProgram(program);
  const printable = printableTerminal(terminal);
  const code = await runCommand(program, argv, environment, printable);
  const { output, warn } = printable;
  await output?.flush();
  if (!output?.failed.aborted) return code;
  warn(`Error: Cannot write to standard output: ${errorText(output.failed.reason)}`);
  return code === EXIT_OK ? EXIT_FAILURE : code;
}

async function runCommand(
  program: ProgramOptions,
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  terminal: Terminal,
): Promise<number> {
  let verbosity = 0;
  let named: ProgramCommand | undefined;
  const commands = commandsOf(program);
  try {
    if (argv[0] === COMPLETION_FLAG) {
      const { completionLines } = await import('./completion/candidates.ts');
      terminal.print(completionAnswer(argv, (words) => completionLines(program, commands, words)));
      return EXIT_OK;
    }
    requireCertificateChecks(environment);
    named = findCommand(commands, argv);
    const request = await readCommand(
      program,
      commands,
      argv,
      named,
      { variables: environment, prefix: environmentPrefix(program) },
      { columns: helpWidth(terminal.columns), version: versionLine(program, process) },
    );
    if (typeof request === 'string') {
      terminal.print(request);
      return EXIT_OK;
    }
    verbosity = request.values.v;
    return await runParsed(program, request, environment, terminal);
  } catch (error) {
    terminal.warn(errorMessage(program, error, named, verbosity, environment));
    return isOfTheUser(error) ? EXIT_USAGE : EXIT_FAILURE;
  }
}

/** With this variable, Node.js accepts every certificate, and any server could receive the token. */
function requireCertificateChecks(environment: Readonly<Record<string, string | undefined>>): void {
  if (environment['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    throw new UsageError(
      'NODE_TLS_REJECT_UNAUTHORIZED=0 disables certificate verification: unset it, and set the CA in the kubeconfig or in NODE_EXTRA_CA_CERTS',
    );
  }
}

/** Flags that affect one log format only. */
const FLAGS_OF_FORMAT: Readonly<Record<LoggingOptions['format'], readonly string[]>> = {
  text: ['vmodule', 'skip-headers', 'add-dir-header'],
  json: ['log-json-split-stream'],
};

async function runParsed(
  program: ProgramOptions,
  { command, operands, values, changed, klogFlags }: CommandRequest,
  environment: Readonly<Record<string, string | undefined>>,
  { print, warn, colour, logging: loggingEnvironment, output }: Terminal,
): Promise<number> {
  const logging: LoggingOptions = {
    format: values['logging-format'],
    verbosity: values.v,
    vmodule: values.vmodule,
    skipHeaders: values['skip-headers'],
    addDirHeader: values['add-dir-header'],
    splitStream: values['log-json-split-stream'],
  };
  const { log, level } = createLogging(logging, loggingEnvironment);
  const watch = exitOnUnhandledErrors(log);
  const termination = terminationSignal(process, log);
  log.v(1).info('Flags', { ...changed });
  if (klogFlags.length > 0) {
    log.v(1).info("Ignored klog's legacy flags: logs are written to standard error", {
      flags: klogFlags,
    });
  }
  const otherFlags = FLAGS_OF_FORMAT[logging.format === 'json' ? 'text' : 'json'];
  const ignored = otherFlags.filter((flag) => flag in changed);
  if (ignored.length > 0) {
    log.info('Ignored flags of another log format', { flags: ignored });
  }
  const cycle = cycleVerbosityOnSignal(process, level);
  try {
    const context = {
      program,
      log,
      logging,
      logLevel: level,
      // A command whose output cannot be written is stopped.
      signal: output ? AbortSignal.any([termination.signal, output.failed]) : termination.signal,
      environment,
      print,
      warn,
      colour,
    };
    return await command.run(values, context, operands);
  } finally {
    watch.dispose();
    cycle.dispose();
    termination.dispose();
  }
}

/** Logs an unhandled error and exits: a partly working program must not continue. */
function exitOnUnhandledErrors(log: Logger): { dispose(): void } {
  const listener = (error: Error, origin: NodeJS.UncaughtExceptionOrigin) => {
    log.error(error, 'Unhandled error', { origin, stack: sourceStack(error) });
    exitProcess(process, EXIT_FAILURE);
  };
  process.on('uncaughtException', listener);
  return { dispose: () => process.off('uncaughtException', listener) };
}

/** Whether flags, environment or files of the user are wrong; the message is complete without a stack. */
function isOfTheUser(error: unknown): boolean {
  return (
    error instanceof UsageError || error instanceof KubeConfigError || error instanceof AddressError
  );
}

/** Returns one line with the error, and a second line with a hint or the stack of an internal error. */
function errorMessage(
  { name }: ProgramOptions,
  error: unknown,
  named: ProgramCommand | undefined,
  verbosity: number,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const lines = [`Error: ${logText(errorText(error))}`];
  if (error instanceof UsageError || error instanceof AddressError) {
    const words = [...(named ? [named.name] : []), '--help'];
    lines.push(`Run '${ownCommand(name, words, environment)}' for usage.`);
  }
  const hasStack = isProgrammerError(error) || (verbosity >= 4 && !isOfTheUser(error));
  if (error instanceof Error && hasStack) {
    lines.push(logText(sourceStack(error)));
  }
  return lines.join('\n');
}

/**
 * Returns all commands of a program, in the order of the help. The first one is the default command. The
 * modules of a command are imported when it runs, so that `--help` and usage errors are fast.
 */
export function commandsOf(program: ProgramOptions): Commands {
  const { name, controllers, commands = [], deploy } = program;
  const [first = ''] = Object.keys(controllers);
  const customResources = customResourcesOf(program);
  const [kind = 'websites.example.com'] = customResources;
  const all: Commands = [
    programCommand({
      name: 'run',
      summary: 'Run the controllers against a cluster',
      description: 'Run the controllers against a cluster until SIGTERM or SIGINT.',
      flags: runOptions(program),
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
        const { run } = await import('./commands/run.ts');
        return run(program, runConfig(flags, program), context);
      },
    }),
    ...commands,
    programCommand({
      name: 'check',
      summary: 'Check permissions, CRDs and clocks before a run',
      description:
        'Check what the controllers need in a cluster: a reachable API server of a supported version, synchronised clocks, the CustomResourceDefinitions, each permission, and the holder of the Lease. Takes the flags, environment and configuration file of run. Changes nothing. The exit code is 1 if a check failed.',
      flags: checkFlags(program),
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
    programCommand({
      name: 'top',
      summary: 'Show a running program live: queues, keys, informers, leader',
      description:
        'Show live what a program on this machine does: queues and workers, informers, the most frequent and the slowest syncs with their causes, the leader, event loop lag and memory. Enter opens the selected queue or key and shows why the key ran; ? lists the keys. The program must serve its debug pages (--debug-bind-address). If standard output is not a terminal, print once. NO_COLOR and FORCE_COLOR apply.',
      flags: TOP_OPTIONS,
      examples: [
        ['top --address=127.0.0.1:6060', 'Show a program on this machine'],
        ['top --once | less', 'Print once'],
      ],
      run: async (flags, context) => {
        const { top } = await import('./commands/top.ts');
        return top(flags, context);
      },
    }),
    programCommand({
      name: 'migrate',
      summary: 'Rewrite the objects of a kind in its storage version',
      description:
        'Rewrite the stored objects of a custom resource in the storage version of its CustomResourceDefinition, and remove the other versions from status.storedVersions. Then a version that is no longer served can be removed from the definition. If an object cannot be rewritten, the definition is unchanged. The command can be run again at any time.',
      operands: 'KIND',
      operandCompletion: customResources,
      flags: MIGRATE_OPTIONS,
      examples: [
        [`migrate ${kind} --dry-run`, 'Check that every object can be rewritten'],
        [`migrate ${kind}`, 'Rewrite the objects'],
      ],
      run: async (flags, context, operands) => {
        const { migrate } = await import('./commands/migrate.ts');
        return migrate(operands, flags, context);
      },
    }),
    programCommand({
      name: 'replay',
      summary: 'Run the controllers offline against a recording of run --record',
      description:
        'Run the controllers without a cluster, in virtual time, against a file that run --record has written, and print how their writes differ from the recorded ones, sync by sync. The exit code is 0 if nothing differs, 1 if a sync differs, and 2 if the file cannot be read.',
      operands: 'FILE',
      operandCompletion: 'file',
      flags: { ...program.flags, ...REPLAY_OPTIONS },
      examples: [
        ['replay incident.ndjson', 'Compare with the controllers of this version'],
        ['replay incident.ndjson --story', 'Print who did what, when'],
        ['replay incident.ndjson --web', 'Show it in a browser, as a timeline'],
      ],
      run: async (flags, context, operands) => {
        const { replayFile } = await import('./commands/replay.ts');
        return replayFile(operands, flags, context);
      },
    }),
    ...(deploy ? [manifestsCommand(program, deploy, first)] : []),
    programCommand({
      name: 'completion',
      summary: 'Print the completion script of a shell',
      description:
        'Print the completion script for bash, zsh or fish. It completes commands, flags and values of flags. Its first lines say how to enable it.',
      operands: 'bash|zsh|fish',
      operandCompletion: ['bash', 'zsh', 'fish'],
      examples: [
        [`completion bash >/etc/bash_completion.d/${name}`, 'Enable completion in new bash shells'],
      ],
      run: async (_, context, operands) => {
        const { completion } = await import('./commands/completion.ts');
        return completion(operands, program, context);
      },
    }),
    programCommand({
      name: 'version',
      summary: 'Print the version',
      description: 'Print the version of this program, the version of Node.js and the platform.',
      run: async (_, { print }) => {
        print(versionLine(program, process));
        return EXIT_OK;
      },
    }),
  ];
  const names = all.map((each) => each.name);
  const twice = names.find((each, at) => names.indexOf(each) < at);
  if (twice !== undefined) throw new RangeError(`runProgram: the command ${twice} exists already`);
  return all;
}

function manifestsCommand(
  program: ProgramOptions,
  deploy: URL,
  controller: string,
): ProgramCommand {
  return programCommand({
    name: 'manifests',
    summary: 'Print the manifests of an installation',
    description:
      'Print the manifests of this version, as YAML: Namespace, CustomResourceDefinitions, RBAC, and the Deployment.',
    flags: MANIFESTS_OPTIONS,
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
      return manifests(program, deploy, flags, context);
    },
  });
}

/** Returns the names of the custom resources that the program reconciles. */
function customResourcesOf({ controllers }: ProgramOptions): string[] {
  const names = Object.values(controllers).map(({ resource }) => groupResourceOf(resource));
  return [...new Set(names)].filter((name) => /\..*\./.test(name));
}
