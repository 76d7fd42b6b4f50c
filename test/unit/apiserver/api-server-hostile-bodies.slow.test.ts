import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Reply } from './api-client.ts';
import { Api, CONFIG_MAPS } from './api-client.ts';
import { checkCrdSchema } from '../../../src/apiserver/crd/crd-schema.ts';
import { fieldError, invalidStatus } from '../../../src/api/field-error.ts';
import { prune } from '../../../src/apiserver/schema/pruning.ts';
import { validateStructure } from '../../../src/apiserver/schema/validate.ts';
import type { JsonSchema } from '../../../src/api/json-schema.ts';
import type { JsonObject } from '../../../src/util/json-value.ts';
import { inOneStep } from '../../../src/apiserver/objects/check-steps.ts';

/** More than the arguments that a call may have. */
const MANY = 140_000;

/** What a client accepts by default. */
const HEADER_LIMIT = 16 * 1024;

function members(count: number, prefix: string, value: unknown = ''): JsonObject {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`${prefix}${at}`, value]));
}

function create(extra: JsonObject, metadata: JsonObject = {}, query: string = ''): Promise<Reply> {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', ...metadata } };
  return new Api().post(`${CONFIG_MAPS}${query}`, { ...object, ...extra });
}

describe('an object with a problem in each of its many fields', () => {
  test('is stored without unknown fields, with warnings that fit into a header', async () => {
    const { status, headers, text } = await create(members(MANY, 'u'));
    assert.equal(status, 201, text.slice(0, 500));
    const { warning = '' } = headers;
    assert.match(warning, /^299 - "unknown field \\"u0\\"", /);
    assert.ok(warning.length < HEADER_LIMIT, `${warning.length} characters`);
  });

  test('is rejected with its first 100 unknown fields in strict field validation', async () => {
    for (const [extra, metadata] of [
      [members(1000, 'u'), {}],
      [{}, members(1000, 'u')],
    ] as const) {
      const { status, body } = await create(extra, metadata, '?fieldValidation=Strict');
      assert.equal(status, 400);
      assert.equal(body.message.match(/unknown field "/g).length, 100);
    }
  });

  test('is rejected with its first 1000 problems', async () => {
    const { status, body, text } = await create({}, { labels: members(20_000, '-') });
    assert.equal(status, 422, text.slice(0, 500));
    assert.ok(body.message.endsWith(', and more]'), body.message.slice(-500));
    assert.equal(body.details.causes.length, 1000);
  });

  test('is checked against all branches of a schema', () => {
    const list = Array.from({ length: MANY }, () => 'x');
    const integers = { items: { type: 'integer' } } as const;
    const strings = { items: { type: 'string' } } as const;
    const found = (allOf: readonly JsonSchema[]) =>
      validateStructure(list, { type: 'array', allOf }).length;
    assert.deepEqual(
      [found([integers]), found([strings, integers]), found([strings])],
      [1000, 1000, 0],
    );
  });

  test('does not prevent the cost estimate of a rule', () => {
    const values = Array.from({ length: MANY }, (_, at) => `v${at}`);
    const schema = (rule: string) => ({
      type: 'object',
      properties: { color: { type: 'string', enum: values } },
      'x-kubernetes-validations': [{ rule }],
    });
    assert.deepEqual(
      inOneStep(checkCrdSchema(schema('self.color.size() > 0'), 'schema', false)),
      [],
    );
  });
});

test('a path that all unknown fields share is repeated for 100 fields', () => {
  const schema = {
    type: 'object',
    properties: { map: { type: 'object', additionalProperties: { type: 'object' } } },
  };
  const object = { map: { ['k'.repeat(1000)]: members(1000, 'u') } };
  assert.equal(prune(object, schema).length, 100);
  assert.deepEqual(object, { map: { ['k'.repeat(1000)]: {} } });
});

test('one problem is reported, even if its text is long', () => {
  const long = fieldError.invalid('spec', 'x'.repeat(2 * 1024 * 1024), 'too long');
  const { message, details } = invalidStatus({ kind: 'A', group: '', name: 'a' }, [long, long]);
  assert.equal(details?.causes?.length, 1);
  assert.match(message ?? '', /too long, and more\]$/);
});

describe('a YAML body', () => {
  const send = (text: string) =>
    new Api().send('POST', CONFIG_MAPS, text, { 'content-type': 'application/yaml' });

  test('may have many keys that do not repeat', async () => {
    const keys = Array.from({ length: 10_000 }, (_, at) => `  key-${at}: value`).join('\n');
    const body = `metadata:\n  name: a\ndata:\n${keys}\n`;
    const { status, body: stored } = await send(body);
    assert.equal(status, 201);
    assert.equal(Object.keys(stored.data).length, 10_000);

    const twice = await send(`${body}  key-7: other\n`);
    assert.equal(twice.body.data['key-7'], 'other');
    assert.match(twice.headers['warning'] ?? '', /line 10004: key .*key-7.* already set in map/);
  });

  for (const [what, text] of [
    ['lists in lists', '['.repeat(1_400_000)],
    ['objects in objects', '{a: '.repeat(700_000)],
    ['lists of one item', '- '.repeat(1_400_000)],
    ['keys that are keys', '? '.repeat(1_400_000)],
  ] as const) {
    test(`is rejected if it is nested too deeply: ${what}`, async () => {
      const { status, body } = await send(text);
      assert.equal(status, 400);
      assert.match(body.message, /: yaml: line 1: nesting exceeded/);
    });
  }

  test('may have many comments', async () => {
    const { status } = await send(`${'#\n'.repeat(1_400_000)}metadata:\n  name: a\n`);
    assert.equal(status, 201);
  });

  test('is the first document, without aliases', async () => {
    const document = 'metadata:\n  name: a\n';
    assert.equal((await send(`---\n${document}`)).status, 201);
    assert.equal((await send(`${document}---\nkind: Other\n`)).status, 201);
    assert.equal((await send('metadata: {name: &a a, namespace: *a}')).status, 400);
    // An empty document is an object without a name.
    assert.equal((await send('')).status, 422);
  });
});
