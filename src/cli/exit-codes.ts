/** The command succeeded. */
export const EXIT_OK = 0;
/** The command failed while running: the API server, a lost Lease, a second signal. */
export const EXIT_FAILURE = 1;
/** The command line, the environment or a file is invalid, or a port is in use. A retry does not help. */
export const EXIT_USAGE = 2;

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

/** Returns the `UsageError` for an error on a path, or the error itself. */
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
    case 'ENAMETOOLONG':
      return 'the name is too long';
    default:
      return undefined;
  }
}
