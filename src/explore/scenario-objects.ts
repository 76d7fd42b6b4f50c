import { controllerOf } from '../api/metadata.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import type { Client } from '../client/client.ts';
import type { Clock } from '../util/clock.ts';
import type { History } from './history.ts';
import { resourceOf } from './history.ts';

/** Sends requests as a user or another program. Waits with `clock` only. */
export type ScenarioAction = (client: Client, clock: Clock) => Promise<unknown>;

/** Actions by name: `'a user scales the Count to 1'`. */
export type ScenarioActions = Readonly<Record<string, ScenarioAction>>;

/**
 * The first actions of a scenario. Each is explored for itself, because an action hides what went wrong before it: a deletion
 * hides an object that was not updated.
 */
export interface ScenarioPart {
  readonly actions: ScenarioActions;
  /** The action that would be next; undefined for the whole scenario. */
  readonly stop: string | undefined;
}

/** An object as the scenario would create it now. */
export interface ScenarioObject {
  readonly resource: Resource;
  readonly draft: KubernetesObject;
}

/** The objects of the scenario at the end of a schedule without faults, and its duration. */
export interface FinalObjects {
  readonly objects: readonly ScenarioObject[];
  readonly durationMs: number;
}

/** Returns the objects that the scenario created and that exist, without what controllers added to their metadata. */
export function scenarioObjects(history: History): ScenarioObject[] {
  const created = new Map<string, KubernetesObject>();
  const content = new Map<string, KubernetesObject>();
  for (const { verb, by, object } of history.changes) {
    if (by !== 'scenario' || controllerOf(object)) continue;
    const { uid } = object.metadata;
    if (verb === 'create') created.set(uid, object);
    content.set(uid, object);
  }
  return [...history.objects()].flatMap(({ key, object: { metadata } }) => {
    const first = created.get(metadata.uid);
    const last = content.get(metadata.uid);
    if (!first || !last || metadata.deletionTimestamp !== undefined) return [];
    const { name, namespace, labels, annotations } = first.metadata;
    const { status: _, ...rest } = last as KubernetesObject & { readonly status?: unknown };
    const draft = {
      ...rest,
      metadata: {
        name,
        ...(namespace !== undefined && { namespace }),
        ...(labels && { labels }),
        ...(annotations && { annotations }),
      },
    } as KubernetesObject;
    return [{ resource: resourceOf(key, last), draft }];
  });
}

/** Returns the parts of a scenario: its first action, its first two actions, and so on. */
export function partsOf(scenario: ScenarioActions): ScenarioPart[] {
  const actions = Object.entries(scenario);
  const lengths = actions.length === 0 ? [0] : actions.map((_, index) => index + 1);
  return lengths.map((length) => ({
    actions: Object.fromEntries(actions.slice(0, length)),
    stop: actions[length]?.[0],
  }));
}

/** Whether the scenario changed only objects that it created. */
export function changesOwnObjectsOnly(history: History): boolean {
  const created = new Set<string>();
  return history.changes.every(({ verb, by, object }) => {
    if (by !== 'scenario') return true;
    if (verb === 'create') created.add(object.metadata.uid);
    return created.has(object.metadata.uid);
  });
}
