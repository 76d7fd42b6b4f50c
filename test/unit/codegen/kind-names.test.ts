import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kindNames } from '../../../src/codegen/kind-names.ts';

test('the plural of a kind is the English one', () => {
  for (const [kind, plural] of [
    ['StaticSite', 'staticsites'],
    ['Gateway', 'gateways'],
    ['Key', 'keys'],
    ['Proxy', 'proxies'],
    ['NetworkPolicy', 'networkpolicies'],
    ['Index', 'indexes'],
    ['Switch', 'switches'],
    ['Mesh', 'meshes'],
    ['Bus', 'buses'],
    ['Ingress', 'ingresses'],
    ['Class', 'classes'],
    ['Status', 'statuses'],
    ['Soliloquy', 'soliloquies'],
    ['Blitz', 'blitzes'],
    ['Analysis', 'analyses'],
    ['Axis', 'axes'],
    ['HTTPRoute', 'httproutes'],
  ] as const) {
    assert.equal(kindNames(kind, 'example.com').plural, plural);
  }
});

test('identifiers start with the first word in lower case', () => {
  for (const [kind, camel] of [
    ['StaticSite', 'staticSite'],
    ['HTTPRoute', 'httpRoute'],
    ['Gateway', 'gateway'],
  ] as const) {
    assert.equal(kindNames(kind, 'example.com').camel, camel);
  }
});

test('uses a given plural, also in the name of the descriptor', () => {
  const { plural, constant } = kindNames('Person', 'example.com', 'people');
  assert.deepEqual([plural, constant], ['people', 'PEOPLE']);
  for (const wrong of ['People', 'a_b', '-x', 'x-', '1st']) {
    assert.throws(() => kindNames('Person', 'example.com', wrong), {
      name: 'RangeError',
      message: /--plural must have lower-case letters/,
    });
  }
});
