import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  jsonPatch,
  MAX_OPERATIONS,
  PatchedDocument,
  PatchError,
} from '../../../../src/apiserver/patch/json-patch.ts';
import type { JsonOperation } from '../../../../src/apiserver/patch/json-patch.ts';
import { NestingError } from '../../../../src/util/json-value.ts';
import { deepFreeze, json, object } from '../schema/arbitraries.ts';

function refuses(document: unknown, patch: unknown, code: number, message: RegExp): void {
  assert.throws(
    () => jsonPatch(deepFreeze(document), patch),
    (error) => {
      assert.ok(error instanceof PatchError);
      assert.equal(error.code, code);
      assert.match(error.message, message);
      return true;
    },
  );
}

test('applies the operations of RFC 6902', () => {
  const apply = (document: unknown, ...patch: unknown[]) => jsonPatch(deepFreeze(document), patch);
  assert.deepEqual(apply({ a: 1 }, { op: 'add', path: '/b', value: 2 }), { a: 1, b: 2 });
  assert.deepEqual(apply({ a: [1, 3] }, { op: 'add', path: '/a/1', value: 2 }), { a: [1, 2, 3] });
  assert.deepEqual(apply({ a: [1] }, { op: 'add', path: '/a/-', value: 2 }), { a: [1, 2] });
  assert.deepEqual(apply({ a: [1] }, { op: 'add', path: '/a/1', value: 2 }), { a: [1, 2] });
  assert.deepEqual(apply({ a: 1, b: 2 }, { op: 'remove', path: '/b' }), { a: 1 });
  assert.deepEqual(apply({ a: [1, 2] }, { op: 'remove', path: '/a/0' }), { a: [2] });
  assert.deepEqual(apply({ a: { b: 1 } }, { op: 'replace', path: '/a/b', value: 2 }), {
    a: { b: 2 },
  });
  assert.deepEqual(apply({ a: { x: 1 } }, { op: 'move', from: '/a/x', path: '/b' }), {
    a: {},
    b: 1,
  });
  assert.deepEqual(apply({ a: [1, 2] }, { op: 'move', from: '/a/0', path: '/a/1' }), {
    a: [2, 1],
  });
  assert.deepEqual(apply({ a: 1 }, { op: 'copy', from: '/a', path: '/b' }), { a: 1, b: 1 });
  assert.deepEqual(apply({ a: 1 }, { op: 'replace', path: '', value: { b: 5 } }), { b: 5 });
  assert.deepEqual(apply({ a: [1, 2] }, { op: 'remove', path: '/a/-1' }), { a: [1] });
  assert.deepEqual(apply({ a: [1, 2] }, { op: 'add', path: '/a/-1', value: 3 }), { a: [1, 2, 3] });
  assert.deepEqual(apply({ a: [1] }, { op: 'add', path: 'x/a/01', value: 2 }), { a: [1, 2] });
  assert.deepEqual(apply({}, { op: 'replace', path: '/a', value: 1 }), { a: 1 });
  assert.deepEqual(apply({ 'a/b~c': 1 }, { op: 'test', path: '/a~1b~0c', value: 1 }), {
    'a/b~c': 1,
  });
  assert.deepEqual(apply({}, { op: 'test', path: '/absent', value: null }), {});
});

test('a failed test is a 422 with the path and changes nothing', () => {
  const document = { a: 1 };
  const patch = [
    { op: 'add', path: '/b', value: 2 },
    { op: 'test', path: '/a', value: 2 },
  ];
  refuses(document, patch, 422, /^testing value \/a failed: test failed$/);
  assert.deepEqual(document, { a: 1 });
});

test('an operation that does not fit the object is a 422', () => {
  refuses(
    {},
    [{ op: 'remove', path: '/a' }],
    422,
    /^remove operation does not apply: doc is missing path: "\/a"/,
  );
  refuses({}, [{ op: 'replace', path: '/a/b', value: 1 }], 422, /^replace operation/);
  refuses({}, [{ op: 'add', path: '/a/b', value: 1 }], 422, /missing path: "\/a\/b"/);
  refuses({}, [{ op: 'copy', from: '/x/y', path: '/y' }], 422, /missing path: "\/x\/y"/);
  refuses({ a: [] }, [{ op: 'add', path: '/a/1', value: 1 }], 422, /invalid index/);
  refuses({ a: [1] }, [{ op: 'remove', path: '/a/-' }], 422, /invalid index/);
  refuses({ a: [1] }, [{ op: 'add', path: '/a/1x', value: 1 }], 422, /invalid index/);
  refuses({ a: [1] }, [{ op: 'remove', path: '/a/-2' }], 422, /invalid index/);
  refuses({ a: { b: 1 } }, [{ op: 'move', from: '/a', path: '/a/b/c' }], 422, /into itself/);
  // Only `replace` and `test` apply to the whole object.
  for (const path of ['', 'a']) {
    refuses({}, [{ op: 'remove', path }], 422, /missing path/);
    refuses({ a: 1 }, [{ op: 'add', path, value: {} }], 422, /missing path/);
    refuses({ a: 1 }, [{ op: 'copy', from: path, path: '/b' }], 422, /missing path/);
    refuses({ a: 1 }, [{ op: 'copy', from: '/a', path }], 422, /missing path/);
  }
  refuses({}, [{ op: 'replace', path: '', value: 5 }], 422, /object or array/);
  refuses({ a: 1 }, [{ op: 'replace', path: 'a', value: 5 }], 422, /missing path/);
  refuses({ a: 1 }, [{ op: 'test', path: 'a', value: { a: 1 } }], 422, /missing path/);
  refuses({}, [{ op: 'remove', path: '/constructor' }], 422, /missing/);
});

test('an unknown operation is a 422', () => {
  refuses({}, [{ op: 'jump', path: '/a' }], 422, /Unexpected kind: "jump"/);
  refuses({}, [null], 422, /./);
});

test('a malformed JSON patch is a 400', () => {
  refuses({}, {}, 400, /cannot unmarshal object into Go value of type \[\]handlers\.jsonPatchOp/);
  refuses({}, [5], 400, /cannot unmarshal number into Go value of type handlers\.jsonPatchOp/);
});

test('an operation without a valid path is a 422', () => {
  refuses({}, [{ op: 'copy', path: '/a' }], 422, /has no "from"/);
  refuses({}, [{ op: 'remove' }], 422, /has no "path"/);
});

test('an absent value is null, and null is a patch without operations', () => {
  assert.deepEqual(jsonPatch({}, [{ op: 'add', path: '/a' }]), { a: null });
  assert.deepEqual(jsonPatch({}, [{ op: 'copy', from: '/x', path: '/a' }]), { a: null });
  assert.deepEqual(jsonPatch({ a: 1 }, null), { a: 1 });
});

test('a patch with more than 10000 operations is a 413', () => {
  const operation = { op: 'test', path: '', value: 1 };
  const many = Array.from({ length: MAX_OPERATIONS + 1 }, () => operation);
  refuses(1, many, 413, /maximum operations in a JSON patch is 10000, got 10001/);
  assert.equal(jsonPatch(1, many.slice(1)), 1);
});

test('copies each changed container once', () => {
  const members = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`key-${at}`, at]));
  const document = new PatchedDocument(deepFreeze({ spec: { members, list: [0] }, other: {} }));
  for (let at = 0; at < 100; at++) {
    document.apply({ op: 'add', path: `/spec/members/new-${at}`, value: at });
    document.apply({ op: 'replace', path: `/spec/members/key-${at}`, value: -at });
    document.apply({ op: 'add', path: '/spec/list/0', value: at });
    document.apply({ op: 'move', from: '/spec/list/0', path: '/spec/list/-' });
    document.apply({ op: 'remove', path: `/spec/members/new-${at}` });
  }
  // The root, `spec`, `members` and `list`.
  assert.equal(document.copies, 4);
});

test('a copied value and its original are independent', () => {
  const result = jsonPatch(deepFreeze({ a: { list: [{ x: 1 }] } }), [
    { op: 'add', path: '/a/list/0/y', value: 2 },
    { op: 'copy', from: '/a', path: '/b' },
    { op: 'add', path: '/a/list/0/z', value: 3 },
    { op: 'remove', path: '/b/list/0/x' },
  ]);
  assert.deepEqual(result, { a: { list: [{ x: 1, y: 2, z: 3 }] }, b: { list: [{ y: 2 }] } });
});

/** Short pointers, so that many match. */
const pointer = fc
  .array(fc.constantFrom('a', 'b', '0', '1', '-'), { maxLength: 3 })
  .map((tokens) => tokens.map((token) => `/${token}`).join(''));
const small = fc.constantFrom<unknown>(1, {}, [], { a: [1, 2], b: { a: {} } }, [[{ b: 1 }], 2]);
const operation: fc.Arbitrary<JsonOperation> = fc.oneof(
  fc.record({ op: fc.constantFrom('add', 'replace'), path: pointer, value: small }),
  fc.record({ op: fc.constant('remove'), path: pointer }),
  fc.record({ op: fc.constantFrom('move', 'copy'), path: pointer, from: pointer }),
);

test('a list of operations equals the operations applied one by one', () => {
  fc.assert(
    fc.property(small, fc.array(operation, { maxLength: 30 }), (document, operations) => {
      let state = deepFreeze(document);
      const fitting = deepFreeze(operations).filter((next) => {
        try {
          state = deepFreeze(jsonPatch(state, [next]));
          return true;
        } catch (error) {
          if (error instanceof PatchError) return false;
          throw error;
        }
      });
      assert.deepEqual(jsonPatch(document, fitting), state);
    }),
    { numRuns: 500 },
  );
});

test('limits the size of repeated copies', () => {
  const double = [
    { op: 'copy', from: '/a', path: '/b' },
    { op: 'copy', from: '/a', path: '/c' },
    { op: 'move', from: '/b', path: '/a/b' },
    { op: 'move', from: '/c', path: '/a/c' },
  ];
  const patch = Array.from({ length: 60 }, () => double).flat();
  refuses({ a: { x: 'y'.repeat(100) } }, patch, 422, /the copies of this patch exceed/);
  const chain = Array.from({ length: 500 }, () => ({ op: 'add', path: '/a', value: 1 }));
  assert.deepEqual(jsonPatch({}, chain), { a: 1 });
  const deeper = Array.from({ length: 450 }, (_, level) => ({
    op: 'add',
    path: '/a'.repeat(level + 1),
    value: {},
  }));
  assert.throws(() => jsonPatch({}, deeper), NestingError);
});

test('a member named __proto__ is data', () => {
  const result = jsonPatch({}, [{ op: 'add', path: '/__proto__', value: { polluted: 1 } }]);
  assert.deepEqual(Object.keys(result as object), ['__proto__']);
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
});

test('removing an added value restores the object', () => {
  fc.assert(
    fc.property(object, json, (document, value) => {
      deepFreeze(document);
      const added = jsonPatch(document, [
        { op: 'add', path: '/new~1member', value },
        { op: 'test', path: '/new~1member', value },
      ]);
      assert.deepEqual(jsonPatch(added, [{ op: 'remove', path: '/new~1member' }]), document);
    }),
  );
});
