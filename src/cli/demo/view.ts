import { EVENTS } from '../../api/builtin.ts';
import type { Event, Pod } from '../../api/builtin.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import { controllerOf } from '../../api/metadata.ts';
import type { Resource } from '../../api/resource.ts';

/** Objects of a kind by name, at one time. */
export type View = <T extends KubernetesObject>(resource: Resource<T>) => ReadonlyMap<string, T>;

/** Returns why a check does not pass yet; undefined if it passes. */
export type Missing = (view: View) => string | undefined;

type Conditioned = DeepReadonly<{
  metadata: { deletionTimestamp?: string };
  status?: { conditions?: { type: string; status: string; reason?: string; message?: string }[] };
}>;

/** Returns whether the condition is true and the object is not being deleted. */
export function holds({ metadata, status }: Conditioned, type: string): boolean {
  return (
    metadata.deletionTimestamp === undefined &&
    (status?.conditions ?? []).some((each) => each.type === type && each.status === 'True')
  );
}

export function isReady(pod: Pod): boolean {
  return holds(pod, 'Ready');
}

/** Returns the objects whose controller owner is `owner`, by uid. */
export function ownedBy<T extends KubernetesObject>(
  objects: ReadonlyMap<string, T>,
  owner: DeepReadonly<KubernetesObject>,
): readonly T[] {
  return [...objects.values()].filter((object) => controllerOf(object)?.uid === owner.metadata.uid);
}

/** Returns the events with this reason, of the object with this uid or of all objects. */
export function eventsOf(view: View, reason: string, uid?: string): readonly Event[] {
  return [...view(EVENTS).values()].filter(
    (event) => event.reason === reason && (uid === undefined || event.involvedObject.uid === uid),
  );
}

/** Returns how often the events were recorded, repetitions included. */
export function recordings(events: Iterable<Event>): number {
  let times = 0;
  for (const { count = 1 } of events) times += count;
  return times;
}

export function namesOf(objects: Iterable<DeepReadonly<KubernetesObject>>): string {
  return Array.from(objects, ({ metadata }) => metadata.name).join(', ');
}
