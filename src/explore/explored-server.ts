import type { KubernetesObject, NewObject } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import { BUILTIN_KINDS } from '../apiserver/builtin/kinds.ts';
import { WebhookClient } from '../apiserver/http/webhook-client.ts';
import { ServerCore } from '../apiserver/server-core.ts';
import { ObjectStore } from '../apiserver/storage/object-store.ts';
import type { StoredObject } from '../apiserver/objects/resource-definition.ts';
import type { StoreSnapshot } from '../apiserver/storage/store-log.ts';
import type { Client } from '../client/client.ts';
import { HttpClient } from '../client/http-client.ts';
import { Es256Key } from '../util/es256-key.ts';
import type { HttpHandler } from '../util/http.ts';
import { seededRandom } from '../util/seeded-random.ts';
import { ADMISSION_URL, admit } from './admission.ts';
import { AnswerMemo } from './answer-memo.ts';
import type { ChangeRecord, History } from './history.ts';
import { objectsOf } from './history.ts';
import type { VirtualTime } from './virtual-time.ts';

export const SERVER = 'https://explored';

/** The API server of all schedules, which returns to the same objects, uids and random numbers before each. */
export class ExploredServer {
  readonly handler: HttpHandler;
  /** Client of the scenario, whose requests are no steps. */
  readonly client: Client;
  readonly #server: ServerCore;
  readonly #store: ObjectStore;
  readonly #history: History;
  readonly #seed: number;
  readonly #memo: AnswerMemo;
  readonly #used = { uids: 0, draws: 0 };
  #random: () => number;
  #snapshot: StoreSnapshot;
  #snapshotUids = 0;
  #base: ReturnType<typeof objectsOf> = new Map();

  constructor(seed: number, time: VirtualTime, history: History) {
    this.#seed = seed;
    this.#random = seededRandom(seed);
    this.#history = history;
    const clock = time.clock('server');
    const used = this.#used;
    const draw = () => {
      used.draws++;
      return this.#random();
    };
    const store = new ObjectStore({
      onWrite: (...write) => {
        this.#memo.written(...write);
        history.record(...write);
      },
    });
    this.#store = store;
    this.#memo = new AnswerMemo({
      handler: (request) => this.#server.handler(request),
      elapsedMs: () => time.elapsedMs,
      used,
      draw: (count) => {
        for (let drawn = 0; drawn < count; drawn++) draw();
      },
      repeat: ({ resource, object, removed }) => store.repeat(resource, object, removed),
    });
    this.#server = new ServerCore(
      {
        kinds: BUILTIN_KINDS,
        clock,
        random: draw,
        uid: () => `00000000-0000-4000-8000-${String(used.uids++).padStart(12, '0')}`,
        token: 'explored',
      },
      {
        store,
        webhooks: new WebhookClient({ store, clock, functions: { [ADMISSION_URL]: admit } }),
        newTokenKey: () => new Es256Key('explored', 'service account tokens'),
      },
    );
    this.handler = this.#memo.handler;
    this.client = new HttpClient({
      handler: this.handler,
      server: SERVER,
      clock,
      userAgent: 'scenario',
    });
    this.#snapshot = store.snapshot();
  }

  /** Revision of the last write. */
  get revision(): number {
    return this.#server.revision;
  }

  /** Makes the current objects those at the start of each schedule. */
  save(): void {
    this.#snapshot = this.#store.snapshot();
    this.#snapshotUids = this.#used.uids;
    this.#memo.save();
    this.#base = objectsOf(this.#snapshot);
  }

  restore(): void {
    this.#server.faults.restore(this.#snapshot);
    this.#history.reset(this.#base);
    this.#random = seededRandom(this.#seed);
    this.#used.uids = this.#snapshotUids;
    this.#used.draws = 0;
    this.#memo.restart();
  }

  /** Returns to the state before the given writes, which are the last ones, as after a restore of etcd. */
  undo(lost: readonly ChangeRecord[]): void {
    const { revision, objects } = this.#store.snapshot();
    const before = new Map([...objects].map(([key, list]) => [key, [...list]]));
    for (const { verb, resource, object, previous } of lost.toReversed()) {
      const others = (before.get(resource) ?? []).filter(
        ({ metadata: { name, namespace } }) =>
          name !== object.metadata.name || namespace !== object.metadata.namespace,
      );
      const restored = verb === 'create' ? [] : [previous as unknown as StoredObject];
      before.set(resource, [...others, ...restored]);
    }
    this.#server.faults.restore({ revision: revision - lost.length, objects: before });
    this.#history.undo(lost);
    this.#memo.leave();
  }

  /** Ends the history, so that no watch can resume. */
  expireHistory(): void {
    this.#server.faults.expireHistory();
  }

  /** Creates an object of any kind that the server has. */
  async create(object: NewObject<KubernetesObject>): Promise<void> {
    const { apiVersion, kind, metadata } = object as KubernetesObject;
    const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
    const plural = await this.#pluralOf(apiVersion, kind);
    const namespaced = metadata.namespace !== undefined;
    const resource: Resource = {
      group: group ?? '',
      version: version ?? '',
      plural,
      kind,
      namespaced,
    };
    await this.client.create(resource, object);
  }

  async #pluralOf(apiVersion: string, kind: string): Promise<string> {
    const path = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const list = (await this.client.raw({ path })) as {
      readonly resources: readonly { readonly name: string; readonly kind: string }[];
    };
    const found = list.resources.find((each) => each.kind === kind && !each.name.includes('/'));
    if (!found) throw new Error(`explore: the server has no kind ${kind} in ${apiVersion}`);
    return found.name;
  }
}
