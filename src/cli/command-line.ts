import { KubeConfigError } from '../client/kube-config/kube-config-file.ts';
import { terminationSignal } from '../manager/signals.ts';
import type { Logger } from '../util/logger.ts';
import { exitProcess } from '../util/process-exit.ts';
import type { Arguments } from './flags/arguments.ts';
import { normaliseArguments } from './flags/arguments.ts';
import type { Command, ReadyCommand } from './command.ts';
import { COMMANDS } from './commands.ts';
import { manifest, versionLine } from './package.ts';
import { didYouMean } from '../util/did-you-mean.ts';
import { errorText, isProgrammerError } from './error-text.ts';
import { EXIT_FAILURE, EXIT_OK, EXIT_USAGE, UsageError } from './exit-codes.ts';
import { flagForms } from './flags/flag-parser.ts';
import { goQuote } from '../util/go-quote.ts';
import { helpText } from './flags/help.ts';
import { cycleVerbosityOnSignal } from './logs/log-level.ts';
import { logText } from './logs/log-value.ts';
import type { LoggingOptions } from './logs/logging.ts';
import { createLogging } from './logs/logging.ts';
import { KLOG_FLAGS } from './flags/common-options.ts';
import type { Terminal } from './terminal.ts';
import { processTerminal } from './terminal.ts';

/**
 * Runs the program: standard output is for what was asked for, standard error for the log and for
 * one line that says why it could not be done.
 *
 * @returns the exit code
 */
export async function commandLine(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  terminal: Terminal = processTerminal(),
): Promise<number> {
  const code = await runCommand(argv, environment, terminal);
  const { output, warn } = terminal;
  await output?.flush();
  if (!output?.failed.aborted) return code;
  warn(`Error: Cannot write to standard output: ${errorText(output.failed.reason)}`);
  return code === EXIT_OK ? EXIT_FAILURE : code;
}

async function runCommand(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  terminal: Terminal,
): Promise<number> {
  let verbosity = 0;
  let named: Command | undefined;
  try {
    requireCertificateChecks(environment);
    named = findCommand(argv);
    const { command, flags, operands, klogFlags } = readCommand(argv, named);
    if (flags.includes('--help=true')) {
      terminal.print(await helpText(command, terminal.columns));
      return EXIT_OK;
    }
    const ready = await command.prepare(flags, operands, environment);
    verbosity = ready.common.v;
    if (ready.common.version) {
      terminal.print(versionLine(manifest(), process));
      return EXIT_OK;
    }
    return await run(ready, klogFlags, environment, terminal);
  } catch (error) {
    terminal.warn(errorMessage(error, named, verbosity));
    const isUsers = error instanceof UsageError || error instanceof KubeConfigError;
    return isUsers ? EXIT_USAGE : EXIT_FAILURE;
  }
}

/** Node would take any certificate for any server: a way to hand one's token to anybody. */
function requireCertificateChecks(environment: Readonly<Record<string, string | undefined>>): void {
  if (environment['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    throw new UsageError(
      'NODE_TLS_REJECT_UNAUTHORIZED=0 disables certificate verification: unset it, and set the CA in the kubeconfig or in NODE_EXTRA_CA_CERTS',
    );
  }
}

interface CommandRequest {
  readonly command: Command;
  readonly flags: readonly string[];
  readonly operands: readonly string[];
  /** Flags that had a meaning in klog, as they were normalised. */
  readonly klogFlags: readonly string[];
}

function readCommand(argv: readonly string[], named: Command | undefined): CommandRequest {
  const command = named ?? COMMANDS[0];
  const { positionals, flags } = argumentsOf(argv, command);
  const [name] = positionals;
  if (!named && name !== undefined) {
    const hint = didYouMean(
      name,
      COMMANDS.map((each) => each.name),
    );
    throw new UsageError(`unknown command: ${goQuote(name)}${hint}`);
  }
  const operands = positionals.slice(1);
  const [stray] = command.operands === undefined ? operands : [];
  if (stray !== undefined) throw new UsageError(`unexpected argument: ${goQuote(stray)}`);
  const isKlogs = (flag: string) => KLOG_FLAGS.some(({ name }) => flag.startsWith(`--${name}=`));
  return {
    command,
    flags: flags.filter((flag) => !isKlogs(flag)),
    operands,
    klogFlags: flags.filter(isKlogs),
  };
}

/** Returns the named command, wherever its name is among the flags. */
function findCommand(argv: readonly string[]): Command | undefined {
  // Usually the first argument, which does not depend on flags: those may be invalid.
  const first = COMMANDS.find(({ name }) => name === argv[0]);
  if (first) return first;
  for (const word of argv) {
    const command = COMMANDS.find(({ name }) => name === word);
    if (command && argumentsOf(argv, command).positionals[0] === word) return command;
  }
  return undefined;
}

/** A name may mean one flag to one command and another to the next: the command's own counts. */
function argumentsOf(argv: readonly string[], { options }: Command): Arguments {
  const all = COMMANDS.flatMap((each) => flagForms(each.options));
  return normaliseArguments(argv, [...all, ...KLOG_FLAGS, ...flagForms(options)]);
}

/** What only one format of logs knows. */
const FLAGS_OF_FORMAT: Readonly<Record<LoggingOptions['format'], readonly string[]>> = {
  text: ['vmodule', 'skip-headers', 'add-dir-header'],
  json: ['log-json-split-stream'],
};

async function run(
  command: ReadyCommand,
  klogFlags: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  { print, warn, colour, logging: loggingEnvironment, output }: Terminal,
): Promise<number> {
  const { common, changed } = command;
  const logging: LoggingOptions = {
    format: common['logging-format'],
    verbosity: common.v,
    vmodule: common.vmodule,
    skipHeaders: common['skip-headers'],
    addDirHeader: common['add-dir-header'],
    splitStream: common['log-json-split-stream'],
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
    return await command.run({
      log,
      logging,
      logLevel: level,
      // Nobody gets what a command that cannot print goes on to print.
      signal: output ? AbortSignal.any([termination.signal, output.failed]) : termination.signal,
      environment,
      print,
      warn,
      colour,
    });
  } finally {
    watch.dispose();
    cycle.dispose();
    termination.dispose();
  }
}

/** A bug must be seen, and must not leave half a daemon behind. */
function exitOnUnhandledErrors(log: Logger): { dispose(): void } {
  const listener = (error: Error, origin: NodeJS.UncaughtExceptionOrigin) => {
    log.error(error, 'Unhandled error', { origin, stack: error.stack });
    exitProcess(process, EXIT_FAILURE);
  };
  process.on('uncaughtException', listener);
  return { dispose: () => process.off('uncaughtException', listener) };
}

/** One line that says what is wrong, and one that helps, or the stack of what should not be. */
function errorMessage(error: unknown, named: Command | undefined, verbosity: number): string {
  const lines = [`Error: ${logText(errorText(error))}`];
  if (error instanceof UsageError) {
    const words = ['crd-controller', ...(named ? [named.name] : []), '--help'];
    lines.push(`Run '${words.join(' ')}' for usage.`);
  }
  if (error instanceof Error && (isProgrammerError(error) || verbosity >= 4)) {
    lines.push(logText(error.stack ?? ''));
  }
  return lines.join('\n');
}
