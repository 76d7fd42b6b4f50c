import assert from 'node:assert/strict';
import { isApiError } from '../../src/api/api-error.ts';
import { DEPLOYMENTS, PODS, SERVICES } from '../../src/api/builtin.ts';
import { equalJson } from '../../src/api/equal.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { controllerOf } from '../../src/api/owner-reference.ts';
import type { Resource } from '../../src/api/resource.ts';
import type { Simulation } from './simulation.ts';

const LABELS = { app: 'theirs' };
const CONTAINERS = [{ name: 'theirs', image: 'theirs' }];

/** What somebody else would have under the name of a child, and would make of a child. */
const THEIRS = new Map<Resource, { readonly own: object; readonly edit: object }>([
  [
    PODS,
    {
      own: { containers: CONTAINERS },
      edit: { containers: [{ name: 'app', image: 'theirs' }] },
    },
  ],
  [
    DEPLOYMENTS,
    {
      own: {
        replicas: 1,
        selector: { matchLabels: LABELS },
        template: { metadata: { labels: LABELS }, spec: { containers: CONTAINERS } },
      },
      edit: { replicas: 5 },
    },
  ],
  [
    SERVICES,
    {
      own: { selector: LABELS, ports: [{ port: 8080 }] },
      edit: { selector: { 'app.kubernetes.io/instance': 'theirs' } },
    },
  ],
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
    if (++this.#times > MOST_TIMES) return;
    for (const resource of this.#children) {
      const { items } = await this.#world.client.list(resource, { namespace: 'default' });
      const child = items.find((item) => controllerOf(item) !== undefined);
      if (child) await this.#meddleWith(resource, child);
    }
  }

  /** Rejects if something of theirs was touched. */
  async leave(): Promise<void> {
    await Promise.all(this.#stays);
  }

  async #meddleWith(resource: Resource, { metadata }: KubernetesObject): Promise<void> {
    const { client } = this.#world;
    const theirs = THEIRS.get(resource);
    assert.ok(theirs);
    try {
      if (this.#times % 3 === 1) {
        const body = { spec: theirs.edit };
        await client.patch(resource, metadata, { type: 'strategic', body });
        return;
      }
      const options = { gracePeriodSeconds: 0, propagationPolicy: 'Background' } as const;
      await client.delete(resource, metadata, options);
      if (this.#times % 3 === 0) await this.#occupy(resource, metadata.name);
    } catch (error) {
      // It was gone already, it stays because of a finalizer, or it cannot be edited.
      if (!isApiError(error, 'notFound', 'alreadyExists', 'invalid')) throw error;
    }
  }

  async #occupy(resource: Resource, name: string): Promise<void> {
    const { client } = this.#world;
    const { group, version, kind } = resource;
    const apiVersion = group ? `${group}/${version}` : version;
    const spec = THEIRS.get(resource)?.own;
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

function specOf(object: KubernetesObject): unknown {
  return 'spec' in object ? object.spec : undefined;
}
