import { controllerOf } from '../api/metadata.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import type { Client } from '../client/client.ts';
import type { Clock } from '../util/clock.ts';
import type { History } from './history.ts';
import { resourceOf } from './history.ts';

/** Sends requests as a user or another program. Waits with `clock` only. */
export type ScenarioAction = (client: Client, clock: Clock) => Promise<unknown>;

/** An object as the scenario would create it now. */
export interface ScenarioObject {
  readonly resource: Resource;
  readonly draft: KubernetesObject;
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

/** Whether the scenario changed only objects that it created. */
export function changesOwnObjectsOnly(history: History): boolean {
  const created = new Set<string>();
  return history.changes.every(({ verb, by, object }) => {
    if (by !== 'scenario') return true;
    if (verb === 'create') created.add(object.metadata.uid);
    return created.has(object.metadata.uid);
  });
}
