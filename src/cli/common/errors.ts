import { ApiError } from '../../api/api-error.ts';
import { isSecretName } from '../../util/redact.ts';

/** The command succeeded. */
export const EXIT_OK = 0;
/** The command failed while running: the API server, a lost Lease, a second signal. */
export const EXIT_FAILURE = 1;
/** The command line, the environment or a file is invalid, or a port is in use. A retry does not help. */
export const EXIT_USAGE = 2;
/** The user interrupted the command, as shells report SIGINT. */
export const EXIT_INTERRUPTED = 130;

/**
 * Invalid input of the user. The message says what is wrong and how to correct it. It is shown without a
 * stack, and the process exits with `EXIT_USAGE`.
 */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/**
 * Runs `action` on a path of the user. Errors caused by the path become a `UsageError`; others are
 * unchanged.
 *
 * @param what start of the message: `cannot read the configuration file x.yaml`
 */
export async function onPath<T>(what: string, action: () => T | Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw pathError(what, error);
  }
}

/** Returns the {@link UsageError} for an error on a path, or the error itself. */
export function pathError(what: string, error: unknown): unknown {
  const reason = reasonOf(error instanceof Error && 'code' in error ? error.code : undefined);
  // The reason is complete; the system's message would repeat it.
  return reason === undefined ? error : new UsageError(`${what}: ${reason}`);
}

function reasonOf(code: unknown): string | undefined {
  switch (code) {
    case 'ENOENT':
      return 'the file does not exist';
    case 'ENOTDIR':
      return 'a part of the path is a file, not a folder';
    case 'EEXIST':
      return 'it already exists';
    case 'EISDIR':
      return 'it is a folder';
    case 'EACCES':
    case 'EPERM':
      return 'permission denied';
    case 'EROFS':
      return 'the file system is read-only';
    case 'ENOSPC':
    case 'EDQUOT':
      return 'no space is left on the device';
    case 'ENAMETOOLONG':
      return 'the name is too long';
    default:
      return undefined;
  }
}

/** Causes below this depth are omitted: a chain can be circular. */
const DEEPEST_CAUSE = 8;

/**
 * Returns the message of the error and of its causes, outermost first, as Go wraps errors (`Failed to list:
 * connect ECONNREFUSED 127.0.0.1:6443`). A cause that the message already contains is omitted. Every thrown
 * value has a text.
 */
export function errorText(error: unknown, depth: number = 0): string {
  if (!(error instanceof Error)) return thrownText(error);
  const own = error instanceof AggregateError ? aggregateText(error, depth) : messageOf(error);
  // The message of an API error already contains its cause and the next step.
  if (error instanceof ApiError || depth >= DEEPEST_CAUSE) return own;
  if (error.cause === undefined || error.cause === null) return own;
  const cause = errorText(error.cause, depth + 1);
  return own.includes(cause) ? own : `${own.replace(/\.$/, '')}: ${cause}`;
}

/**
 * Returns whether the error indicates a bug, as opposed to a failure of the environment. Only bugs are shown
 * with a stack.
 */
export function isProgrammerError(error: unknown): boolean {
  return (
    error instanceof TypeError ||
    error instanceof ReferenceError ||
    error instanceof RangeError ||
    (error instanceof Error && error.name === 'AssertionError')
  );
}

function messageOf(error: Error): string {
  if (error.message === '') {
    return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  }
  return isProgrammerError(error) ? `${error.name}: ${error.message}` : error.message;
}

/** Formats as apimachinery's Aggregate: a single message alone, else `[a, b]`, each text once. */
function aggregateText(error: AggregateError, depth: number): string {
  const errors: readonly unknown[] = error.errors;
  if (depth >= DEEPEST_CAUSE) return messageOf(error);
  const texts = [...new Set(errors.slice(0, 10).map((each) => errorText(each, depth + 1)))];
  const list = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
  return error.message ? `${error.message}: ${list}` : list;
}

/** Returns a text for a thrown value that is not an Error. */
function thrownText(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown;
  const plain = (name: string, value: unknown) =>
    value === thrown || (typeof value !== 'object' && !isSecretName(name)) ? value : undefined;
  try {
    return JSON.stringify(thrown, plain) ?? String(thrown);
  } catch {
    return Object.prototype.toString.call(thrown);
  }
}
