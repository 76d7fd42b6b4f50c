/** The part of `process` that `exitProcess` uses. */
export interface ExitableProcess {
  once(event: 'exit', listener: (code: number) => void): unknown;
  exit(code: number): void;
}

/** Names of requests in libuv's thread pool, in `process.getActiveResourcesInfo`. */
const THREAD_REQUEST = /^FSReq|^Get(?:Addr|Name)InfoReq|REQUEST$/;

/**
 * Exits `target` immediately with `code`, also while another thread is blocked in a system call: the `open`
 * of a FIFO without a writer, a file on a network share, a name lookup. `process.exit` waits for these
 * threads and might never return.
 */
export function exitProcess(target: ExitableProcess, code: number): void {
  // Runs last, after the listeners that flush the log and restore the terminal.
  target.once('exit', endBlockedThreads);
  target.exit(code);
}

/**
 * If a thread may be blocked, replaces the program of this process by one that exits with `code`: on
 * `execve` the kernel ends all threads. No other way preserves the exit code, and SIGKILL has no effect on
 * process 1 of a container.
 */
function endBlockedThreads(code: number): void {
  if (!process.getActiveResourcesInfo().some((name) => THREAD_REQUEST.test(name))) return;
  if (process.execve) {
    const { execPath } = process;
    process.execve(execPath, [execPath, '--eval', `process.exit(${code})`], {});
  }
  process.kill(process.pid, 'SIGKILL');
}
