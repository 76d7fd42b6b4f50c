import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { Heap } from '../../../src/util/heap.ts';

const id = fc.integer({ min: 0, max: 20 });
const operation = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.record({ kind: fc.constant('set' as const), id, value: fc.integer() }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('delete' as const), id }) },
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('pop' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear' as const) }) },
);

test('returns the smallest entry after any sequence of operations', () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 200, size: 'max' }), (operations) => {
      const heap = new Heap<{ value: number; heapIndex: number }>((a, b) => a.value < b.value);
      const entries = Array.from({ length: 21 }, () => ({ value: 0, heapIndex: -1 }));
      const model = new Set<object>();
      const smallest = () =>
        Math.min(...entries.filter((entry) => model.has(entry)).map(({ value }) => value));
      for (const step of operations) {
        const entry = 'id' in step ? entries[step.id] : undefined;
        if (step.kind === 'set' && entry) {
          entry.value = step.value;
          heap.set(entry);
          model.add(entry);
        } else if (step.kind === 'delete' && entry) {
          assert.equal(heap.delete(entry), model.delete(entry));
        } else if (step.kind === 'pop') {
          const expected = model.size === 0 ? undefined : smallest();
          const popped = heap.pop();
          assert.equal(popped?.value, expected);
          if (popped) assert.ok(model.delete(popped));
        } else {
          heap.clear();
          model.clear();
        }
        assert.equal(heap.size, model.size);
        assert.equal(heap.peek()?.value, model.size === 0 ? undefined : smallest());
      }
    }),
  );
});
