import { styleText } from 'node:util';
import { lineWriterOf } from '../util/line-writer.ts';
import { printableStyledText, printableText } from '../util/printable.ts';
import type { LoggingEnvironment } from './logs/logging.ts';

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

/** Returns a terminal that text of servers and files cannot control. */
export function printableTerminal(terminal: Terminal): Terminal {
  const { print, warn, colour } = terminal;
  const printable = colour ? printableStyledText : printableText;
  return {
    ...terminal,
    print: (text) => print(printable(text)),
    warn: (text) => warn(printableText(text)),
  };
}
