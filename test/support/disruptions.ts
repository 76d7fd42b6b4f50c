import type { HttpHandler, HttpRequest } from '../../src/util/http.ts';
import { untilAborted } from '../../src/util/abort.ts';
import type { Simulation } from './simulation.ts';
import assert from 'node:assert/strict';
import { isApiError } from '../../src/api/api-error.ts';
import { DEPLOYMENTS, PODS, SERVICES } from '../../src/api/builtin.ts';
import { equalJson } from '../../src/api/equal.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { controllerOf } from '../../src/api/metadata.ts';
import type { Resource } from '../../src/api/resource.ts';

/** Crashes a process at its n-th write, before or after the server executes the write. */
export interface CrashPoint {
  readonly atWrite: number;
  readonly when: 'before' | 'after';
}

/**
 * Simulates the crash of a process at its transport: after the crash no request is sent and no response
 * arrives. Only successful writes count, so a process that finds all work done does not crash.
 */
export class CrashingProcess {
  readonly #crash: CrashPoint | undefined;
  #writes = 0;
  #requests = 0;
  #hasCrashed = false;

  constructor(crash?: CrashPoint) {
    this.#crash = crash;
  }

  get hasCrashed(): boolean {
    return this.#hasCrashed;
  }

  /** Number of requests. */
  get requests(): number {
    return this.#requests;
  }

  /** Number of successful writes. */
  get writes(): number {
    return this.#writes;
  }

  readonly around =
    (handler: HttpHandler): HttpHandler =>
    async (request) => {
      if (this.#hasCrashed) return noResponse(request);
      this.#requests++;
      // An empty patch does not write.
      const isWrite = request.method !== 'GET' && request.body !== '{}';
      const { atWrite, when } = this.#crash ?? { atWrite: Infinity, when: 'after' };
      if (isWrite && when === 'before' && this.#writes + 1 >= atWrite)
        return this.#crashAt(request);
      const response = await handler(request);
      if (isWrite && response.status < 300) this.#writes++;
      if (when === 'after' && this.#writes >= atWrite) return this.#crashAt(request);
      return response;
    };

  #crashAt(request: HttpRequest): Promise<never> {
    this.#hasCrashed = true;
    return noResponse(request);
  }
}

async function noResponse({ signal }: HttpRequest): Promise<never> {
  await (signal ? untilAborted(signal) : new Promise(() => undefined));
  throw signal?.reason;
}

/** Delays the events of watches by `delayMs` milliseconds. */
export function delayWatches(
  simulation: Simulation,
  delayMs: number,
): (handler: HttpHandler) => HttpHandler {
  async function* held(body: AsyncIterable<Uint8Array>) {
    for await (const chunk of body) {
      await simulation.sleep(delayMs);
      yield chunk;
    }
  }
  return (handler) => async (request) => {
    const response = await handler(request);
    const isWatch = /[?&]watch=true/.test(request.path);
    return isWatch ? { ...response, body: held(response.body) } : response;
  };
}

/** Changes that the competing client makes to owned objects. */
const EDITS = new Map<Resource, object>([
  [PODS, { containers: [{ name: 'app', image: 'other' }] }],
  [DEPLOYMENTS, { replicas: 5 }],
  [SERVICES, { selector: { 'app.kubernetes.io/instance': 'other' } }],
]);

/** Number of changes, after which the scenario can settle. */
const MAX_CHANGES = 7;

/** Time until a replacement of an owned object is deleted. */
const REPLACED_MS = 3000;

/**
 * A client that deletes, edits and replaces owned objects just before their controller writes. The
 * replacements have no owner, and the controller must not change them.
 */
export class CompetingClient {
  readonly #simulation: Simulation;
  readonly #children: readonly Resource[];
  readonly #replacements: Promise<void>[] = [];
  #changes = 0;

  constructor(simulation: Simulation, children: readonly Resource[]) {
    this.#simulation = simulation;
    this.#children = children;
  }

  async change(): Promise<void> {
    if (this.#changes >= MAX_CHANGES) return;
    for (const resource of this.#children) {
      const { items } = await this.#simulation.client.list(resource, { namespace: 'default' });
      const child = items.find((item) => controllerOf(item) !== undefined);
      if (child) await this.#changeChild(resource, child, this.#changes++);
    }
  }

  /** Waits for the end of the replacements. Rejects if the controller changed one. */
  async end(): Promise<void> {
    await Promise.all(this.#replacements);
  }

  async #changeChild(resource: Resource, child: KubernetesObject, turn: number): Promise<void> {
    const { client } = this.#simulation;
    const { metadata } = child;
    // Another turn may have replaced the object since it was listed.
    const { uid } = metadata;
    const edit = EDITS.get(resource);
    try {
      if (turn % 3 === 1) {
        const body = { metadata: { uid }, spec: edit };
        await client.patch(resource, metadata, { type: 'strategic', body });
        return;
      }
      const options = { uid, gracePeriodSeconds: 0, propagationPolicy: 'Background' } as const;
      await client.delete(resource, metadata, options);
      if (turn % 3 === 0) await this.#replace(resource, child, { ...specOf(child), ...edit });
    } catch (error) {
      // The object is deleted or replaced already, has a finalizer, or is immutable.
      if (!isApiError(error, 'notFound', 'conflict', 'alreadyExists', 'invalid')) throw error;
    }
  }

  /** @param spec similar to that of the owned object, so that the owner could adopt the replacement */
  async #replace(
    resource: Resource,
    { apiVersion, kind, metadata: { name } }: KubernetesObject,
    { nodeName: _, clusterIP: __, clusterIPs: ___, ...spec }: Record<string, unknown>,
  ): Promise<void> {
    const { client } = this.#simulation;
    const draft = { apiVersion, kind, metadata: { namespace: 'default', name }, spec };
    const before = await client.create(resource, draft);
    const verify = async () => {
      await this.#simulation.sleep(REPLACED_MS);
      const after = await client.get(resource, before.metadata);
      assert.equal(after.metadata.uid, before.metadata.uid);
      assert.deepEqual(after.metadata.ownerReferences, undefined);
      if (resource !== PODS) assert.ok(equalJson(specOf(after), specOf(before)), `${kind} ${name}`);
      const { uid } = before.metadata;
      await client.delete(resource, before.metadata, { uid, propagationPolicy: 'Background' });
    };
    this.#replacements.push(verify());
  }
}

function specOf(object: KubernetesObject): Record<string, unknown> {
  return { ...(object as { readonly spec?: object }).spec };
}
