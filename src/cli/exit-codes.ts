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
