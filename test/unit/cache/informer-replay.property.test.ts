import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { keyOf } from '../../../src/api/object-key.ts';
import type { HandlerRegistration } from '../../../src/cache/event-handler.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import { expired, thing } from '../../support/fake-source.ts';
import type { FakeSource } from '../../support/fake-source.ts';
import { informerFixture, recordingHandler } from './harness.ts';

type Write = { readonly do: 'put' | 'remove'; readonly name: string; readonly value: number };

type Step =
  | Write
  /** Changes without a watch; a relist returns the state after them. */
  | { readonly do: 'gap'; readonly writes: readonly Write[] }
  /** The server sends an event again. */
  | { readonly do: 'repeat'; readonly name: string }
  | { readonly do: 'bookmark' }
  | { readonly do: 'join' }
  | { readonly do: 'leave'; readonly nth: number };

const write: fc.Arbitrary<Write> = fc.record({
  do: fc.constantFrom('put' as const, 'put' as const, 'remove' as const),
  name: fc.constantFrom('a', 'b', 'c', '__proto__'),
  value: fc.nat(9),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: write },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('gap' as const),
      writes: fc.array(write, { maxLength: 5 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('repeat' as const),
      name: fc.constantFrom('a', 'b', 'c'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('bookmark' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('join' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), nth: fc.nat(4) }) },
);

/** Expected events of a handler, computed from the history. */
class Model {
  /** Last delivered state. A write creates a new one, also with an equal value. */
  #delivered: ReadonlyMap<string, { readonly value: number }> = new Map();
  /** State of the server, in the order of its lists. */
  readonly #listed = new Map<string, { readonly value: number }>();
  readonly registrations: { readonly expected: string[]; present: boolean }[] = [];

  join(): void {
    const known = [...this.#delivered].map(([name, { value }]) => `+${name}=${value}!`);
    this.registrations.push({ expected: known, present: true });
  }

  /** One write, sent by the watch. */
  see({ do: what, name, value }: Write): void {
    const old = this.#delivered.get(name);
    const next = new Map(this.#delivered);
    if (what === 'remove') {
      if (!old) return;
      this.#listed.delete(name);
      next.delete(name);
      this.#expect(`-${name}`);
    } else {
      const object = { value };
      this.#listed.set(name, object);
      next.set(name, object);
      this.#expect(old ? `~${name}=${old.value}→${value}` : `+${name}=${value}`);
    }
    this.#delivered = next;
  }

  /** Several writes of which only the final state is visible. */
  seeState(writes: readonly Write[]): void {
    const next = this.#listed;
    for (const { do: what, name, value } of writes) {
      if (what === 'put') next.set(name, { value });
      else next.delete(name);
    }
    for (const name of this.#delivered.keys()) if (!next.has(name)) this.#expect(`-${name}?`);
    for (const [name, object] of next) {
      const old = this.#delivered.get(name);
      if (!old) this.#expect(`+${name}=${object.value}`);
      else if (old !== object) this.#expect(`~${name}=${old.value}→${object.value}`);
    }
    // A key keeps its place in the store.
    const places = [...this.#delivered.keys(), ...next.keys()];
    this.#delivered = new Map(
      places.flatMap((name) => {
        const object = next.get(name);
        return object ? [[name, object] as const] : [];
      }),
    );
  }

  #expect(note: string): void {
    for (const { expected, present } of this.registrations) if (present) expected.push(note);
  }
}

function carryOut(source: FakeSource, { do: what, name, value }: Write): void {
  if (what === 'put') source.put(name, value);
  else if (source.objects.some(({ metadata }) => metadata.name === name)) source.remove(name);
}

// upstream: 58, 59
test('delivers exactly the history to every handler, whenever it was added or removed', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 25 }), async (history) => {
      const { source, clock, informer, start, stop } = informerFixture();
      const model = new Model();
      const books: { readonly notes: string[]; readonly registration: HandlerRegistration }[] = [];
      const join = () => {
        const { notes, handler } = recordingHandler();
        books.push({ notes, registration: informer.addHandler(handler) });
        model.join();
      };
      join();
      await start();
      for (const happens of history) {
        switch (happens.do) {
          case 'put':
          case 'remove':
            carryOut(source, happens);
            model.see(happens);
            break;
          case 'gap':
            source.emit({ type: 'error', error: expired() });
            for (const each of happens.writes) carryOut(source, each);
            source.compact();
            await settle(2);
            await clock.advance(clock.untilNext!);
            model.seeState(happens.writes);
            break;
          case 'repeat': {
            const present = source.objects.find(({ metadata }) => metadata.name === happens.name);
            if (present) source.emit({ type: 'modified', object: present });
            else source.emit({ type: 'deleted', object: thing(happens.name) });
            break;
          }
          case 'bookmark':
            source.bookmark();
            break;
          case 'join':
            await settle(1);
            join();
            break;
          case 'leave': {
            await settle(1);
            const nth = happens.nth % books.length;
            books[nth]!.registration.remove();
            model.registrations[nth]!.present = false;
          }
        }
        await settle(1);
      }
      for (const [nth, { notes, registration }] of books.entries()) {
        const { expected, present } = model.registrations[nth]!;
        assert.deepEqual(notes, expected);
        assert.equal(registration.hasSynced || !present, true);
      }
      const truth = new Map(source.objects.map((object) => [keyOf(object), object]));
      const cached = informer.lister.list();
      assert.deepEqual(new Map(cached.map((object) => [keyOf(object), object])), truth);
      await stop();
    }),
    { numRuns: 40 },
  );
});
