import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { WorkQueue } from '../../../src/workqueue/work-queue.ts';

const AGEING_TURNS = 10;

type Step =
  | {
      readonly do: 'add';
      readonly key: string;
      readonly priority: number;
      readonly afterMs: number;
    }
  | { readonly do: 'take' }
  | { readonly do: 'finish'; readonly nth: number }
  | { readonly do: 'advance'; readonly ms: number };

function optionsOf({ priority, afterMs }: Extract<Step, { readonly do: 'add' }>) {
  return { priority, afterMs };
}

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('add' as const),
      key: fc.constantFrom('a/1', 'a/2', 'a/3', 'b/1', 'b/2', 'c/1'),
      priority: fc.constantFrom(0, 0, -100, 7),
      afterMs: fc.constantFrom(0, 0, 3, 10, 25),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('take' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('finish' as const), nth: fc.nat(9) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('advance' as const),
      ms: fc.integer({ min: 1, max: 12 }),
    }),
  },
);

const tenantOf = (key: string) => key.split('/')[0] ?? '';

/** Reference model of the queue without its data structures. */
class Model {
  now = 0;
  readonly items = new Map<string, { dueMs: number; priority: number; arrival: number }>();
  readonly held = new Set<string>();
  #arrivals = 0;

  add(key: string, priority: number, afterMs: number): void {
    const dueMs = this.now + afterMs;
    const item = this.items.get(key);
    if (!item) {
      const arrival = afterMs === 0 && !this.held.has(key) ? this.#arrivals++ : Infinity;
      this.items.set(key, { dueMs, priority, arrival });
      return;
    }
    item.dueMs = Math.min(item.dueMs, dueMs);
    const raised = priority > item.priority;
    item.priority = Math.max(item.priority, priority);
    if (this.#isReady(key) && (raised || item.arrival === Infinity))
      item.arrival = this.#arrivals++;
  }

  finish(key: string): void {
    this.held.delete(key);
    const item = this.items.get(key);
    if (item && this.#isReady(key)) item.arrival = this.#arrivals++;
  }

  advance(ms: number): void {
    this.now += ms;
    const arrived = [...this.items]
      .filter(([key, item]) => item.arrival === Infinity && this.#isReady(key))
      .toSorted(([, a], [, b]) => a.dueMs - b.dueMs);
    for (const [, item] of arrived) item.arrival = this.#arrivals++;
  }

  ready(): string[] {
    return [...this.items.keys()].filter((key) => this.#isReady(key));
  }

  take(key: string, queuedMs: number): void {
    const item = this.items.get(key);
    assert.ok(item, `${key} was added`);
    assert.ok(!this.held.has(key), `${key} has no other holder`);
    assert.ok(item.dueMs <= this.now, `${key} is due`);
    assert.equal(queuedMs, this.now - item.dueMs, 'the earliest due time applies');
    for (const other of this.ready()) {
      const rival = this.items.get(other);
      const sameLine = tenantOf(other) === tenantOf(key) && rival?.priority === item.priority;
      // Other tests check the order of keys with the same due time.
      const cameBefore = rival && rival.arrival < item.arrival && rival.dueMs !== item.dueMs;
      assert.ok(!(sameLine && cameBefore), `${other} came before ${key}`);
    }
    this.items.delete(key);
    this.held.add(key);
  }

  #isReady(key: string): boolean {
    const item = this.items.get(key);
    return item !== undefined && item.dueMs <= this.now && !this.held.has(key);
  }
}

// upstream: 75, 92l
test('loses, duplicates or reorders no key in any sequence of operations', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const clock = new FakeClock();
      const queue = new WorkQueue<string>({ name: 'test', clock }, { tenantOf });
      const model = new Model();
      const take = () => {
        const ready = model.ready();
        assert.equal(queue.length, ready.length);
        const taken = queue.tryTake();
        assert.equal(taken !== undefined, ready.length > 0, 'a key is handed out if one is ready');
        if (taken) model.take(taken.key, taken.queuedMs);
        return taken?.key;
      };
      const finish = (key: string | undefined) => {
        if (key === undefined) return;
        queue.done(key);
        model.finish(key);
      };
      for (const step of steps) {
        switch (step.do) {
          case 'add':
            queue.add(step.key, optionsOf(step));
            model.add(step.key, step.priority, step.afterMs);
            break;
          case 'take':
            take();
            break;
          case 'finish':
            finish([...model.held][step.nth]);
            break;
          case 'advance':
            await clock.advance(step.ms);
            model.advance(step.ms);
        }
      }
      for (const key of model.held) finish(key);
      await clock.advance(100);
      model.advance(100);
      for (let key = take(); key !== undefined; key = take()) finish(key);
      assert.equal(model.items.size, 0, 'every added key was taken');
      const { ready, delayed, processing } = queue.snapshot();
      assert.deepEqual([...ready, ...delayed, ...processing], []);
      assert.equal(clock.pending, 0);
    }),
    { numRuns: 300 },
  );
});

test('gives each tenant every possible turn within a priority', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(20)), {
        selector: ([tenant, id]) => `${tenant}/${id}`,
      }),
      (pairs) => {
        const queue = new WorkQueue<string>({ name: 'test', clock: new FakeClock() }, { tenantOf });
        const left = new Map<string, number>();
        for (const [tenant, id] of pairs) {
          queue.add(`${tenant}/${id}`);
          left.set(tenant, (left.get(tenant) ?? 0) + 1);
        }
        let round = new Set<string>();
        for (let taken = queue.tryTake(); taken; taken = queue.tryTake()) {
          const tenant = tenantOf(taken.key);
          const waiting = [...left].filter(([, keys]) => keys > 0).map(([name]) => name);
          if (waiting.every((name) => round.has(name))) round = new Set();
          assert.ok(!round.has(tenant), `${tenant} has two turns in a round`);
          round.add(tenant);
          left.set(tenant, (left.get(tenant) ?? 0) - 1);
        }
        assert.ok([...left.values()].every((keys) => keys === 0));
      },
    ),
  );
});

// upstream: 92n
test('serves the highest priority unless another one has aged, within the bound', () => {
  const priorities = [7, 0, -100];
  const turn = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...priorities) },
    { weight: 2, arbitrary: fc.constant('take' as const) },
  );
  fc.assert(
    fc.property(fc.array(turn, { minLength: 60, maxLength: 200 }), (turns) => {
      const queue = new WorkQueue<number>({ name: 'test', clock: new FakeClock() });
      const waiting = new Map(priorities.map((priority) => [priority, [] as number[]]));
      /** Number of consecutive turns of others while it had keys. */
      const passedOver = new Map(priorities.map((priority) => [priority, 0]));
      let next = 0;
      const take = () => {
        const inUse = priorities.filter((priority) => (waiting.get(priority) ?? []).length > 0);
        const taken = queue.tryTake();
        if (!taken) return assert.equal(inUse.length, 0);
        const { key, priority } = taken;
        assert.equal(waiting.get(priority)?.shift(), key, 'within a priority, first in first out');
        const age = passedOver.get(priority) ?? 0;
        assert.ok(priority === inUse[0] || age >= AGEING_TURNS, `${priority} after ${age} turns`);
        for (const other of inUse) {
          const turns = other === priority ? 0 : (passedOver.get(other) ?? 0) + 1;
          assert.ok(
            turns < AGEING_TURNS + priorities.length,
            `${other} passed over ${turns} times`,
          );
          passedOver.set(other, turns);
        }
        if (waiting.get(priority)?.length === 0) passedOver.set(priority, 0);
        queue.done(key);
      };
      for (const turn of turns) {
        if (turn === 'take') {
          take();
        } else {
          queue.add(next, { priority: turn });
          waiting.get(turn)?.push(next++);
        }
      }
      while (queue.length > 0) take();
    }),
  );
});

// upstream: 76, 92m
test('ends all waits at any shutdown and waits for keys in flight', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 20 }),
      fc.array(step, { maxLength: 10 }),
      async (before, after) => {
        const clock = new FakeClock();
        const queue = new WorkQueue<string>({ name: 'test', clock }, { tenantOf });
        const held: string[] = [];
        let waiting = 0;
        const late: string[] = [];
        const take = async () => {
          waiting++;
          const taken = await queue.take();
          waiting--;
          if (!taken) return;
          if (queue.isShutDown) late.push(taken.key);
          held.push(taken.key);
        };
        const play = async (steps: readonly Step[]) => {
          for (const step of steps) {
            if (step.do === 'add') queue.add(step.key, optionsOf(step));
            else if (step.do === 'take') void take();
            else if (step.do === 'advance') await clock.advance(step.ms);
            else for (const key of held.splice(step.nth, 1)) queue.done(key);
            await settle(1);
          }
        };
        await play(before);
        queue.shutDown();
        await settle(1);
        let isIdle = false;
        const idle = queue.idle().then(() => (isIdle = true));
        await play(after);
        assert.equal(waiting, 0, 'no taker waits');
        assert.deepEqual(late, [], 'nothing is handed out any more');
        assert.equal(isIdle, held.length === 0, 'idle only when nothing is in flight');
        for (const key of held) queue.done(key);
        await idle;
        const { ready, delayed, processing } = queue.snapshot();
        assert.deepEqual([...ready, ...delayed, ...processing], []);
        assert.equal(clock.pending, 0);
      },
    ),
    { numRuns: 60 },
  );
});
