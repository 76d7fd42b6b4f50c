/**
 * Preloaded into a daemon: sends SIGSTOP to its own process before the request for the fourth Pod. Pods are
 * created in batches of 1, 2, 4 and so on, so three exist, and the requests of the next batch are not sent.
 *
 * A signal from another process could arrive between the last check of the write fence and the system call.
 * No check could prevent this request, which is sent when the process continues.
 */
import { writeSync } from 'node:fs';
import { Http1Pool } from '../../src/client/transport/http1-pool.ts';

const FOURTH = 4;

let pods = 0;
const dispatch: Http1Pool['dispatch'] = Reflect.get(Http1Pool.prototype, 'dispatch');
Http1Pool.prototype.dispatch = function (request, handler) {
  if (request.method === 'POST' && /\/pods(\?|$)/.test(request.path) && ++pods === FOURTH) {
    writeSync(process.stderr.fd, 'Stopped in the middle of a sync\n');
    process.kill(process.pid, 'SIGSTOP');
  }
  dispatch.call(this, request, handler);
};
