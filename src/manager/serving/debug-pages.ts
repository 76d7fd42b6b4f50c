import { objectKey } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import { groupResourceOf } from '../../api/resource.ts';
import type { Clock } from '../../util/clock.ts';
import type { WorkQueue } from '../../workqueue/work-queue.ts';
import { formatPath } from '../changed-paths.ts';
import type { HotLoop } from '../hot-loop/loop-evidence.ts';
import { jsonPages } from './page.ts';
import type { Page, Pages } from './page.ts';
import type { KeyHistory, RunHistory } from '../history/run-history.ts';
import { hottest, slowest } from '../history/run-ranking.ts';
import { checkOptions } from '../../util/check-options.ts';
import type { OptionNames } from '../../util/check-options.ts';

const DEPS: OptionNames<DebugPagesDeps> = {
  controllers: true,
  history: true,
  clock: true,
  redact: true,
};

/** As much of a controller as its pages show. */
export interface DebuggedController {
  readonly name: string;
  readonly queue: Pick<WorkQueue<ObjectKey>, 'snapshot'>;
  readonly hotLoops: readonly HotLoop[];
}

/** Dependencies of `DebugPages`. */
export interface DebugPagesDeps {
  /** Asked at each request: they may come later than the pages. */
  readonly controllers: () => readonly DebuggedController[];
  /** The one that the controllers share. */
  readonly history: RunHistory;
  readonly clock: Pick<Clock, 'now'>;
  /**
   * What masks credentials in texts, as for the log: messages of errors are shown.
   * @default nothing is masked
   */
  readonly redact?: ((text: string) => string) | undefined;
}

/** Keys of a state, and of a ranking, that are shown. */
const MOST_KEYS = 100;
const MOST_RANKED = 20;

/**
 * For people who ask why a key runs, or why it does not; JSON, made anew at each request, which costs
 * as much as there are keys in the queues. Object names and messages of errors are shown: only those
 * who may see them should reach it.
 *
 * - `/debug/queues`: what waits, since when and why, what runs, hot loops, and the keys that took the
 *   most time, that had the slowest runs, and that run most often.
 * - `/debug/why?key=NAMESPACE/NAME`, and `&controller=NAME`: where the key is now, and its last runs
 *   with their causes, calls and ends.
 */
export function debugPages(deps: DebugPagesDeps): Pages {
  checkOptions(deps, DEPS, 'debugPages');
  const { controllers, history, clock, redact } = deps;
  const json = jsonPages(redact);
  return new Map<string, (query: URLSearchParams) => Page>([
    [
      '/debug/queues',
      () => {
        const keys = history.all();
        return json(200, {
          controllers: controllers().map((controller) => queueOf(controller, history)),
          busiest: busiest(keys),
          slowest: slowest(keys, MOST_RANKED),
          hottest: hottest(keys, MOST_RANKED, clock.now()),
        });
      },
    ],
    [
      '/debug/why',
      (query) => {
        const key = query.get('key');
        if (!key) return json(400, { error: 'Ask for a key: /debug/why?key=NAMESPACE/NAME' });
        const asked = query.get('controller');
        const known = controllers()
          .filter(({ name }) => asked === null || name === asked)
          .map((controller) => whyOf(controller, key, history))
          .filter(({ state, history: runs }) => state !== 'idle' || runs !== undefined);
        if (known.length > 0) return json(200, { key, controllers: known });
        return json(404, { error: `Neither queued nor among the keys that ran last: ${key}` });
      },
    ],
  ]);
}

function queueOf({ name, queue, hotLoops }: DebuggedController, history: RunHistory) {
  const { ready, delayed, processing } = queue.snapshot();
  return {
    controller: name,
    ready: some(ready),
    delayed: some(delayed.toSorted((a, b) => a.dueInMs - b.dueInMs)),
    processing: some(
      processing.map(({ key, forMs, again }) => {
        return { key, forMs, again, causes: causesNow(name, key, history) };
      }),
    ),
    hotLoops: hotLoops.slice(0, MOST_KEYS).map(loopOf),
  };
}

function some<T>(all: readonly T[]): { readonly count: number; readonly keys: readonly T[] } {
  return { count: all.length, keys: all.slice(0, MOST_KEYS) };
}

/** Why a key runs at this moment, if that was taken down. */
function causesNow(controller: string, key: string, history: RunHistory) {
  const run = history.of(controller, key)?.last.at(-1);
  return run && !run.end ? run.causes : [];
}

function busiest(keys: readonly KeyHistory[]) {
  return keys
    .toSorted((a, b) => b.busyMs - a.busyMs)
    .slice(0, MOST_RANKED)
    .map(({ last: _, ...totals }) => totals);
}

function whyOf({ name, queue, hotLoops }: DebuggedController, key: string, history: RunHistory) {
  const { ready, delayed, processing } = queue.snapshot();
  const isIt = (waiting: { readonly key: string }) => waiting.key === key;
  const running = processing.find(isIt);
  const waiting = ready.find(isIt);
  const later = delayed.find(isIt);
  const state = running ? 'running' : waiting ? 'ready' : later ? 'delayed' : 'idle';
  const hotLoop = hotLoops.find(isIt);
  return {
    controller: name,
    state,
    ...running,
    ...waiting,
    ...later,
    ...(hotLoop && { hotLoop: loopOf(hotLoop) }),
    history: history.of(name, key),
  };
}

function loopOf(loop: HotLoop) {
  const { key, kind, resource, namespace, name, paths, times, withinMs, fieldManager } = loop;
  return {
    key,
    kind,
    object: `${groupResourceOf(resource)} ${objectKey(namespace, name)}`,
    fields: paths.map(formatPath),
    times,
    withinMs,
    fieldManager,
  };
}
