import type { Pod } from '../../api/builtin.ts';
import type { ContainerProcess, KubeletAnswer, ProcessRequest } from '../../api/kubelet.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { goQuote } from '../../util/go-quote.ts';
import { runSession } from '../shell/exec-session.ts';
import { loggedRun, streamLog } from './container-log.ts';
import type { LogOptions } from './container-log.ts';
import type { LogRequest, LogResponse } from './kubelet-api.ts';
import type { KubeletPod } from './kubelet-pod.ts';

/** Returns the log of a container. */
export function readContainerLog(
  pod: DeepReadonly<Pod>,
  known: KubeletPod,
  request: LogRequest,
): LogResponse {
  const { options, follow, signal } = request;
  const description = `container ${goQuote(request.container)} in pod ${goQuote(request.pod)}`;
  const { initContainers = [], containers = [], ephemeralContainers = [] } = pod.spec ?? {};
  const all = [...initContainers, ...containers, ...ephemeralContainers];
  if (!all.some(({ name }) => name === request.container)) {
    return logError(400, `${description} is not available`);
  }
  const { elapsedMs, found } = known.find(pod, request.container);
  if (elapsedMs === undefined || !found?.state) {
    const current = pod.status?.containerStatuses?.find(({ name }) => name === request.container);
    const reason = current?.state?.waiting?.reason ?? 'ContainerCreating';
    return logError(400, `${description} is waiting to start: ${reason}`);
  }
  const run = loggedRun(found.state, options.previous);
  if (!run) return logError(400, `previous terminated ${description} not found`);
  const isFollowed = follow && !options.previous && found.state.kind === 'running';
  return {
    kind: 'log',
    body: streamLog(known.program(pod, found), run, {
      nowMs: known.clock.now(),
      elapsedMs: elapsedMs - found.offsetMs,
      options,
      signal,
      follow: isFollowed ? known.follow(signal) : undefined,
    }),
  };
}

export function logError(status: 400 | 404, message: string): LogResponse {
  return { kind: 'error', status, message };
}

/** Starts a command in a running container, or attaches to its program. */
export function connectToContainer(
  pod: DeepReadonly<Pod>,
  known: KubeletPod,
  { container: name, command, tty }: ProcessRequest,
): KubeletAnswer<ContainerProcess> {
  const { elapsedMs, found } = known.find(pod, name);
  if (elapsedMs === undefined || found?.state?.kind !== 'running') {
    return { kind: 'error', status: 500, message: `container not found (${goQuote(name)})` };
  }
  const { container, offsetMs, state } = found;
  const { clock, gone } = known;
  if (command) {
    const environment = new Map([
      ['HOME', '/root'],
      ['HOSTNAME', pod.spec?.hostname ?? pod.metadata.name],
      ['PATH', '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
      ...(known.environment?.get(name) ?? []),
    ]);
    const files = known.files(container, state.restarts);
    const session = { command, environment, files, tty, clock, gone };
    return { kind: 'connected', target: (streams) => runSession(session, streams) };
  }
  const attach: ContainerProcess = async ({ stdout, signal }) => {
    const program = known.program(pod, found);
    const output = streamLog(
      program,
      { fromMs: state.sinceMs },
      {
        nowMs: clock.now(),
        elapsedMs: elapsedMs - offsetMs,
        options: NEW_OUTPUT,
        signal,
        follow: known.follow(signal),
      },
    );
    for await (const bytes of output) await stdout?.(bytes);
    return 0;
  };
  return { kind: 'connected', target: attach };
}

/** Only what a program writes from now on. */
const NEW_OUTPUT: LogOptions = {
  previous: false,
  timestamps: false,
  sinceMs: undefined,
  tailLines: 0,
  limitBytes: undefined,
};
