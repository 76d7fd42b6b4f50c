import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES } from '../../src/api/builtin.ts';
import type { DeepReadonly, Draft, KubernetesObject } from '../../src/api/object.ts';
import { keyOf } from '../../src/api/object-key.ts';
import type { ObjectKey } from '../../src/api/object-key.ts';
import { groupResourceOf } from '../../src/api/resource.ts';
import type { Resource } from '../../src/api/resource.ts';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import { Indexer } from '../../src/cache/indexer.ts';
import type { IndexFunctions } from '../../src/cache/indexer.ts';
import { IndexLister } from '../../src/cache/lister.ts';
import type { Lister } from '../../src/cache/lister.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import type { SyncContext, SyncHandler } from '../../src/manager/controller-options.ts';
import { ownerIndexers } from '../../src/manager/enqueue.ts';
import type { EventRecorder } from '../../src/record/event-recorder.ts';
import { FakeClock } from '../../src/util/fake-clock.ts';
import type { Outcome } from '../../src/workqueue/outcome.ts';
import { recordingLogger } from './recording-logger.ts';
import type { LogLine } from './recording-logger.ts';
import { crdOf } from './test-cluster.ts';

/** Namespace of the objects of a bench. */
export const NAMESPACE = 'shop';

/** A write of the code under test, as the server received it. */
export interface Write {
  /** `create pods`, `patch counts/status`, `delete deployments`. */
  readonly what: string;
  readonly name: string;
  /** The request body, for a deletion its options. */
  readonly body: WriteBody;
  readonly fieldManager: string | undefined;
}

export interface WriteBody {
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly preconditions?: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** A cache with the objects that the test sets, which may be stale. */
export class BenchCache<T extends KubernetesObject> {
  readonly #indexer: Indexer<T>;
  readonly lister: Lister<T>;

  constructor(indexes: IndexFunctions<T>) {
    this.#indexer = new Indexer<T>(indexes);
    this.lister = new IndexLister(this.#indexer);
  }

  show(...objects: readonly DeepReadonly<T>[]): void {
    for (const object of objects) this.#indexer.set(keyOf(object), object);
  }

  hide(...objects: readonly DeepReadonly<T>[]): void {
    for (const object of objects) this.#indexer.delete(keyOf(object));
  }
}

/**
 * Runs sync handlers one at a time, against an embedded API server and caches that the test fills.
 * Records their writes, events and log lines.
 */
export class SyncBench {
  readonly clock = new FakeClock();
  readonly server = new ApiServer({ clock: this.clock });
  /** Client of the test. Its requests are not recorded. */
  readonly client = new HttpClient({ handler: this.server.handler, server: 'https://test' });
  readonly writes: Write[] = [];
  readonly reads: string[] = [];
  /** Writes and events in order: `create pods`, `event Synced`, and `sent Synced` if it was awaited. */
  readonly steps: string[] = [];
  /** Events: `Normal SuccessfulCreate: Created pod: a`. */
  readonly events: string[] = [];
  readonly lines: LogLine[];
  readonly stop = new AbortController();
  readonly recorder: EventRecorder;
  readonly #context: SyncContext;
  #requests = 0;
  /** Number of the request, from 0, during which the daemon stops: it gets no response. */
  stopAtRequest = -1;

  private constructor() {
    const { log, lines } = recordingLogger();
    this.lines = lines;
    const client = new HttpClient({
      handler: async (request) => {
        const [path = '', query = ''] = request.path.split('?');
        const [plural = '', name = '', subresource] = path
          .replace(new RegExp(`^.*?/namespaces/${NAMESPACE}/|^.*?/v1/`), '')
          .split('/');
        const resource = subresource === undefined ? plural : `${plural}/${subresource}`;
        if (request.method === 'GET') {
          this.reads.push(`${plural} ${name}`);
        } else {
          const verb = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' }[
            request.method
          ];
          const body = JSON.parse(String(request.body ?? '{}')) as WriteBody;
          this.steps.push(`${verb} ${resource}`);
          this.writes.push({
            what: `${verb} ${resource}`,
            name: name || String(body.metadata?.['name']),
            body,
            fieldManager: new URLSearchParams(query).get('fieldManager') ?? undefined,
          });
        }
        if (this.#requests++ !== this.stopAtRequest) return this.server.handler(request);
        this.stop.abort(new Error('The daemon stops'));
        return new Promise((_, reject) => {
          const end = () => reject(new Error('The request was cut off'));
          if (request.signal?.aborted) end();
          request.signal?.addEventListener('abort', end);
        });
      },
      server: 'https://test',
    });
    const record =
      (type: string): EventRecorder['normal'] =>
      (subject, reason, message) => {
        this.events.push(`${type} ${reason}: ${message}`);
        this.steps.push(`event ${reason}`);
        if (!subject.metadata.uid) throw new Error('An event is about an object with a uid');
        const attempted = async () => {
          await setImmediate();
          this.steps.push(`sent ${reason}`);
        };
        return { attempted };
      };
    this.recorder = { normal: record('Normal'), warning: record('Warning') };
    this.#context = { client, signal: this.stop.signal, log, causes: [], clock: this.clock };
  }

  /** Creates a bench whose server serves custom resources of `crds/`. */
  static async with(...resources: readonly Resource[]): Promise<SyncBench> {
    const bench = new SyncBench();
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };
    await bench.client.create(NAMESPACES, namespace);
    for (const resource of resources) {
      await bench.client.create(CUSTOM_RESOURCE_DEFINITIONS, crdOf(resource));
      const name = groupResourceOf(resource);
      // The server sets the conditions shortly afterwards.
      for (let tries = 0; tries < 10; tries++) {
        const crd = await bench.client.get(CUSTOM_RESOURCE_DEFINITIONS, { name });
        if (
          crd.status?.conditions?.some(
            ({ type, status }) => type === 'Established' && status === 'True',
          )
        )
          break;
        await bench.clock.advance(1000);
      }
    }
    return bench;
  }

  /** The part of a kit with which syncs are built. */
  get kit() {
    const events = { recorder: () => this.recorder };
    return { events, clock: this.clock };
  }

  /** Number of requests. */
  get requests(): number {
    return this.#requests;
  }

  get context(): SyncContext {
    return this.#context;
  }

  cache<T extends KubernetesObject>(indexes: IndexFunctions<T> = ownerIndexers): BenchCache<T> {
    return new BenchCache<T>(indexes);
  }

  create<T extends KubernetesObject>(resource: Resource<T>, object: Draft<T>): Promise<T> {
    return this.client.create(resource, object);
  }

  get<T extends KubernetesObject>(resource: Resource<T>, name: string): Promise<T> {
    return this.client.get(resource, { namespace: NAMESPACE, name });
  }

  async list<T extends KubernetesObject>(resource: Resource<T>): Promise<T[]> {
    return (await this.client.list(resource)).items;
  }

  /** Syncs a key once. */
  sync(handler: SyncHandler, key: ObjectKey): Promise<Outcome> {
    return handler(key, this.#context);
  }

  /** Returns the writes since the last call without their bodies. */
  taken(): string[] {
    return this.writes.splice(0).map(({ what, name }) => `${what} ${name}`);
  }
}

/**
 * Stops the daemon during each request of a sync, one after another: the sync ends, without a Warning event.
 *
 * @param setUp returns a new bench and its sync
 */
export async function assertEndsAtEachRequest(
  setUp: () => Promise<{ bench: SyncBench; run: () => Promise<unknown> }>,
): Promise<void> {
  for (let request = 0, isLast = false; !isLast; request++) {
    const { bench, run } = await setUp();
    bench.stopAtRequest = request;
    const ended = run().then(
      () => true,
      () => false,
    );
    isLast = await ended;
    assert.equal(isLast, bench.requests <= request);
    const warnings = bench.events.filter((event) => event.startsWith('Warning'));
    assert.deepEqual(warnings, []);
  }
}
