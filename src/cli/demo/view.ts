import { EVENTS } from '../../api/builtin.ts';
import type { Event, Pod } from '../../api/builtin.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import { controllerOf } from '../../api/metadata.ts';
import type { Resource } from '../../api/resource.ts';

/** The objects of a kind by name, as they are at one change. */
export type View = <T extends KubernetesObject>(resource: Resource<T>) => ReadonlyMap<string, T>;

/** What is missing for a check to hold, for people; undefined if nothing is. */
export type Missing = (view: View) => string | undefined;

type Conditioned = DeepReadonly<{
  metadata: { deletionTimestamp?: string };
  status?: { conditions?: { type: string; status: string; reason?: string; message?: string }[] };
}>;

/** True if the condition of this type is, and the object stays. */
export function holds({ metadata, status }: Conditioned, type: string): boolean {
  return (
    metadata.deletionTimestamp === undefined &&
    (status?.conditions ?? []).some((each) => each.type === type && each.status === 'True')
  );
}

export function isReady(pod: Pod): boolean {
  return holds(pod, 'Ready');
}

/** The objects whose controller is `owner`, by uid. */
export function ownedBy<T extends KubernetesObject>(
  objects: ReadonlyMap<string, T>,
  owner: DeepReadonly<KubernetesObject>,
): readonly T[] {
  return [...objects.values()].filter((object) => controllerOf(object)?.uid === owner.metadata.uid);
}

/** The events of this reason, of the object of this uid or of any. */
export function eventsOf(view: View, reason: string, uid?: string): readonly Event[] {
  return [...view(EVENTS).values()].filter(
    (event) => event.reason === reason && (uid === undefined || event.involvedObject.uid === uid),
  );
}

/** How often events were recorded, each of which may have been more than once. */
export function recordings(events: Iterable<Event>): number {
  let times = 0;
  for (const { count = 1 } of events) times += count;
  return times;
}

export function namesOf(objects: Iterable<DeepReadonly<KubernetesObject>>): string {
  return Array.from(objects, ({ metadata }) => metadata.name).join(', ');
}
