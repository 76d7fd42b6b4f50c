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
import { CrashingProcess } from '../support/disruptions.ts';
import { Simulation } from '../support/simulation.ts';

const DAY_MS = 86_400_000;

/** A disruption of an At or of the daemons that sync it. */
type Disruption =
  | { readonly kind: 'time passes'; readonly ms: number }
  | { readonly kind: 'the clock jumps'; readonly ms: number }
  /** Starts another daemon, which crashes at its n-th write. */
  | {
      readonly kind: 'daemon starts';
      readonly diesAtWrite: number;
      readonly dies: 'before' | 'after';
    }
  /** The watches of all running daemons stall; the daemons continue to work. */
  | { readonly kind: 'watches stall' }
  | { readonly kind: 'Pods are deleted' };

const disruption: fc.Arbitrary<Disruption> = fc.oneof(
  fc.record({
    kind: fc.constant('time passes' as const),
    ms: fc.integer({ min: 1, max: 40_000 }),
  }),
  fc.record({
    kind: fc.constant('the clock jumps' as const),
    ms: fc.integer({ min: -90_000, max: 90_000 }),
  }),
  fc.record({
    kind: fc.constant('daemon starts' as const),
    diesAtWrite: fc.integer({ min: 1, max: 5 }),
    dies: fc.constantFrom('before' as const, 'after' as const),
  }),
  fc.constant({ kind: 'watches stall' as const }),
  fc.constant({ kind: 'Pods are deleted' as const }),
);

/** A simulation with Ats that records every Pod that was created for them. */
class AtSimulation extends Simulation {
  /** Wall-clock times at which Pods were requested, by the uid of the At. */
  readonly created = new Map<string, number[]>();
  readonly #gates: Deferred[] = [];
  #connections: { isStalled: (path: string) => boolean; readonly gate: Deferred }[] = [];

  startCrashing(crashing: CrashingProcess): void {
    const connection = { isStalled: (_path: string) => false, gate: new Deferred() };
    this.#connections.push(connection);
    this.#gates.push(connection.gate);
    async function* held(path: string, body: AsyncIterable<Uint8Array>) {
      for await (const chunk of body) {
        if (connection.isStalled(path)) await connection.gate.promise;
        yield chunk;
      }
    }
    const network =
      (handler: HttpHandler): HttpHandler =>
      async (request) => {
        const { path, body } = request;
        const sentMs = this.now();
        const response = await handler(request);
        if (response.status === 201) this.#recordPod(path, String(body), sentMs);
        const isWatch = /[?&]watch=true/.test(path);
        return isWatch ? { ...response, body: held(path, response.body) } : response;
      };
    const config = { controllers: ['at'], gracefulShutdownTimeoutMs: 0 };
    this.startDaemonBehind((handler) => crashing.around(network(handler)), config);
  }

  /** Stalls the watches of all running daemons: all of them, or those of `plural`. */
  stallWatches(plural: string = ''): void {
    for (const connection of this.#connections)
      connection.isStalled = (path) => path.includes(`/${plural}`);
    this.#connections = [];
  }

  override async end(): Promise<void> {
    for (const gate of this.#gates) gate.resolve();
    await super.end();
  }

  #recordPod(path: string, body: string, sentMs: number): void {
    const owner = path.includes('/pods') && controllerOf(JSON.parse(body) as Pod);
    if (!owner) return;
    this.created.set(owner.uid, [...(this.created.get(owner.uid) ?? []), sentMs]);
  }
}

const at = (name: string) => ({ namespace: 'default', name });

const schedule = (simulation: AtSimulation, name: string, dueMs: number, command: string) =>
  simulation.client.create(ATS, {
    apiVersion: 'cnat.programming-kubernetes.info/v1alpha1',
    kind: 'At',
    metadata: at(name),
    spec: { schedule: new Date(dueMs).toISOString(), command },
  });

async function deletePods(simulation: AtSimulation): Promise<void> {
  for (const { metadata } of await simulation.pods()) {
    try {
      await simulation.client.delete(PODS, metadata, { gracePeriodSeconds: 0 });
    } catch (error) {
      if (!isApiError(error, 'notFound')) throw error;
    }
  }
}

async function disrupt(simulation: AtSimulation, one: Disruption): Promise<void> {
  switch (one.kind) {
    case 'time passes':
      return simulation.pass(one.ms);
    case 'the clock jumps':
      return simulation.jump(one.ms);
    case 'daemon starts':
      return simulation.startCrashing(
        new CrashingProcess({ atWrite: one.diesAtWrite, when: one.dies }),
      );
    case 'watches stall':
      return simulation.stallWatches();
    case 'Pods are deleted':
      return deletePods(simulation);
  }
}

test('creates exactly one Pod for an At, not before its schedule, under random disruptions', async () => {
  const scenario = fc.record({
    dueInSeconds: fc.array(fc.integer({ min: -30, max: 60 }), { minLength: 1, maxLength: 3 }),
    commands: fc.constantFrom('echo YAY', 'false', 'sleep 20'),
    disruptions: fc.array(disruption, { minLength: 4, maxLength: 14 }),
  });
  const play = async ({ dueInSeconds, commands, disruptions }: Scenario) => {
    const simulation = new AtSimulation();
    simulation.startCluster();
    await simulation.installCrd(ATS);
    simulation.startCrashing(new CrashingProcess({ atWrite: 4, when: 'after' }));
    const ats = await Promise.all(
      dueInSeconds.map((seconds, number) =>
        schedule(simulation, `at-${number}`, simulation.now() + seconds * 1000, commands),
      ),
    );
    for (const one of disruptions) await disrupt(simulation, one);
    simulation.startCrashing(new CrashingProcess());
    const isDone = async () =>
      (await simulation.client.list(ATS, { namespace: 'default' })).items.every(
        ({ status }) => status?.phase === 'DONE',
      );
    await simulation.until('all Ats are done', isDone, { withinMs: 30 * 60_000, stepMs: 5000 });
    await simulation.end();
    for (const { metadata, spec } of ats) {
      const [createdMs = 0, ...more] = simulation.created.get(metadata.uid) ?? [];
      assert.deepEqual(more, [], `${metadata.name} had several Pods`);
      assert.ok(
        createdMs >= Date.parse(spec.schedule),
        `${metadata.name} was created before its schedule`,
      );
    }
  };
  await fc.assert(fc.asyncProperty(scenario, play), { numRuns: 12, seed: 20_260_101 });
});

interface Scenario {
  readonly dueInSeconds: readonly number[];
  readonly commands: string;
  readonly disruptions: readonly Disruption[];
}

test('creates no second Pod if the watches stall after the At was created', async () => {
  const simulation = new AtSimulation();
  simulation.startCluster();
  await simulation.installCrd(ATS);
  simulation.startCrashing(new CrashingProcess());
  await simulation.pass(100);
  const { metadata } = await schedule(simulation, 'x', simulation.now() + 30_000, 'echo YAY');
  await simulation.pass(1000);
  simulation.stallWatches();
  simulation.startCrashing(new CrashingProcess());
  await simulation.pass(28_000);
  // The daemon with working watches syncs first. Its Pod is deleted before the other daemon syncs.
  simulation.jump(2000);
  await simulation.pass(500);
  await deletePods(simulation);
  await simulation.pass(60_000);
  assert.equal(simulation.created.get(metadata.uid)?.length, 1);
  await simulation.end();
});

test('keeps the Pod of an At that a stalled daemon has not seen', async () => {
  const simulation = new AtSimulation();
  simulation.startCluster();
  await simulation.installCrd(ATS);
  simulation.startCrashing(new CrashingProcess());
  await simulation.pass(100);
  simulation.stallWatches('ats');
  simulation.startCrashing(new CrashingProcess({ atWrite: 1, when: 'after' }));
  await simulation.pass(100);
  const { metadata } = await schedule(simulation, 'x', simulation.now() - 1000, 'echo YAY');
  await simulation.pass(2000);
  await deletePods(simulation);
  await simulation.pass(2000);
  simulation.startCrashing(new CrashingProcess());
  await simulation.pass(60_000);
  assert.equal(simulation.created.get(metadata.uid)?.length, 1);
  const { status } = await simulation.client.get(ATS, at('x'));
  assert.equal(status?.phase, 'DONE');
  await simulation.end();
});

test('runs an At that is due in 60 days at its time, also after the clock jumps back', async () => {
  const simulation = new AtSimulation();
  simulation.startCluster();
  await simulation.installCrd(ATS);
  simulation.startCrashing(new CrashingProcess());
  const dueMs = simulation.now() + 60 * DAY_MS;
  const { metadata } = await schedule(simulation, 'x', dueMs, 'echo YAY');
  await simulation.pass(5000);
  simulation.jump(60 * DAY_MS - 10_000);
  await simulation.pass(4500);
  simulation.startCrashing(new CrashingProcess());
  await simulation.pass(450);
  assert.equal(simulation.created.size, 0);
  simulation.jump(-DAY_MS);
  await simulation.pass(60_000);
  assert.equal(simulation.created.size, 0);
  simulation.jump(DAY_MS);
  await simulation.until(
    'done',
    async () => (await simulation.client.get(ATS, at('x'))).status?.phase === 'DONE',
  );
  const [createdMs = 0] = simulation.created.get(metadata.uid) ?? [];
  assert.ok(createdMs >= dueMs);
  await simulation.end();
});
