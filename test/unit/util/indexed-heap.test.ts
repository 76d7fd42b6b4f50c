import assert from 'node:assert/strict';
import { it } from 'node:test';
import * as fc from 'fast-check';
import { IndexedHeap } from '../../../src/util/indexed-heap.ts';

const key = fc.integer({ min: 0, max: 20 });
const operation = fc.oneof(
  fc.record({ kind: fc.constant('set' as const), key, value: fc.integer() }),
  fc.record({ kind: fc.constant('delete' as const), key }),
  fc.record({ kind: fc.constant('pop' as const) }),
);

it('an indexed heap behaves like a map that returns its smallest value', () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
      const heap = new IndexedHeap<number, number>((a, b) => a < b);
      const model = new Map<number, number>();
      for (const step of operations) {
        switch (step.kind) {
          case 'set':
            heap.set(step.key, step.value);
            model.set(step.key, step.value);
            break;
          case 'delete':
            assert.equal(heap.delete(step.key), model.delete(step.key));
            break;
          case 'pop': {
            const popped = heap.pop();
            assert.equal(popped?.[1], model.size === 0 ? undefined : Math.min(...model.values()));
            if (popped) assert.ok(model.delete(popped[0]));
          }
        }
        assert.equal(heap.size, model.size);
        assert.equal(heap.peek()?.[1], model.size === 0 ? undefined : Math.min(...model.values()));
        for (const [known, value] of model) assert.equal(heap.get(known), value);
      }
      assert.deepEqual(new Map(heap), model);
    }),
  );
});
