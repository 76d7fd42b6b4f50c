import { lineWriterOf } from '../util/line-writer.ts';
import type { LoggingEnvironment } from './logs/logging.ts';

/** Standard output and standard error of a command line. */
export interface Terminal {
  /** A line, or several, for standard output. */
  readonly print: (text: string) => void;
  /** The same for standard error. */
  readonly warn: (text: string) => void;
  /**
   * Its width.
   * @default what help texts take for it
   */
  readonly columns?: number | undefined;
  readonly colour: boolean;
  /**
   * Where the log goes.
   * @default standard error
   */
  readonly logging?: LoggingEnvironment | undefined;
  /**
   * Standard output, if it can fail.
   * @default it cannot
   */
  readonly output?: Output | undefined;
}

/** What became of text for standard output. A reader who has gone (`| head`) is no failure. */
export interface Output {
  /** Aborts when text cannot be written, with the error as its reason. */
  readonly failed: AbortSignal;
  /** Resolves when everything printed is written or has failed. */
  flush(): Promise<void>;
}

/**
 * The terminal of this process. Getting `process.stderr` makes a pipe non-blocking, so that a reader
 * who has stopped does not stop the process; see `LineWriter`.
 */
export function processTerminal(): Terminal {
  const { stdout, stderr } = process;
  const failed = new AbortController();
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') failed.abort(error);
  });
  // What Node.js itself writes there, such as warnings, may be lost as well.
  stderr.on('error', () => undefined);
  const errors = lineWriterOf(2);
  let written = Promise.resolve();
  return {
    print: (text) => {
      written = new Promise((resolve) => stdout.write(`${text}\n`, () => setImmediate(resolve)));
    },
    warn: (text) => errors.write(`${text}\n`),
    columns: stdout.columns,
    colour: stdout.isTTY && stdout.hasColors(),
    output: {
      failed: failed.signal,
      flush: () => written,
    },
  };
}
