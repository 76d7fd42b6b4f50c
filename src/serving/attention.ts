import { keyOf } from '../api/object-key.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { objectCondition } from './object-condition.ts';
import type { ObjectCondition } from './object-condition.ts';
import type { ControllerView, KeyHistoryView } from './controller-view.ts';

/** A key whose object or whose syncs need attention. */
export interface AttentionItem {
  readonly controller: string;
  readonly key: string;
  /** `failing`: the last sync failed. `recovered`: an earlier one of the remembered syncs failed. */
  readonly problem: 'failing' | 'stalled' | 'notReady' | 'recovered';
  /** RFC 3339; absent if it is not known. */
  readonly since?: string | undefined;
  /** Error of the sync, or message of the condition. */
  readonly message: string;
  /** Remembered syncs and failures of the key; absent if none is remembered. */
  readonly syncs?: number;
  readonly failures?: number;
}

/** Number of the objects of a controller by their condition. */
export type ObjectCounts = Readonly<Record<ObjectCondition['state'], number>>;

/** What needs attention, and the objects of each controller. */
export interface Attention {
  /** Failing keys first, then stalled and not ready objects, and recovered keys last; the oldest first. */
  readonly items: readonly AttentionItem[];
  readonly counts: ReadonlyMap<string, ObjectCounts>;
}

const ORDER: readonly AttentionItem['problem'][] = ['failing', 'stalled', 'notReady', 'recovered'];

/** Returns the informer of the reconciled kind. */
export function reconciledBy({ reconciled, informers }: ControllerView) {
  return reconciled === undefined ? undefined : informers?.find(({ name }) => name === reconciled);
}

/** Returns the cached objects of the reconciled kind. */
export function cachedObjectsOf(controller: ControllerView): DeepReadonly<KubernetesObject>[] {
  return reconciledBy(controller)?.lister.list() ?? [];
}

/** Costs time proportional to the number of objects that the controllers reconcile. */
export function attentionOf(
  controllers: readonly ControllerView[],
  histories: readonly KeyHistoryView[],
): Attention {
  const items = new Map<string, AttentionItem>();
  const counts = new Map<string, ObjectCounts>();
  for (const history of histories) {
    const item = syncProblemOf(history);
    if (item) items.set(`${item.controller} ${item.key}`, item);
  }
  for (const controller of controllers) {
    const count = { ready: 0, notReady: 0, stalled: 0, unknown: 0 };
    counts.set(controller.name, count);
    for (const object of cachedObjectsOf(controller)) {
      const { state, message, since } = objectCondition(object);
      count[state]++;
      if (state === 'ready' || state === 'unknown') continue;
      const key = keyOf(object);
      const id = `${controller.name} ${key}`;
      const known = items.get(id);
      if (known?.problem === 'failing') continue;
      items.set(id, { ...known, controller: controller.name, key, problem: state, since, message });
    }
  }
  const rank = ({ problem }: AttentionItem) => ORDER.indexOf(problem);
  const startMs = ({ since }: AttentionItem) => Date.parse(since ?? '') || Infinity;
  return {
    items: [...items.values()].toSorted((a, b) => {
      const [first, second] = [startMs(a), startMs(b)];
      return rank(a) - rank(b) || (first < second ? -1 : Number(first > second));
    }),
    counts,
  };
}

function syncProblemOf(history: KeyHistoryView): AttentionItem | undefined {
  const { controller, key, syncs, failures, failingSince, last } = history;
  const failed = last.findLast(({ end }) => end?.error !== undefined);
  if (!failed) return undefined;
  const isFailing = last.findLast(({ end }) => end) === failed;
  return {
    controller,
    key,
    syncs,
    failures,
    problem: isFailing ? 'failing' : 'recovered',
    since: (isFailing && failingSince) || failed.startedAt,
    message: failed.end?.error ?? '',
  };
}
