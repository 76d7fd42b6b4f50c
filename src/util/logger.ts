/** Fields of a log line. Keys are lowerCamelCase. The last field of a name is used. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * The logger interface of this project, modelled on logr: constant messages, data in fields, and the
 * verbosity levels of Kubernetes.
 *
 * Conventions: a message starts with a capital letter and has no period. An error is either logged or
 * thrown. A Kubernetes object is logged as `kind: key` (`{ count: 'default/web' }`), never as a whole.
 */
export interface Logger {
  /** Logs a line if the verbosity level of this logger is enabled. */
  info(message: string, fields?: LogFields): void;

  /** Logs a line at every verbosity. `error` is any thrown value, or undefined. */
  error(error: unknown, message: string, fields?: LogFields): void;

  /** Whether `info` logs. Check it before you compute expensive fields. */
  readonly enabled: boolean;

  /** Returns this logger with verbosity `level`: 0 is always logged, 2 is the usual level, 4 is debug. */
  v(level: number): Logger;

  /** Returns a logger that adds `fields` to every line. */
  with(fields: LogFields): Logger;

  /** Returns a logger with `name` appended to its name, logged as `logger="parent.name"`. */
  named(name: string): Logger;
}

/** A logger that discards all lines. */
export const silentLogger: Logger = {
  info: () => undefined,
  error: () => undefined,
  enabled: false,
  v: () => silentLogger,
  with: () => silentLogger,
  named: () => silentLogger,
};
