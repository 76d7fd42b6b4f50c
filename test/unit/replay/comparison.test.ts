import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareEndings, compareWrites, requestWrite } from '../../../src/replay/comparison.ts';
import type { Ending } from '../../../src/replay/format.ts';

const DONE: Ending = { outcome: { kind: 'done' } };
const after = (ms: number, reason = 'a'): Ending => ({
  outcome: { kind: 'requeueAfter', ms, reason },
});

for (const [title, recorded, replayed, isEqual] of [
  ['delays that differ by a second', after(1000), after(2000), true],
  ['delays that differ by more', after(1000), after(2001), false],
  ['delays with other reasons', after(1000), after(1000, 'b'), false],
  ['a delay and none', after(1000), DONE, false],
  ['equal errors', { error: 'a' }, { error: 'a' }, true],
  ['an error and a success', { error: 'a' }, DONE, false],
  ['a sync that does not end', DONE, undefined, false],
  ['a sync that was aborted', { aborted: true }, undefined, true],
] as const) {
  test(`results ${isEqual ? 'agree' : 'differ'} for ${title}`, () => {
    assert.equal(compareEndings(recorded, replayed) === undefined, isEqual);
  });
}

test('writes differ in the query of the request, and in at most 20 listed fields', () => {
  const write = (query: string, value: number) => {
    const data = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [at, value]));
    return requestWrite('PATCH', `/api/v1/namespaces/a/configmaps/b${query}`, { data });
  };
  const [query] = compareWrites([write('?force=true', 1)], [write('', 1)]);
  assert.deepEqual(query?.fields, [
    { field: '.query', recorded: '"force=true"', replayed: undefined },
  ]);
  const [data] = compareWrites([write('', 1)], [write('', 2)]);
  assert.equal(data?.fields.length, 20);
});
