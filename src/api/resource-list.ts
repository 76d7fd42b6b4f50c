import type { Pod } from './builtin.ts';
import type { DeepReadonly } from './object.ts';
import { addQuantities, compareQuantities } from './quantity.ts';

/** Quantities by the name of their resource. */
export type ResourceList = Readonly<Record<string, string>>;

/** Returns the sum of both lists. */
export function addLists(a: ResourceList, b: ResourceList = {}): ResourceList {
  const sum: Record<string, string> = { ...a };
  for (const [name, amount] of Object.entries(b)) {
    const present = sum[name];
    sum[name] = present === undefined ? amount : addQuantities(present, amount);
  }
  return sum;
}

/** Returns the larger quantity of each resource. */
export function maxOf(a: ResourceList, b: ResourceList): ResourceList {
  const larger = Object.entries(b).filter(
    ([name, amount]) => compareQuantities(amount, a[name] ?? '0') > 0 || !Object.hasOwn(a, name),
  );
  return { ...a, ...Object.fromEntries(larger) };
}

/** Returns the entries whose names `isSelected` accepts. */
export function selectResources(
  list: ResourceList,
  isSelected: (name: string) => boolean,
): ResourceList {
  return Object.fromEntries(Object.entries(list).filter(([name]) => isSelected(name)));
}

/** Whether a resource can be limited for a whole Pod. */
export function isPodLevel(name: string): boolean {
  return name === 'cpu' || name === 'memory' || name.startsWith('hugepages-');
}

/**
 * Returns the requests or limits of a Pod: the sum of its containers and sidecars, or the largest init
 * container with the sidecars before it; resources of the whole Pod override it. The overhead is added.
 */
export function podResources(
  { spec }: Pick<DeepReadonly<Pod>, 'spec'>,
  field: 'limits' | 'requests',
): ResourceList {
  let total: ResourceList = {};
  let sidecars: ResourceList = {};
  let largest: ResourceList = {};
  for (const { resources, restartPolicy } of spec?.initContainers ?? []) {
    const own = resources?.[field];
    const running = addLists(sidecars, own);
    if (restartPolicy === 'Always') sidecars = running;
    largest = maxOf(largest, running);
  }
  for (const { resources } of spec?.containers ?? []) total = addLists(total, resources?.[field]);
  const ofPod = selectResources(spec?.resources?.[field] ?? {}, isPodLevel);
  const sum = { ...maxOf(addLists(total, sidecars), largest), ...ofPod };
  const overhead = spec?.overhead ?? {};
  if (field === 'requests') return addLists(sum, overhead);
  return addLists(
    sum,
    selectResources(overhead, (name) => Object.hasOwn(sum, name)),
  );
}
