import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { EventNames } from '../../../src/record/event-names.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

test('a name is that of the object and the time in hex nanoseconds', () => {
  const clock = new FakeClock(Date.UTC(2024, 0, 2, 3, 4, 5));
  const names = new EventNames(clock, () => 0.25);
  const nanos = BigInt(Date.UTC(2024, 0, 2, 3, 4, 5)) * 1_000_000n + 250_000n;
  assert.equal(names.next('test-pod'), `test-pod.${nanos.toString(16)}`);
});

test('names differ within one millisecond, and when the clock steps back', () => {
  const clock = new FakeClock();
  const names = new EventNames(clock, () => 0.5);
  const given = new Set(Array.from({ length: 1000 }, () => names.next('a')));
  clock.jump(-60_000);
  for (let i = 0; i < 1000; i++) given.add(names.next('a'));
  assert.equal(given.size, 2000);
});

test('an object whose name leaves no room, or is no DNS name, gets an event with a UUID', () => {
  const names = new EventNames(new FakeClock(), Math.random);
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  for (const name of [
    'a'.repeat(253),
    'system:node',
    'Upper',
    '-dash',
    'double..dot',
    '__proto__',
  ]) {
    assert.match(names.next(name), uuid, name);
  }
  assert.doesNotMatch(names.next('a'.repeat(230)), uuid);
});

test('whatever an object is called, its event has a valid name', () => {
  const names = new EventNames(new FakeClock(), Math.random);
  fc.assert(
    fc.property(fc.oneof(fc.string({ maxLength: 300 }), fc.domain()), (name) => {
      const given = names.next(name);
      assert.ok(given.length <= 253);
      for (const label of given.split('.')) assert.match(label, /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/);
    }),
  );
});
