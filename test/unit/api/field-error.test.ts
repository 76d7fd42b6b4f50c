import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  fieldError,
  formatFieldError,
  invalidMessage,
  invalidStatus,
} from '../../../src/api/field-error.ts';
import { goJson, goNumber } from '../../../src/util/go-format.ts';
import { goQuote } from '../../../src/util/go-quote.ts';

const count = { kind: 'Count', group: 'demo.mark8s.io', name: 'x' };
const one = fieldError.required('spec.name');
const other = fieldError.invalid('spec.count', -1, 'must be positive');

test('the message has a single error without brackets, several in brackets', () => {
  assert.equal(
    invalidMessage(count, [one]),
    'Count.demo.mark8s.io "x" is invalid: spec.name: Required value',
  );
  assert.equal(invalidMessage(count, [one, one]), invalidMessage(count, [one]));
  assert.equal(
    invalidMessage(count, [one, other]),
    'Count.demo.mark8s.io "x" is invalid: [spec.name: Required value, spec.count: Invalid value: -1: must be positive]',
  );
  assert.equal(invalidMessage({ ...count, group: '' }, []), 'Count "x" is invalid');
});

test('the Status has reason, details and causes', () => {
  const status = invalidStatus(count, [other]);
  assert.equal(status.code, 422);
  assert.equal(status.reason, 'Invalid');
  assert.deepEqual(status.details, {
    name: 'x',
    group: 'demo.mark8s.io',
    kind: 'Count',
    causes: [
      {
        reason: 'FieldValueInvalid',
        message: 'Invalid value: -1: must be positive',
        field: 'spec.count',
      },
    ],
  });
});

test('values are formatted like in Go', () => {
  assert.equal(
    formatFieldError(fieldError.duplicate('a', { b: '<&>', a: 1 })),
    'a: Duplicate value: {"a":1,"b":"\\u003c\\u0026\\u003e"}',
  );
  assert.equal(
    formatFieldError(fieldError.notSupported('a', null, ['x'])),
    'a: Unsupported value: null: supported values: "x"',
  );
  assert.equal(goQuote('a"\\\n\u0000é\u200b'), '"a\\"\\\\\\n\\x00é\\u200b"');
  assert.equal(goNumber(1e21), '1e+21');
  assert.equal(goNumber(0.00001), '1e-05');
  assert.equal(goNumber(0.5), '0.5');
  assert.equal(goJson([undefined, null, 'x']), '[null,null,"x"]');
});
