/**
 * Preloaded into a daemon: it stops itself, as by SIGSTOP from outside, with its fourth Pod in its
 * hands. Three have been created (they go out in batches of 1, 2, 4 and so on); this one and the rest of
 * its batch have been asked for and are not sent.
 *
 * From outside, the signal could come between the last check and the system call right after it. That
 * request leaves when the process is continued, and no check could prevent it.
 */
import { subscribe } from 'node:diagnostics_channel';
import { writeSync } from 'node:fs';

const FOURTH = 4;

let pods = 0;
subscribe('undici:request:create', (message) => {
  const { request } = message as { readonly request: { method: string; path: string } };
  if (request.method !== 'POST' || !/\/pods(\?|$)/.test(request.path)) return;
  if (++pods !== FOURTH) return;
  writeSync(process.stderr.fd, 'Stopped in the middle of a sync\n');
  process.kill(process.pid, 'SIGSTOP');
});
