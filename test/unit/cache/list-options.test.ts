import assert from 'node:assert/strict';
import { test } from 'node:test';
import { selectionsOf } from '../../../src/cache/list-options.ts';
import type { InformerScope } from '../../../src/cache/list-options.ts';
import { THINGS } from '../../support/fake-source.ts';

const CLUSTER_THINGS = { ...THINGS, namespaced: false };

const namespacesOf = (scope: InformerScope, resource = THINGS) =>
  selectionsOf(resource, scope).map(({ namespace }) => namespace);

// upstream: 74b
test('returns one selection per namespace, without duplicates, or one for all', () => {
  assert.deepEqual(namespacesOf({}), [undefined]);
  assert.deepEqual(namespacesOf({ namespaces: [] }), [undefined]);
  assert.deepEqual(namespacesOf({ namespace: 'a' }), ['a']);
  assert.deepEqual(namespacesOf({ namespaces: ['b', 'a', 'b'] }), ['b', 'a']);
});

test('returns one selection for a cluster-scoped resource', () => {
  assert.deepEqual(namespacesOf({ namespaces: ['a', 'b'] }, CLUSTER_THINGS), [undefined]);
  assert.deepEqual(namespacesOf({ namespace: 'a' }, CLUSTER_THINGS), [undefined]);
});

test('rejects contradictory or empty namespaces', () => {
  assert.throws(() => namespacesOf({ namespace: 'a', namespaces: ['b'] }), {
    name: 'TypeError',
    message: 'things.test.example: expected either namespace or namespaces, got both',
  });
  assert.throws(() => namespacesOf({ namespaces: ['a', ''] }), {
    name: 'TypeError',
    message: /for all namespaces, set none/,
  });
});

test('rejects a malformed selector by name, also one of a tweak function', () => {
  assert.throws(() => selectionsOf(THINGS, { labelSelector: 'a=b=c' }), {
    name: 'SyntaxError',
    message: /^things\.test\.example: labelSelector: found '='/,
  });
  assert.throws(() => selectionsOf(THINGS, {}, () => ({ fieldSelector: 'metadata.name' })), {
    name: 'SyntaxError',
    message: /^things\.test\.example: fieldSelector: invalid selector/,
  });
});

// upstream: 74b
test('accepts a label selector in the form of objects', () => {
  const labelSelector = { matchLabels: { app: 'web' } };
  const [selection] = selectionsOf(THINGS, { labelSelector });
  assert.equal(selection?.labelSelector, 'app=web');
  assert.throws(() => selectionsOf(THINGS, { labelSelector: { matchLabels: { app: 'a=b' } } }), {
    name: 'SyntaxError',
    message: /^things\.test\.example: labelSelector: /,
  });
  const misspelt = { matchLables: { app: 'web' } } as object;
  assert.throws(
    () => selectionsOf(THINGS, { labelSelector: misspelt }),
    /did you mean matchLabels/,
  );
});

test('calls a tweak function once for several namespaces', () => {
  const asked: unknown[] = [];
  const selections = selectionsOf(THINGS, {
    namespaces: ['a', 'b'],
    labelSelector: 'app',
    tweakListOptions: (options, resource) => {
      asked.push([options, resource]);
      return { ...options, labelSelector: 'app=web' };
    },
  });
  assert.deepEqual(asked, [[{ labelSelector: 'app', fieldSelector: undefined }, THINGS]]);
  assert.deepEqual(
    selections.map(({ labelSelector }) => labelSelector),
    ['app=web', 'app=web'],
  );
});
