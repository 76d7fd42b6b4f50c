import { ApiError } from '../api/api-error.ts';
import { isSecretName } from './logs/redact.ts';

/** Causes below this depth are not shown: a chain may be a circle. */
const DEEPEST_CAUSE = 8;

/**
 * What went wrong, in one text: the error's message and those of its causes, outermost first, as
 * Go wraps them (`Failed to list: connect ECONNREFUSED 127.0.0.1:6443`). A cause that the text
 * quotes already is not repeated. Anything that can be thrown has a text.
 */
export function errorText(error: unknown, depth: number = 0): string {
  if (!(error instanceof Error)) return thrownText(error);
  const own = error instanceof AggregateError ? aggregateText(error, depth) : messageOf(error);
  // An API error has told its cause already, and what to do about it.
  if (error instanceof ApiError || depth >= DEEPEST_CAUSE) return own;
  if (error.cause === undefined || error.cause === null) return own;
  const cause = errorText(error.cause, depth + 1);
  return own.includes(cause) ? own : `${own.replace(/\.$/, '')}: ${cause}`;
}

/**
 * True for the errors that JavaScript raises when a program is wrong, as opposed to the context
 * around it: for these, people need the stack.
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

/** As apimachinery's Aggregate: the message alone if there is one, else `[a, b]`, each text once. */
function aggregateText(error: AggregateError, depth: number): string {
  const errors: readonly unknown[] = error.errors;
  if (depth >= DEEPEST_CAUSE) return messageOf(error);
  const texts = [...new Set(errors.slice(0, 10).map((each) => errorText(each, depth + 1)))];
  const list = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
  return error.message ? `${error.message}: ${list}` : list;
}

/** Of an object that is no error, what it says of itself; what it holds may be anything. */
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
