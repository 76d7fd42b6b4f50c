/** Data of one log line. Keys are lowerCamelCase; a later key of the same name wins. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * The logger of the house: constant messages, data in fields, verbosity as in Kubernetes.
 *
 * The shape is logr's, so that people who know `-v=4` know what they get. Rules for callers:
 * messages begin with a capital and have no period; an error is logged or thrown, never both; a
 * Kubernetes object appears as `kind: key` (`{ count: 'default/web' }`), never whole.
 */
export interface Logger {
  /** A line that is shown if this logger's verbosity is enabled. */
  info(message: string, fields?: LogFields): void;

  /** A line that is always shown. `error` may be anything that was thrown, or undefined. */
  error(error: unknown, message: string, fields?: LogFields): void;

  /** True if `info` would be shown; guard costly fields with it. */
  readonly enabled: boolean;

  /** The same logger at verbosity `level` (0 always shown, 2 the recommended default, 4 debug). */
  v(level: number): Logger;

  /** A logger whose every line carries `fields`. */
  with(fields: LogFields): Logger;

  /** A logger whose name is extended by `name`, shown as `logger="parent.name"`. */
  named(name: string): Logger;
}

/** Says nothing. */
export const silentLogger: Logger = {
  info: () => undefined,
  error: () => undefined,
  enabled: false,
  v: () => silentLogger,
  with: () => silentLogger,
  named: () => silentLogger,
};
