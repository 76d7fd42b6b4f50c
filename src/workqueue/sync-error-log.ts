import type { Clock } from '../util/clock.ts';
import type { LogFields, Logger } from '../util/logger.ts';
import { RateLimitedLog, subjectFields } from '../util/rate-limited-log.ts';

/**
 * Logs failed syncs by their cause: one line at once, and then one a minute with the keys. At `-v=4`
 * every failure is a line.
 */
export class SyncErrorLog {
  readonly #log: Logger;
  readonly #lines: RateLimitedLog;

  /** @param log for lines about several keys */
  constructor(clock: Clock, log: Logger) {
    this.#log = log;
    this.#lines = new RateLimitedLog(clock);
  }

  /** @param log for lines about this sync only */
  log(key: unknown, error: unknown, message: string, log: Logger, fields: LogFields = {}): void {
    const name = String(key);
    const cause = `${message}\0${errorCause(error, name)}`;
    const isWritten = this.#lines.report(cause, name, (seen) => {
      const { times, total, subjects } = seen;
      if (total === 1) log.error(error, message, fields);
      else if (subjects.length === 1) log.error(error, message, { ...fields, times });
      else this.#log.error(error, message, { times, ...subjectFields('key', 'keys', seen) });
    });
    if (!isWritten) log.v(4).info(message, { err: error, ...fields });
  }

  /** Logs suppressed lines. */
  flush(): void {
    this.#lines.flush();
  }
}

/** Maximum depth of nested causes; a chain of causes may be circular. */
const MAX_DEPTH = 8;

/** Maximum number of errors of an `AggregateError`. */
const MAX_ERRORS = 10;

/** UIDs and separate numbers: resourceVersions, ports, durations. */
const VARYING =
  /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|(?<![\w.-])\d+(?:\.\d+)?(?:ms|[smh])?(?![\w-])/g;

/**
 * Returns an id of the cause of a failed sync. It is equal for errors of different keys that differ only
 * in the name of the object, names derived from it, its namespace, UIDs and numbers.
 */
export function errorCause(error: unknown, key: string): string {
  const [name = '', namespace] = key.split('/').reverse();
  const names = namespace ? [name, namespace] : [name];
  const form = names.filter((each) => each !== '').map(derivedFrom);
  return form.length === 0
    ? causeOf(error, 0, (text) => text)
    : causeOf(error, 0, withoutNames(new RegExp(form.join('|'), 'g')));
}

function withoutNames(names: RegExp): (text: string) => string {
  return (text) => text.replaceAll(names, '…').replaceAll(VARYING, '#');
}

/** Matches `web`, `web-0` and `web.v1`, as whole words. */
function derivedFrom(name: string): string {
  const escaped = name.replaceAll(/[^\w-]/g, String.raw`\$&`);
  return String.raw`(?<![\w.-])${escaped}(?:[.-][\w.-]*)?(?!\w)`;
}

function causeOf(error: unknown, depth: number, reduced: (text: string) => string): string {
  if (!(error instanceof Error)) return reduced(String(error));
  const own = `${error.name}: ${reduced(error.message)}`;
  if (depth >= MAX_DEPTH) return own;
  const nested: readonly unknown[] =
    error instanceof AggregateError ? error.errors.slice(0, MAX_ERRORS) : [];
  const causes = error.cause === undefined ? nested : [...nested, error.cause];
  const texts = new Set(causes.map((cause) => causeOf(cause, depth + 1, reduced)));
  return [own, ...[...texts].toSorted()].join('\0');
}
