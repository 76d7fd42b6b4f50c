import assert from 'node:assert/strict';
import { getCiphers } from 'node:tls';
import { test } from 'node:test';
import { cipherList } from '../../../../src/cli/program/run-config.ts';

const OLDER = [
  'TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA',
  'TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA',
  'TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA',
  'TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA',
  'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384',
  'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384',
  'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256',
  'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256',
];

test('every secure suite of Go has a name in OpenSSL', () => {
  const known = new Set(getCiphers());
  const names = cipherList(OLDER)?.split(':') ?? [];
  assert.equal(names.length, 3 + OLDER.length);
  for (const name of names) assert.ok(known.has(name.toLowerCase()), name);
});

test('the suites of TLS 1.3 stay enabled unless some are configured', () => {
  assert.equal(cipherList([]), undefined);
  assert.equal(
    cipherList(['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384']),
    'TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES256-GCM-SHA384',
  );
  assert.equal(
    cipherList(['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384', 'TLS_AES_128_GCM_SHA256']),
    'TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES256-GCM-SHA384',
  );
});

test('unknown and insecure suites are rejected', () => {
  for (const name of ['TLS_RSA_WITH_AES_128_CBC_SHA', 'ECDHE-RSA-AES128-SHA', 'constructor']) {
    assert.throws(() => cipherList([name]), {
      name: 'UsageError',
      message: new RegExp(`^invalid value "${name}" for --tls-cipher-suites: must be among TLS_`),
    });
  }
});
