import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { LinkedList } from '../../../src/util/linked-list.ts';
import type { Linked } from '../../../src/util/linked-list.ts';

interface Element extends Linked<Element> {
  readonly id: number;
}

test('keeps the order of additions after any sequence of additions and removals', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9), { maxLength: 60, size: 'max' }), (ids) => {
      const list = new LinkedList<Element>();
      const elements = new Map<number, Element>();
      // Each id is added at its odd occurrences and removed at its even ones.
      for (const id of ids) {
        const present = elements.get(id);
        if (present) {
          list.remove(present);
          elements.delete(id);
          assert.deepEqual([present.previous, present.next], [undefined, undefined]);
        } else {
          const element: Element = { id, previous: undefined, next: undefined };
          list.append(element);
          elements.set(id, element);
        }
        assert.equal(list.first?.id, elements.keys().next().value);
        assert.deepEqual(
          Array.from(list, (element) => element.id),
          [...elements.keys()],
        );
      }
    }),
  );
});
