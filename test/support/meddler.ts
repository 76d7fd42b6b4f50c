import assert from 'node:assert/strict';
import { isApiError } from '../../src/api/api-error.ts';
import { DEPLOYMENTS, PODS, SERVICES } from '../../src/api/builtin.ts';
import { equalJson } from '../../src/api/equal.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { controllerOf } from '../../src/api/metadata.ts';
import type { Resource } from '../../src/api/resource.ts';
import type { Simulation } from './simulation.ts';

/** What somebody else makes of a child. */
const EDITS = new Map<Resource, object>([
  [PODS, { containers: [{ name: 'app', image: 'theirs' }] }],
  [DEPLOYMENTS, { replicas: 5 }],
  [SERVICES, { selector: { 'app.kubernetes.io/instance': 'theirs' } }],
]);

/** So often somebody meddles; then they lose interest. */
const MOST_TIMES = 7;

/** So long what somebody put in the place of a child stays there. */
const STAY_MS = 3000;

/**
 * Somebody who deletes, edits and replaces the children of an owner just before its controller
 * writes. What they put in the place of a child is theirs: it must stay as it is.
 */
export class Meddler {
  readonly #world: Simulation;
  readonly #children: readonly Resource[];
  readonly #stays: Promise<void>[] = [];
  #times = 0;

  constructor(world: Simulation, children: readonly Resource[]) {
    this.#world = world;
    this.#children = children;
  }

  async meddle(): Promise<void> {
    if (this.#times >= MOST_TIMES) return;
    for (const resource of this.#children) {
      const { items } = await this.#world.client.list(resource, { namespace: 'default' });
      const child = items.find((item) => controllerOf(item) !== undefined);
      if (child) await this.#meddleWith(resource, child, this.#times++);
    }
  }

  /** Rejects if something of theirs was touched. */
  async leave(): Promise<void> {
    await Promise.all(this.#stays);
  }

  async #meddleWith(resource: Resource, child: KubernetesObject, turn: number): Promise<void> {
    const { client } = this.#world;
    const { metadata } = child;
    const edit = EDITS.get(resource);
    try {
      if (turn % 3 === 1) {
        const body = { spec: edit };
        await client.patch(resource, metadata, { type: 'strategic', body });
        return;
      }
      const options = { gracePeriodSeconds: 0, propagationPolicy: 'Background' } as const;
      await client.delete(resource, metadata, options);
      if (turn % 3 === 0) await this.#occupy(resource, child, { ...specOf(child), ...edit });
    } catch (error) {
      // It was gone already, it stays because of a finalizer, or it cannot be edited.
      if (!isApiError(error, 'notFound', 'alreadyExists', 'invalid')) throw error;
    }
  }

  /** @param spec like enough to the child's that its owner could make it its own */
  async #occupy(
    resource: Resource,
    { apiVersion, kind, metadata: { name } }: KubernetesObject,
    { nodeName: _, clusterIP: __, clusterIPs: ___, ...spec }: Record<string, unknown>,
  ): Promise<void> {
    const { client } = this.#world;
    const draft = { apiVersion, kind, metadata: { namespace: 'default', name }, spec };
    const before = await client.create(resource, draft);
    const stay = async () => {
      await this.#world.sleep(STAY_MS);
      const after = await client.get(resource, before.metadata);
      assert.equal(after.metadata.uid, before.metadata.uid);
      assert.deepEqual(after.metadata.ownerReferences, undefined);
      if (resource !== PODS) assert.ok(equalJson(specOf(after), specOf(before)), `${kind} ${name}`);
      const { uid } = before.metadata;
      await client.delete(resource, before.metadata, { uid, propagationPolicy: 'Background' });
    };
    this.#stays.push(stay());
  }
}

function specOf(object: KubernetesObject): Record<string, unknown> {
  return { ...(object as { readonly spec?: object }).spec };
}
