import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { PatchError } from '../../../../src/apiserver/patch/json-patch.ts';
import { strategicMergePatch } from '../../../../src/apiserver/patch/strategic-merge-patch.ts';
import type { JsonSchema } from '../../../../src/api/json-schema.ts';
import type { JsonObject } from '../../../../src/util/json-value.ts';
import { NestingError } from '../../../../src/util/json-value.ts';
import { deepFreeze, nested, object } from '../schema/arbitraries.ts';

const port: JsonSchema = { type: 'object', properties: { port: { type: 'integer' } } };
const container: JsonSchema = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    image: { type: 'string' },
    args: { type: 'array', items: { type: 'string' } },
    ports: {
      type: 'array',
      items: port,
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'port',
    },
  },
};
const schema: JsonSchema = {
  type: 'object',
  properties: {
    containers: {
      type: 'array',
      items: container,
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'name',
    },
    finalizers: {
      type: 'array',
      items: { type: 'string' },
      'x-kubernetes-patch-strategy': 'merge',
    },
    strategy: { type: 'object', 'x-kubernetes-patch-strategy': 'retainKeys' },
    whole: { type: 'object', 'x-kubernetes-patch-strategy': 'replace' },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
  },
};

function apply(target: JsonObject, patch: unknown): JsonObject {
  return strategicMergePatch(deepFreeze(target), deepFreeze(patch), schema);
}

const pods = {
  containers: [
    { name: 'a', image: 'a:1', args: ['x'], ports: [{ port: 80, name: 'http' }] },
    { name: 'b', image: 'b:1' },
  ],
};

test('reads each item a bounded number of times', () => {
  let looks = 0;
  const counted = (item: JsonObject) =>
    new Proxy(item, {
      getOwnPropertyDescriptor: (target, key) => {
        looks++;
        return Reflect.getOwnPropertyDescriptor(target, key);
      },
    });
  const names = Array.from({ length: 300 }, (_, index) => `c${index}`);
  const target = { containers: names.map((name) => counted({ name, image: 'a:1' })) };
  const patch = { containers: names.toReversed().map((name) => ({ name, image: 'a:2' })) };
  const { containers } = strategicMergePatch(target, patch, schema);
  assert.deepEqual(containers, patch.containers);
  assert.ok(looks < 30 * names.length, `${looks} looks at ${names.length} items`);
});

test('merges items by key and adds new ones', () => {
  const patch = {
    containers: [
      { name: 'b', image: 'b:2' },
      { name: 'c', image: 'c:1' },
    ],
  };
  assert.deepEqual(apply(pods, patch), {
    containers: [pods.containers[0], { name: 'b', image: 'b:2' }, { name: 'c', image: 'c:1' }],
  });
});

test('merges nested items, replaces atomic lists, removes null fields', () => {
  const patch = {
    containers: [
      { name: 'a', image: null, args: ['y'], ports: [{ port: 80, name: 'web' }, { port: 81 }] },
    ],
  };
  assert.deepEqual(apply(pods, patch), {
    containers: [
      { name: 'a', args: ['y'], ports: [{ port: 80, name: 'web' }, { port: 81 }] },
      pods.containers[1],
    ],
  });
});

test('$patch: delete removes an item, $patch: replace replaces the list', () => {
  assert.deepEqual(apply(pods, { containers: [{ name: 'a', $patch: 'delete' }] }), {
    containers: [pods.containers[1]],
  });
  assert.deepEqual(apply(pods, { containers: [{ $patch: 'replace' }, { name: 'z' }] }), {
    containers: [{ name: 'z' }],
  });
  assert.deepEqual(
    apply({ labels: { a: '1', b: '2' } }, { labels: { $patch: 'replace', c: '3' } }),
    {
      labels: { c: '3' },
    },
  );
  assert.deepEqual(apply({ labels: { a: '1' } }, { labels: { $patch: 'delete' } }), { labels: {} });
});

test('merges lists of scalars and deletes values from them', () => {
  const target = { finalizers: ['a', 'b', 'c'] };
  assert.deepEqual(apply(target, { finalizers: ['d', 'a'] }), {
    finalizers: ['d', 'a', 'b', 'c'],
  });
  assert.deepEqual(apply(target, { '$deleteFromPrimitiveList/finalizers': ['b', 'x'] }), {
    finalizers: ['a', 'c'],
  });
});

test('deletes values before adding others and after ordering', () => {
  const change = { finalizers: ['a', 'd'], '$deleteFromPrimitiveList/finalizers': ['a', 'b'] };
  const reversed = Object.fromEntries(Object.entries(change).toReversed());
  for (const patch of [change, reversed]) {
    assert.deepEqual(apply({ finalizers: ['a', 'b'] }, patch), { finalizers: ['a', 'd'] });
    assert.deepEqual(
      apply({ finalizers: ['a', 'b'] }, { ...patch, '$setElementOrder/finalizers': ['a', 'd'] }),
      { finalizers: ['d'] },
    );
  }
});

test('$setElementOrder sets the order of a merged list', () => {
  assert.deepEqual(
    apply(pods, {
      '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }],
      containers: [{ name: 'b', image: 'b:2' }],
    }),
    { containers: [{ name: 'b', image: 'b:2' }, pods.containers[0]] },
  );
  assert.deepEqual(apply(pods, { '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }] }), {
    containers: [pods.containers[1], pods.containers[0]],
  });
  assert.deepEqual(
    apply(
      { finalizers: ['server', 'a', 'b'] },
      { '$setElementOrder/finalizers': ['b', 'c', 'a'], finalizers: ['c'] },
    ),
    { finalizers: ['server', 'b', 'c', 'a'] },
  );
});

test('$retainKeys removes every other key', () => {
  const target = { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } };
  assert.deepEqual(apply(target, { strategy: { $retainKeys: ['type'], type: 'Recreate' } }), {
    strategy: { type: 'Recreate' },
  });
  assert.throws(
    () => apply(target, { strategy: { $retainKeys: [], type: 'Recreate' } }),
    /invalid patch format of retainKeys/,
  );
});

test('replaces an object with the strategy replace', () => {
  assert.deepEqual(apply({ whole: { a: 1 } }, { whole: { b: 2 } }), { whole: { b: 2 } });
});

test('directives for absent fields have no effect', () => {
  const patch = {
    containers: [
      {
        name: 'new',
        image: null,
        '$setElementOrder/ports': [{ port: 1 }],
        ports: [{ port: 1 }, { port: 2, $patch: 'delete' }],
      },
    ],
    labels: { $patch: 'delete' },
  };
  // As upstream, which warns of the unknown field later.
  const order = { '$setElementOrder/ports': [{ port: 1 }] };
  const created = { containers: [{ name: 'new', ...order, ports: [{ port: 1 }] }] };
  assert.deepEqual(apply({}, patch), created);
  assert.deepEqual(apply({ containers: [] }, patch), { containers: patch.containers });
});

test('rejects a patch that does not fit', () => {
  const refused = (patch: unknown, code: number, message: RegExp) =>
    assert.throws(
      () => apply(pods, patch),
      (error) => error instanceof PatchError && error.code === code && message.test(error.message),
      String(message),
    );
  refused([], 400, /cannot unmarshal array into Go value/);
  refused(
    { containers: [{ image: 'x' }] },
    500,
    /map\[image:x\] does not contain declared merge key: name/,
  );
  refused({ containers: ['x'] }, 500, /not identical/);
  refused({ containers: [{ name: 'a', $patch: 'explode' }] }, 500, /unknown patch type: explode/);
  refused({ '$setElementOrder/containers': 5 }, 500, /expected a \[\]interface \{\}/);
  refused(
    { '$setElementOrder/containers': [{ name: 'b' }], containers: [{ name: 'a' }] },
    500,
    /setElementOrder/,
  );
  refused({ $deleteFromPrimitiveList: [] }, 400, /primitive list/);
  refused({ '$deleteFromPrimitiveList/containers': ['x'] }, 500, /not identical/);
  refused({ '$setElementOrder/containers': [{}] }, 500, /merge key/);
  refused({ '$setElementOrder/unknown': [] }, 500, /api field/);
  refused({ $setElementOrder: [] }, 400, /setElementOrder/);
  refused({ $retainKeys: [{}] }, 400, /retainKeys/);
  assert.deepEqual(apply(pods, { '$deleteFromPrimitiveList/containers': 'x' }), pods);
  assert.throws(() => apply({}, nested(100_000)), NestingError);
});

test('a member named __proto__ is data', () => {
  const patched = apply({}, JSON.parse('{"__proto__": {"polluted": 1}}'));
  assert.deepEqual(Object.keys(patched), ['__proto__']);
  assert.equal(({} as JsonObject)['polluted'], undefined);
});

test('patching is idempotent and returns the target if nothing changes', () => {
  const items = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'));
  const containers = items.map((names) => names.map((name) => ({ name, image: `${name}:2` })));
  const patch = fc.record({ containers, finalizers: items, labels: object.map(withoutNulls) });
  fc.assert(
    fc.property(patch, patch, (target, change) => {
      const once = apply(target, change);
      assert.equal(apply(once, change), once);
    }),
  );
});

function withoutNulls(labels: JsonObject): JsonObject {
  const texts = Object.keys(labels).map((key): [string, string] => [key, 'x']);
  return Object.fromEntries(texts);
}
