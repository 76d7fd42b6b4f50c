/** As much of `process` as it takes to end it. */
export interface ExitableProcess {
  once(event: 'exit', listener: (code: number) => void): unknown;
  exit(code: number): void;
}

/** Requests that a thread of libuv's pool works on, as `process.getActiveResourcesInfo` names them. */
const THREAD_REQUEST = /^FSReq|^Get(?:Addr|Name)InfoReq|REQUEST$/;

/**
 * Ends `target` at once with `code`, also while a system call of another thread is blocked: the
 * `open` of a FIFO without a writer, a file on a network share, a name lookup. `process.exit` waits
 * for these threads and may never return.
 */
export function exitProcess(target: ExitableProcess, code: number): void {
  // The last listener: after those that flush the log and restore the terminal.
  target.once('exit', endBlockedThreads);
  target.exit(code);
}

/**
 * Replaces the program of this process by one that only exits with `code`, if a thread may be blocked:
 * the kernel ends all threads then. There is no other way that keeps the exit code, and SIGKILL has no
 * effect on process 1 of a container.
 */
function endBlockedThreads(code: number): void {
  if (!process.getActiveResourcesInfo().some((name) => THREAD_REQUEST.test(name))) return;
  if (process.execve) {
    const { execPath } = process;
    process.execve(execPath, [execPath, '--eval', `process.exit(${code})`], {});
  }
  process.kill(process.pid, 'SIGKILL');
}
