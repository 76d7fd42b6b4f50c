import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSecretName, redactText } from '../../../src/util/redact.ts';

test('recognises names of secrets in every spelling', () => {
  for (const name of [
    'token',
    'bearerToken',
    'access_token',
    'Authorization',
    'proxy-authorization',
    'password',
    'dbPassword',
    'clientSecret',
    'client-key-data',
    'privateKey',
    'apiKey',
    'cookie',
    'set-cookie',
    'credentials',
    'kubectl.kubernetes.io/last-applied-configuration',
  ]) {
    assert.ok(isSecretName(name), name);
  }
});

test('does not mask similar names', () => {
  for (const name of ['secret', 'key', 'kubeconfig', 'continueToken', 'tokens', 'pod', 'author']) {
    assert.ok(!isSecretName(name), name);
  }
});

test('masks credentials by their form at any position', () => {
  const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl';
  assert.equal(redactText(`sent Bearer ${jwt}, got 401`), 'sent Bearer [redacted], got 401');
  assert.equal(redactText('Bearer 0123abcdef'), 'Bearer [redacted]');
  assert.equal(redactText('authorization: basic dXNlcjpwYXNz'), 'authorization: basic [redacted]');
  assert.equal(redactText(`the token ${jwt} expired`), 'the token [redacted] expired');
  assert.equal(redactText('GET https://me:s3cret@host/x'), 'GET https://[redacted]@host/x');
  assert.equal(redactText('https://me:s3@cr:et@host:1/x@y'), 'https://[redacted]@host:1/x@y');
  assert.equal(redactText('https://s3cret@host'), 'https://[redacted]@host');
  assert.equal(redactText('me:s3cret@host:6443'), '[redacted]@host:6443');
  assert.equal(redactText('bad value "me:s3cret@h"'), 'bad value "[redacted]@h"');
  assert.equal(
    redactText('client-key-data: LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWQ=='),
    'client-key-data: [redacted]',
  );
  assert.equal(redactText('x LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWQ== y'), 'x [redacted] y');
  assert.equal(redactText('{"a":1,"token": "s3cret"}'), '{"a":1,"token": "[redacted]"}');
  assert.equal(
    redactText('- name: a\n  user:\n    token: s3cret\n'),
    '- name: a\n  user:\n    token: [redacted]\n',
  );
  assert.equal(redactText('GET /x?access_token=s3cret&a=b'), 'GET /x?access_token=[redacted]&a=b');
  assert.equal(
    redactText('connect password=s3cret user=me'),
    'connect password=[redacted] user=me',
  );
  assert.equal(
    redactText('x -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- y'),
    'x [redacted] y',
  );
});

test('does not change ordinary text', () => {
  for (const text of [
    'Synced default/web',
    'https://host:6443/api?x=1@2',
    'Basic auth is off',
    'docker.io/library/nginx:1.27@sha256:0a1b2c3d',
    'nginx:1.27@sha256:0a1b2c3d',
    'the token: it has expired',
    'Unauthorized: token is expired',
    'secret="default/db-password"',
    'system:serviceaccount:default:web',
    '"me@example.com" is unknown',
  ]) {
    assert.equal(redactText(text), text);
  }
});

test('is fast for adversarial text', () => {
  const started = performance.now();
  redactText('eyJ-'.repeat(2500));
  redactText('-----BEGIN '.repeat(1000));
  redactText(`Bearer${' '.repeat(10_000)}`);
  redactText('://a'.repeat(2500));
  redactText(`://${'a:'.repeat(5000)}`);
  redactText('"a:'.repeat(3000));
  redactText('password='.repeat(1000));
  redactText('password: '.repeat(1000));
  redactText('LS0tLS1CRUdJTi'.repeat(1000));
  redactText('\n token:'.repeat(1500));
  assert.ok(performance.now() - started < 1000);
});
