import { isApiError } from '../api/api-error.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../api/builtin.ts';
import type { KubernetesObject, NewObject } from '../api/object.ts';
import { hookedClient } from '../client/client-calls.ts';
import type { Client } from '../client/client.ts';
import type { Clock } from '../util/clock.ts';
import type { Upheaval } from './faults.ts';
import { collectGarbage } from './garbage.ts';
import type { History } from './history.ts';
import { scenarioObjects } from './scenario-objects.ts';
import type { FinalObjects, ScenarioAction } from './scenario-objects.ts';

/** Time in which controllers can react before the garbage collector does, in milliseconds. */
const BEFORE_GARBAGE_MS = 40_000;

/** Time without the CRDs, in milliseconds. */
const UNINSTALLED_MS = 60_000;

/** Maximum time until the CRDs are gone, in minutes. Retries have delays of up to five minutes. */
const MAX_UNINSTALLED_MINUTES = 10;

/** What the names of copies end with, and the namespace of copies with the same name. */
export const TWIN_SUFFIX = '-twin';
export const TWIN_NAMESPACE = 'kube-public';

/** Dependencies of the actions of an upheaval. */
export interface UpheavalDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly history: History;
  readonly crds: readonly NewObject<KubernetesObject>[];
  readonly final: FinalObjects;
  /** Whether the cluster has no garbage collector. */
  readonly collects: boolean;
}

export function isCrd(object: NewObject<KubernetesObject>): boolean {
  return (object as KubernetesObject).kind === 'CustomResourceDefinition';
}

/** Returns what happens next, as actions of the scenario. */
export function actionsOf(
  upheaval: Upheaval | 'collect',
  deps: UpheavalDeps,
): [string, ScenarioAction][] {
  const { client, clock, history, final } = deps;
  const garbage = async () => {
    await clock.sleep(BEFORE_GARBAGE_MS);
    if (deps.collects) await collectGarbage(client, history);
  };
  const create = async () => {
    for (const { resource, draft } of final.objects) await client.create(resource, draft);
  };
  switch (upheaval) {
    case 'collect':
      return [['the garbage collector deletes owned objects', garbage]];
    case 'fresh':
      return [
        ['a user creates the final objects at once', create],
        ['time passes', () => clock.sleep(final.durationMs)],
      ];
    case 'twin':
      return [['a user creates objects like the existing ones', () => createTwins(deps)]];
    case 'teardown':
    case 'foreground': {
      const policy = upheaval === 'teardown' ? 'Background' : 'Foreground';
      return [
        [`a user deletes everything (${policy})`, () => deleteAll(deps, policy)],
        ['the garbage collector deletes owned objects', garbage],
      ];
    }
    case 'uninstall':
      return [['a user deletes the CRDs, and creates all again', () => reinstall(deps)]];
  }
}

/** Returns a client that deletes in the foreground, so that the garbage collector has a finalizer. */
export function foregroundClient(client: Client): Client {
  return hookedClient(client, ({ call, options, send }) => {
    const propagation = { propagationPolicy: 'Foreground' } as const;
    return send(call.verb === 'delete' ? { ...propagation, ...options } : options);
  });
}

/** Creates a copy of each object in the same namespace, and one with the same name in another. */
async function createTwins({ client, history }: UpheavalDeps): Promise<void> {
  for (const { resource, draft } of scenarioObjects(history)) {
    const { metadata } = draft;
    const copies = [{ ...metadata, name: metadata.name + TWIN_SUFFIX }];
    if (resource.namespaced) copies.push({ ...metadata, namespace: TWIN_NAMESPACE });
    for (const copy of copies) {
      try {
        await client.create(resource, { ...draft, metadata: copy });
      } catch (error) {
        if (!isApiError(error, 'invalid', 'alreadyExists', 'conflict', 'forbidden')) throw error;
      }
    }
  }
}

async function deleteAll(
  { client, history }: UpheavalDeps,
  propagationPolicy: 'Background' | 'Foreground',
): Promise<void> {
  for (const { resource, draft } of scenarioObjects(history)) {
    const options = { gracePeriodSeconds: 0, propagationPolicy } as const;
    await client.delete(resource, draft.metadata, options);
  }
}

async function reinstall({ client, clock, history, crds, collects }: UpheavalDeps): Promise<void> {
  const objects = scenarioObjects(history);
  const names = new Set((crds as readonly KubernetesObject[]).map(({ metadata }) => metadata.name));
  for (const name of names) await client.delete(CUSTOM_RESOURCE_DEFINITIONS, { name });
  const isLeft = () =>
    history.list(CUSTOM_RESOURCE_DEFINITIONS).some(({ metadata }) => names.has(metadata.name));
  // The CRDs wait for the controllers, which can retry to remove a finalizer.
  for (let minute = 0; minute < MAX_UNINSTALLED_MINUTES && (minute === 0 || isLeft()); minute++) {
    await clock.sleep(UNINSTALLED_MS);
    if (collects) await collectGarbage(client, history);
  }
  if (isLeft()) return;
  for (const crd of crds) await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd);
  for (const { resource, draft } of objects) {
    // Objects of other kinds still exist.
    if (crds.some(({ metadata }) => metadata.name === `${resource.plural}.${resource.group}`))
      await client.create(resource, draft);
  }
}
