import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redaction } from '../../../src/replay/redaction.ts';

const NAMESPACE = '/api/v1/namespaces/default';
const text = (value: object) => JSON.stringify(value);
const redacted = (path: string, body: string, salt = 'a') =>
  new Redaction(salt, ['databases.example.com']).body(path, body) ?? '';

for (const [title, path, body] of [
  ['a list of Secrets', `${NAMESPACE}/secrets`, text({ items: [{ data: { key: 'secret' } }] })],
  [
    'a TokenReview',
    '/apis/authentication.k8s.io/v1/tokenreviews',
    text({ spec: { token: 'secret' } }),
  ],
  ['a log', `${NAMESPACE}/pods/web/log`, 'the secret'],
  ['a path outside of the API', '/debug', text({ token: 'secret' })],
  ['a further resource', '/apis/example.com/v1/databases/a', text({ spec: { text: 'secret' } })],
] as const) {
  test(`a recording has a hash of the contents of ${title}`, () => {
    assert.match(redacted(path, body), /"hash":"[0-9a-f]{64}"/);
    assert.doesNotMatch(redacted(path, body), /secret/);
    assert.equal(redacted(path, body), redacted(path, body));
    assert.notEqual(redacted(path, body), redacted(path, body, 'b'), 'with another salt');
  });
}

test('a recording has other contents in one line', () => {
  assert.equal(redacted(`${NAMESPACE}/pods/web`, '{\n"a": 1}\n'), '{ "a": 1}');
});
