import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { isApiError } from '../../src/api/api-error.ts';
import type { Pod } from '../../src/api/builtin.ts';
import { PODS } from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { controllerOf } from '../../src/api/metadata.ts';
import { Deferred } from '../../src/util/deferred.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import { Life } from '../support/life.ts';
import { Simulation } from '../support/simulation.ts';

const DAY_MS = 86_400_000;

/** What may happen to an At, and to those who look after it. */
type Happening =
  | { readonly kind: 'time passes'; readonly ms: number }
  | { readonly kind: 'the clock jumps'; readonly ms: number }
  /** Another daemon begins; the one before dies at its n-th write. */
  | {
      readonly kind: 'a daemon begins';
      readonly diesAtWrite: number;
      readonly dies: 'before' | 'after';
    }
  /** Those that run hear of nothing new any more, and work on. */
  | { readonly kind: 'watches stand still' }
  | { readonly kind: 'somebody deletes the Pods' };

const happening: fc.Arbitrary<Happening> = fc.oneof(
  fc.record({
    kind: fc.constant('time passes' as const),
    ms: fc.integer({ min: 1, max: 40_000 }),
  }),
  fc.record({
    kind: fc.constant('the clock jumps' as const),
    ms: fc.integer({ min: -90_000, max: 90_000 }),
  }),
  fc.record({
    kind: fc.constant('a daemon begins' as const),
    diesAtWrite: fc.integer({ min: 1, max: 5 }),
    dies: fc.constantFrom('before' as const, 'after' as const),
  }),
  fc.constant({ kind: 'watches stand still' as const }),
  fc.constant({ kind: 'somebody deletes the Pods' as const }),
);

/** A world of Ats in which all Pods are taken down that were ever created for them. */
class World extends Simulation {
  /** By the uid of the At: when the creation of its Pods was asked for, by the wall clock. */
  readonly created = new Map<string, number[]>();
  readonly #gates: Deferred[] = [];
  #lines: { isStill: (path: string) => boolean; readonly gate: Deferred }[] = [];

  begin(life: Life): void {
    const line = { isStill: (_path: string) => false, gate: new Deferred() };
    this.#lines.push(line);
    this.#gates.push(line.gate);
    async function* held(path: string, body: AsyncIterable<Uint8Array>) {
      for await (const chunk of body) {
        if (line.isStill(path)) await line.gate.promise;
        yield chunk;
      }
    }
    const network =
      (handler: HttpHandler): HttpHandler =>
      async (request) => {
        const { path, body } = request;
        const sentMs = this.now();
        const response = await handler(request);
        if (response.status === 201) this.#enter(path, String(body), sentMs);
        const isWatch = /[?&]watch=true/.test(path);
        return isWatch ? { ...response, body: held(path, response.body) } : response;
      };
    const config = { controllers: ['at'], gracefulShutdownTimeoutMs: 0 };
    this.startDaemonBehind((handler) => life.around(network(handler)), config);
  }

  /** The watches of those that run stand still: all of them, or those of `plural`. */
  standStill(plural: string = ''): void {
    for (const line of this.#lines) line.isStill = (path) => path.includes(`/${plural}`);
    this.#lines = [];
  }

  override async end(): Promise<void> {
    for (const gate of this.#gates) gate.resolve();
    await super.end();
  }

  #enter(path: string, body: string, sentMs: number): void {
    const owner = path.includes('/pods') && controllerOf(JSON.parse(body) as Pod);
    if (!owner) return;
    this.created.set(owner.uid, [...(this.created.get(owner.uid) ?? []), sentMs]);
  }
}

const at = (name: string) => ({ namespace: 'default', name });

const schedule = (world: World, name: string, dueMs: number, command: string) =>
  world.client.create(ATS, {
    apiVersion: 'cnat.programming-kubernetes.info/v1alpha1',
    kind: 'At',
    metadata: at(name),
    spec: { schedule: new Date(dueMs).toISOString(), command },
  });

async function deletePods(world: World): Promise<void> {
  for (const { metadata } of await world.pods()) {
    try {
      await world.client.delete(PODS, metadata, { gracePeriodSeconds: 0 });
    } catch (error) {
      if (!isApiError(error, 'notFound')) throw error;
    }
  }
}

async function happen(world: World, one: Happening): Promise<void> {
  switch (one.kind) {
    case 'time passes':
      return world.pass(one.ms);
    case 'the clock jumps':
      return world.jump(one.ms);
    case 'a daemon begins':
      return world.begin(new Life({ atWrite: one.diesAtWrite, when: one.dies }));
    case 'watches stand still':
      return world.standStill();
    case 'somebody deletes the Pods':
      return deletePods(world);
  }
}

test('whatever happens, an At has one Pod ever, and not before its time', async () => {
  const story = fc.record({
    dueInSeconds: fc.array(fc.integer({ min: -30, max: 60 }), { minLength: 1, maxLength: 3 }),
    commands: fc.constantFrom('echo YAY', 'false', 'sleep 20'),
    happenings: fc.array(happening, { minLength: 4, maxLength: 14 }),
  });
  const tell = async ({ dueInSeconds, commands, happenings }: Story) => {
    const world = new World();
    world.startCluster();
    await world.installCrd(ATS);
    world.begin(new Life({ atWrite: 4, when: 'after' }));
    const ats = await Promise.all(
      dueInSeconds.map((seconds, number) =>
        schedule(world, `at-${number}`, world.now() + seconds * 1000, commands),
      ),
    );
    for (const one of happenings) await happen(world, one);
    world.begin(new Life());
    const isDone = async () =>
      (await world.client.list(ATS, { namespace: 'default' })).items.every(
        ({ status }) => status?.phase === 'DONE',
      );
    await world.until('all are done', isDone, { withinMs: 30 * 60_000, stepMs: 5000 });
    await world.end();
    for (const { metadata, spec } of ats) {
      const [createdMs = 0, ...more] = world.created.get(metadata.uid) ?? [];
      assert.deepEqual(more, [], `${metadata.name} had several Pods`);
      assert.ok(createdMs >= Date.parse(spec.schedule), `${metadata.name} was early`);
    }
  };
  await fc.assert(fc.asyncProperty(story, tell), { numRuns: 20, seed: 20_260_101 });
});

interface Story {
  readonly dueInSeconds: readonly number[];
  readonly commands: string;
  readonly happenings: readonly Happening[];
}

test('a daemon that has heard nothing since the At was new creates no second Pod', async () => {
  const world = new World();
  world.startCluster();
  await world.installCrd(ATS);
  world.begin(new Life());
  await world.pass(100);
  const { metadata } = await schedule(world, 'x', world.now() + 30_000, 'echo YAY');
  await world.pass(1000);
  world.standStill();
  world.begin(new Life());
  await world.pass(28_000);
  // The one that hears comes first, and its Pod is deleted before the other looks.
  world.jump(2000);
  await world.pass(500);
  await deletePods(world);
  await world.pass(60_000);
  assert.equal(world.created.get(metadata.uid)?.length, 1);
  await world.end();
});

test('a daemon that has not heard of an At does not let go of its Pod', async () => {
  const world = new World();
  world.startCluster();
  await world.installCrd(ATS);
  world.begin(new Life());
  await world.pass(100);
  world.standStill('ats');
  world.begin(new Life({ atWrite: 1, when: 'after' }));
  await world.pass(100);
  const { metadata } = await schedule(world, 'x', world.now() - 1000, 'echo YAY');
  await world.pass(2000);
  await deletePods(world);
  await world.pass(2000);
  world.begin(new Life());
  await world.pass(60_000);
  assert.equal(world.created.get(metadata.uid)?.length, 1);
  const { status } = await world.client.get(ATS, at('x'));
  assert.equal(status?.phase, 'DONE');
  await world.end();
});

test('an At that is due in 60 days waits for its day, and for the day after a jump back', async () => {
  const world = new World();
  world.startCluster();
  await world.installCrd(ATS);
  world.begin(new Life());
  const dueMs = world.now() + 60 * DAY_MS;
  const { metadata } = await schedule(world, 'x', dueMs, 'echo YAY');
  await world.pass(5000);
  world.jump(60 * DAY_MS - 10_000);
  await world.pass(4500);
  world.begin(new Life());
  await world.pass(450);
  assert.equal(world.created.size, 0);
  world.jump(-DAY_MS);
  await world.pass(60_000);
  assert.equal(world.created.size, 0);
  world.jump(DAY_MS);
  await world.until(
    'done',
    async () => (await world.client.get(ATS, at('x'))).status?.phase === 'DONE',
  );
  const [createdMs = 0] = world.created.get(metadata.uid) ?? [];
  assert.ok(createdMs >= dueMs);
  await world.end();
});
