import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validateRules } from '../../../src/cel/validate-rules.ts';
import { checkRuleExpressions } from '../../../src/apiserver/crd/crd-rules.ts';
import { formatFieldError } from '../../../src/api/field-error.ts';
import type { JsonSchema } from '../../../src/api/json-schema.ts';
import { inOneStep } from '../../../src/apiserver/objects/check-steps.ts';

/** Limit of CPU time in milliseconds. Without a cost limit these rules take hours. */
const BOUND_MS = 5000;

const properties: Readonly<Record<string, JsonSchema>> = {
  text: { type: 'string' },
  list: { type: 'array', items: { type: 'integer' } },
  set: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
  map: { type: 'object', additionalProperties: { type: 'string' } },
};

function schemaWith(...rules: string[]): JsonSchema {
  const spec = {
    type: 'object',
    properties,
    'x-kubernetes-validations': rules.map((rule) => ({ rule })),
  };
  return { type: 'object', properties: { spec } };
}

const spec = {
  text: 'a'.repeat(100_000),
  list: Array.from({ length: 10_000 }, (_, index) => index),
  set: Array.from({ length: 2000 }, (_, index) => `k${index}`),
  map: Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`k${index}`, 'v'])),
};

function judged(...rules: string[]): string[] {
  return validateRules({ spec }, undefined, schemaWith(...rules), []).map(formatFieldError);
}

test('the cost limit stops every expensive rule', () => {
  const hostile = [
    'self.list.all(a, self.list.all(b, self.list.all(c, a + b + c >= 0)))',
    'self.list.all(x, self.text.size() > 0)',
    'self.list.all(x, self.text.replace("a", self.text).size() > 0)',
    'self.list.all(x, !"a".matches("(b{100}){10}" + string(x)))',
    'self.list.map(x, self.list).flatten().size() > 0',
    'lists.range(9223372036854775807).size() > 0',
  ];
  for (const rule of hostile) {
    const start = process.threadCpuUsage().user;
    assert.deepEqual(judged(rule), [
      `spec: Invalid value: "object": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: ${rule}`,
    ]);
    assert.ok((process.threadCpuUsage().user - start) / 1000 < BOUND_MS, rule);
  }
});

test('many cheap rules exceed the cost limit of one write', () => {
  // Upstream charges for 900,000 comparisons.
  const rule = `!self.text.contains("${'b'.repeat(900)}")`;
  assert.deepEqual(judged(rule), []);
  const said = judged(...Array.from({ length: 12 }, () => rule));
  assert.deepEqual(said, [
    'spec: Invalid value: "object": validation failed due to running out of cost budget, no further validation rules will be run',
  ]);
});

test('deeply nested rules compile quickly', () => {
  const repeat = (times: number, text: string, joiner = '') =>
    Array.from({ length: times }, () => text).join(joiner);
  const hostile = [
    `${'('.repeat(50_000)}1${')'.repeat(49_000)}`,
    `${'!'.repeat(90_000)}true`,
    repeat(11_000, 'true', ' && '),
    repeat(20_000, '1', ' + '),
    `self${repeat(20_000, '.x')}`,
    `[1]${repeat(80, '.map(x, [x, x])')}.size() > 0`,
    `[{1: 1}]${repeat(80, '.map(x, {"a": x, "b": x})')}.size() > 0`,
    `${repeat(5000, 'true ? 1', ' : ')} : 2`,
    `[${repeat(9000, '[]', ',')}] == []`,
    `self.text.matches("${repeat(9, '(', '')}a${repeat(9, '{1000})', '')}")`,
    '1'.repeat(90_000),
    ' '.repeat(200_000),
  ];
  for (const rule of hostile) {
    const start = process.threadCpuUsage().user;
    inOneStep(checkRuleExpressions(schemaWith(rule), '~'));
    assert.ok((process.threadCpuUsage().user - start) / 1000 < BOUND_MS, rule.slice(0, 60));
  }
});

test('names of prototype members are ordinary names', () => {
  const map: Record<string, string> = Object.fromEntries([
    ['__proto__', 'p'],
    ['constructor', 'c'],
  ]);
  const rules = [
    'self.map["__proto__"] == "p" && self.map["constructor"] == "c"',
    '!("toString" in self.map) && !has(self.map.hasOwnProperty) && self.map.size() == 2',
    'self.map.transformMap(k, v, v)["__proto__"] == "p"',
    '{"__proto__": 1}["__proto__"] == 1',
  ];
  assert.deepEqual(validateRules({ spec: { map } }, undefined, schemaWith(...rules), []), []);
});

test('a schema without rules is searched for rules once', () => {
  let reads = 0;
  const schema: JsonSchema = {
    type: 'object',
    get properties() {
      reads++;
      return properties;
    },
  };
  for (let time = 0; time < 3; time++) validateRules({}, undefined, schema, []);
  assert.equal(reads, 1);
});
