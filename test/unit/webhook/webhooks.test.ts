import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PODS } from '../../../src/api/builtin.ts';
import { Webhooks } from '../../../src/webhook/webhooks.ts';
import { BOXES_V1, BOXES_V2, BOXES_V3 } from './kinds.ts';

const nothing = () => undefined;
const same = { up: () => ({}), down: () => ({}) };

test('the paths are those of controller-runtime, with the name of a further function', () => {
  const { admission } = new Webhooks()
    .defaults(BOXES_V1, nothing)
    .validates(BOXES_V1, nothing)
    .validates(BOXES_V1, nothing, { name: 'quota', operations: ['CREATE'] })
    .validates(PODS, nothing)
    .entries();
  assert.deepEqual(
    admission.map(({ path, type }) => [type, path]),
    [
      ['mutating', '/mutate-test-example-com-v1-box'],
      ['validating', '/validate-test-example-com-v1-box'],
      ['validating', '/validate-test-example-com-v1-box-quota'],
      ['validating', '/validate--v1-pod'],
    ],
  );
  assert.deepEqual(admission[0]?.options.operations, ['CREATE', 'UPDATE']);
  assert.deepEqual(admission[2]?.options.operations, ['CREATE']);
});

test('a kind has one hub, and each other version has one conversion', () => {
  const webhooks = new Webhooks()
    .converts(BOXES_V1, BOXES_V2, same)
    .converts(BOXES_V3, BOXES_V2, same);
  const [boxes] = webhooks.entries().conversions;
  assert.equal(boxes?.hub, BOXES_V2);
  assert.deepEqual(
    boxes.spokes.map(({ resource }) => resource.version),
    ['v1', 'v3'],
  );
  assert.throws(() => webhooks.converts(BOXES_V1, BOXES_V2, same), /v1 .* exists already/);
  assert.throws(() => webhooks.converts(BOXES_V2, BOXES_V2, same), /v2 .* exists already/);
  assert.throws(() => webhooks.converts(BOXES_V1, BOXES_V3, same), /the hub of boxes.* is v2/);
  const other = { ...BOXES_V1, plural: 'crates', kind: 'Crate' };
  assert.throws(() => webhooks.converts(other, BOXES_V2, same), /not versions of one kind/);
});

test('invalid options are rejected', () => {
  const webhooks = new Webhooks().validates(BOXES_V1, nothing);
  const declare = (options: object) => () => webhooks.validates(BOXES_V2, nothing, options);
  assert.throws(() => webhooks.validates(BOXES_V1, nothing), /set the option name/);
  assert.throws(declare({ timeout: 3 }), /unknown option timeout/);
  assert.throws(declare({ timeoutSeconds: 31 }), /must be 1 to 30: got 31/);
  assert.throws(declare({ timeoutSeconds: 0 }), RangeError);
  for (const timeoutSeconds of [1, 30]) {
    new Webhooks().validates(BOXES_V2, nothing, { timeoutSeconds });
  }
  assert.throws(declare({ name: 'a/b' }), /got "a\/b"/);
  assert.throws(declare({ operations: [] }), /operations is empty/);
});
