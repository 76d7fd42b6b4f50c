import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSecretName, redactText } from '../../../src/cli/redact.ts';

test('names of secrets are known in every spelling', () => {
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

test('names that only look like it are left alone', () => {
  for (const name of ['secret', 'key', 'kubeconfig', 'continueToken', 'tokens', 'pod', 'author']) {
    assert.ok(!isSecretName(name), name);
  }
});

test('credentials are masked by their form, wherever they stand', () => {
  const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl';
  assert.equal(redactText(`sent Bearer ${jwt}, got 401`), 'sent Bearer [redacted], got 401');
  assert.equal(redactText('Bearer 0123abcdef'), 'Bearer [redacted]');
  assert.equal(redactText('authorization: basic dXNlcjpwYXNz'), 'authorization: basic [redacted]');
  assert.equal(redactText(`the token ${jwt} expired`), 'the token [redacted] expired');
  assert.equal(redactText('GET https://me:s3cret@host/x'), 'GET https://[redacted]@host/x');
  assert.equal(
    redactText('x -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- y'),
    'x [redacted] y',
  );
});

test('ordinary text stays as it is', () => {
  for (const text of ['Synced default/web', 'https://host:6443/api?x=1@2', 'Basic auth is off']) {
    assert.equal(redactText(text), text);
  }
});

test('text made to be slow is not', () => {
  const started = performance.now();
  redactText('eyJ-'.repeat(2500));
  redactText('-----BEGIN '.repeat(1000));
  redactText(`Bearer${' '.repeat(10_000)}`);
  redactText('://a'.repeat(2500));
  assert.ok(performance.now() - started < 1000);
});
