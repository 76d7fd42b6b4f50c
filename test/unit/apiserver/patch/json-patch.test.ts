import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { jsonPatch } from '../../../../src/apiserver/patch/json-patch.ts';
import { PatchError } from '../../../../src/apiserver/patch/patch-error.ts';
import { NestingError } from '../../../../src/apiserver/schema/json-value.ts';
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

test('the operations of RFC 6902', () => {
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
  assert.deepEqual(apply({ a: 1 }, { op: 'replace', path: '', value: 5 }), 5);
  assert.deepEqual(apply({ 'a/b~c': 1 }, { op: 'test', path: '/a~1b~0c', value: 1 }), {
    'a/b~c': 1,
  });
  assert.deepEqual(apply({}, { op: 'test', path: '/absent', value: null }), {});
});

test('a test that fails is 422 and names the path; nothing is changed', () => {
  const document = { a: 1 };
  const patch = [
    { op: 'add', path: '/b', value: 2 },
    { op: 'test', path: '/a', value: 2 },
  ];
  refuses(document, patch, 422, /^testing value \/a failed: test failed$/);
  assert.deepEqual(document, { a: 1 });
});

test('what does not fit the object is 422', () => {
  refuses(
    {},
    [{ op: 'remove', path: '/a' }],
    422,
    /^remove operation does not apply: doc is missing path: "\/a"/,
  );
  refuses({}, [{ op: 'replace', path: '/a', value: 1 }], 422, /^replace operation/);
  refuses({}, [{ op: 'add', path: '/a/b', value: 1 }], 422, /missing path: "\/a\/b"/);
  refuses({}, [{ op: 'copy', from: '/x', path: '/y' }], 422, /missing path: "\/x"/);
  refuses({ a: [] }, [{ op: 'add', path: '/a/1', value: 1 }], 422, /invalid index/);
  refuses({ a: [1] }, [{ op: 'remove', path: '/a/-' }], 422, /invalid index/);
  refuses({ a: [1] }, [{ op: 'add', path: '/a/01', value: 1 }], 422, /invalid index/);
  refuses({ a: { b: 1 } }, [{ op: 'move', from: '/a', path: '/a/b/c' }], 422, /into itself/);
  refuses({}, [{ op: 'remove', path: '' }], 422, /whole object/);
  refuses({}, [{ op: 'remove', path: '/constructor' }], 422, /missing/);
});

test('an operation that nobody knows is 422', () => {
  refuses({}, [{ op: 'jump', path: '/a' }], 422, /Unexpected kind: "jump"/);
});

test('what is no JSON patch is 400', () => {
  refuses({}, {}, 400, /cannot unmarshal object into Go value of type \[\]handlers\.jsonPatchOp/);
  refuses({}, [5], 400, /operation 0 .* is not an object/);
  refuses({}, [{ op: 'add', path: '/a' }], 400, /has no "value"/);
  refuses({}, [{ op: 'copy', path: '/a' }], 400, /has no "from"/);
  refuses({}, [{ op: 'remove' }], 400, /has no "path"/);
  refuses({}, [{ op: 'remove', path: 'a' }], 400, /does not begin with/);
  const many = Array.from({ length: 10_001 }, () => ({ op: 'test', path: '', value: 1 }));
  refuses(1, many, 400, /maximum operations in a JSON patch is 10000, got 10001/);
});

test('copies of copies end before memory does', () => {
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

test('a member called __proto__ is data', () => {
  const result = jsonPatch({}, [{ op: 'add', path: '/__proto__', value: { polluted: 1 } }]);
  assert.deepEqual(Object.keys(result as object), ['__proto__']);
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
});

test('what was added is there, and removing it gives back the object', () => {
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
