import { styleText } from 'node:util';
import { KubeConfigError } from '../client/kube-config/kube-config-file.ts';
import { terminationSignal } from '../manager/signals.ts';
import type { Logger } from '../util/logger.ts';
import { exitProcess } from '../util/process-exit.ts';
import type { Arguments } from './flags/arguments.ts';
import { normaliseArguments } from './flags/arguments.ts';
import type { Command, ReadyCommand } from './program/command.ts';
import { commandsOf } from './commands.ts';
import { versionLine } from './program/package.ts';
import { checkProgram, environmentPrefix } from './program/program.ts';
import type { ProgramOptions } from './program/program.ts';
import { didYouMean } from '../util/did-you-mean.ts';
import {
  errorText,
  EXIT_FAILURE,
  EXIT_OK,
  EXIT_USAGE,
  isProgrammerError,
  UsageError,
} from './common/errors.ts';
import { flagForms } from './flags/flag-parser.ts';
import { goQuote } from '../util/go-quote.ts';
import { helpText } from './help.ts';
import { cycleVerbosityOnSignal } from './logs/log-level.ts';
import { logText } from './logs/log-value.ts';
import type { LoggingEnvironment, LoggingOptions } from './logs/logging.ts';
import { sourceStack } from './logs/source-stack.ts';
import { createLogging } from './logs/logging.ts';
import { KLOG_FLAGS } from './flags/options.ts';
import { printableStyledText, printableText } from '../util/printable.ts';
import { lineWriterOf } from '../util/line-writer.ts';

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

/** Returns a terminal that text of servers and files cannot control. */
function printableTerminal(terminal: Terminal): Terminal {
  const { print, warn, colour } = terminal;
  const printable = colour ? printableStyledText : printableText;
  return {
    ...terminal,
    print: (text) => print(printable(text)),
    warn: (text) => warn(printableText(text)),
  };
}

async function runCommand(
  program: ProgramOptions,
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  terminal: Terminal,
): Promise<number> {
  let verbosity = 0;
  let named: Command | undefined;
  const commands = commandsOf(program);
  try {
    requireCertificateChecks(environment);
    named = findCommand(commands, argv);
    const { command, flags, operands, klogFlags } = readCommand(commands, argv, named);
    if (flags.includes('--help=true')) {
      terminal.print(await helpText(program, commands, command, terminal.columns));
      return EXIT_OK;
    }
    const ready = await command.prepare(flags, operands, {
      variables: environment,
      prefix: environmentPrefix(program),
    });
    verbosity = ready.common.v;
    if (ready.common.version) {
      terminal.print(versionLine(program, process));
      return EXIT_OK;
    }
    return await run(program, ready, klogFlags, environment, terminal);
  } catch (error) {
    terminal.warn(errorMessage(program, error, named, verbosity));
    const isUsers = error instanceof UsageError || error instanceof KubeConfigError;
    return isUsers ? EXIT_USAGE : EXIT_FAILURE;
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

interface CommandRequest {
  readonly command: Command;
  readonly flags: readonly string[];
  readonly operands: readonly string[];
  /** Normalised legacy flags of klog. */
  readonly klogFlags: readonly string[];
}

function readCommand(
  commands: readonly [Command, ...Command[]],
  argv: readonly string[],
  named: Command | undefined,
): CommandRequest {
  const command = named ?? commands[0];
  const { positionals, flags } = argumentsOf(commands, argv, command);
  const [name] = positionals;
  if (!named && name !== undefined) {
    const hint = didYouMean(
      name,
      commands.map((each) => each.name),
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

/** Returns the named command. Its name can stand between flags. */
function findCommand(commands: readonly Command[], argv: readonly string[]): Command | undefined {
  // A name in the first position, the usual case, is found even if the flags are invalid.
  const first = commands.find(({ name }) => name === argv[0]);
  if (first) return first;
  for (const word of argv) {
    const command = commands.find(({ name }) => name === word);
    if (command && argumentsOf(commands, argv, command).positionals[0] === word) return command;
  }
  return undefined;
}

/** A flag name can have different meanings for different commands. The command's own flags decide. */
function argumentsOf(
  commands: readonly Command[],
  argv: readonly string[],
  { options }: Command,
): Arguments {
  const all = commands.flatMap((each) => flagForms(each.options));
  const own = flagForms(options);
  return normaliseArguments(argv, [...all, ...KLOG_FLAGS, ...own], own);
}

/** Flags that affect one log format only. */
const FLAGS_OF_FORMAT: Readonly<Record<LoggingOptions['format'], readonly string[]>> = {
  text: ['vmodule', 'skip-headers', 'add-dir-header'],
  json: ['log-json-split-stream'],
};

async function run(
  program: ProgramOptions,
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
    });
  } finally {
    watch.dispose();
    cycle.dispose();
    termination.dispose();
  }
}

/** Logs an unhandled error and exits: a partly working daemon must not continue. */
function exitOnUnhandledErrors(log: Logger): { dispose(): void } {
  const listener = (error: Error, origin: NodeJS.UncaughtExceptionOrigin) => {
    log.error(error, 'Unhandled error', { origin, stack: sourceStack(error) });
    exitProcess(process, EXIT_FAILURE);
  };
  process.on('uncaughtException', listener);
  return { dispose: () => process.off('uncaughtException', listener) };
}

/** Returns one line with the error, and a second line with a hint or the stack of an internal error. */
function errorMessage(
  { name }: ProgramOptions,
  error: unknown,
  named: Command | undefined,
  verbosity: number,
): string {
  const lines = [`Error: ${logText(errorText(error))}`];
  if (error instanceof UsageError) {
    const words = [name, ...(named ? [named.name] : []), '--help'];
    lines.push(`Run '${words.join(' ')}' for usage.`);
  }
  if (error instanceof Error && (isProgrammerError(error) || verbosity >= 4)) {
    lines.push(logText(sourceStack(error)));
  }
  return lines.join('\n');
}

/** Standard output and standard error of a command line. */
export interface Terminal {
  /** Writes one or more lines to standard output. */
  readonly print: (text: string) => void;
  /** Writes one or more lines to standard error. */
  readonly warn: (text: string) => void;
  /**
   * Width of the terminal.
   * @default 80
   */
  readonly columns?: number | undefined;
  /** Whether standard output has colours. */
  readonly colour: boolean;
  /**
   * Destination of the log.
   * @default standard error
   */
  readonly logging?: LoggingEnvironment | undefined;
  /**
   * State of standard output.
   * @default writes never fail
   */
  readonly output?: Output | undefined;
}

/** State of standard output. A closed pipe (`| head`) is not a failure. */
export interface Output {
  /** Aborts when a write fails, with the error as its reason. */
  readonly failed: AbortSignal;
  /** Resolves when all writes have succeeded or failed. */
  flush(): Promise<void>;
}

/**
 * Returns the terminal of this process. Reading `process.stderr` makes a pipe non-blocking, so that a
 * stopped reader does not stop the process; see `LineWriter`.
 */
export function processTerminal(): Terminal {
  const { stdout, stderr } = process;
  const failed = new AbortController();
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') failed.abort(error);
  });
  // Output of Node.js itself, such as warnings, can be lost too.
  stderr.on('error', () => undefined);
  const errors = lineWriterOf(2);
  let written = Promise.resolve();
  return {
    print: (text) => {
      written = new Promise((resolve) => stdout.write(`${text}\n`, () => setImmediate(resolve)));
    },
    warn: (text) => errors.write(`${text}\n`),
    columns: stdout.columns,
    // NO_COLOR, FORCE_COLOR and TERM, as in Node.js.
    colour: styleText('bold', '-', { stream: stdout }) !== '-',
    output: {
      failed: failed.signal,
      flush: () => written,
    },
  };
}
