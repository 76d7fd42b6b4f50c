/** What the process says to whoever started it. */
export const EXIT_OK = 0;
/** Something failed while running: the API server, a lost lease, a second signal. */
export const EXIT_FAILURE = 1;
/**
 * The command line, the environment or a file it names is wrong, or asks for a port that somebody
 * else has; trying again will not help.
 */
export const EXIT_USAGE = 2;

/**
 * The user asked for something that cannot be. The message says what, and what would be right; it
 * is shown as it is, without a stack, and the process exits with `EXIT_USAGE`.
 */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/**
 * Runs `action` on a path that the user gave. What the file system refuses because of what the path
 * is becomes a `UsageError`; all else stays what it was.
 *
 * @param what begins the sentence: `cannot read the configuration file x.yaml`
 */
export async function onPath<T>(what: string, action: () => T | Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw pathError(what, error);
  }
}

/** As `onPath`, of an error that has been caught already. */
export function pathError(what: string, error: unknown): unknown {
  const reason = reasonOf(error instanceof Error && 'code' in error ? error.code : undefined);
  // The reason says all; the system's own words would say it again.
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
    case 'ENAMETOOLONG':
      return 'the name is too long';
    default:
      return undefined;
  }
}
