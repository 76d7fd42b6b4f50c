import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import type { Server } from 'node:https';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { connect } from 'node:tls';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { createCertificateAuthority, loadCertificateAuthority } from '../../../src/util/x509.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

test('the authority signs its own certificate and those it issues', async () => {
  const authority = await createCertificateAuthority({ commonName: 'test-ca' });
  const ca = new X509Certificate(authority.certificatePem);
  assert.equal(ca.subject, 'CN=test-ca');
  assert.equal(ca.ca, true);
  assert.ok(ca.verify(ca.publicKey));

  const issued = await authority.issue({ commonName: 'kube-apiserver', usages: 'server' });
  const leaf = new X509Certificate(issued.certificatePem);
  assert.equal(leaf.ca, false);
  assert.ok(leaf.checkIssued(ca));
  assert.ok(leaf.verify(ca.publicKey));
  assert.ok(!leaf.verify(leaf.publicKey));
});

test('a certificate contains user, groups, DNS names and IP addresses', async () => {
  const authority = await createCertificateAuthority({ commonName: 'test-ca' });
  const { certificatePem } = await authority.issue({
    commonName: 'käthe',
    organizations: ['system:masters', 'devs'],
    dnsNames: ['localhost', 'kubernetes.default.svc'],
    ipAddresses: ['127.0.0.1', '::1', 'fd00::12:0:34', '::ffff:10.0.0.1'],
    usages: 'client',
  });
  const certificate = new X509Certificate(certificatePem);
  assert.equal(certificate.subject, 'O=system:masters\nO=devs\nCN=käthe');
  assert.equal(
    certificate.subjectAltName,
    'DNS:localhost, DNS:kubernetes.default.svc, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, ' +
      'IP Address:FD00:0:0:0:0:12:0:34, IP Address:0:0:0:0:0:FFFF:A00:1',
  );
  assert.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.2']);
});

test('validity starts one hour before the time of the clock, as UTCTime or GeneralizedTime', async () => {
  for (const start of [Date.UTC(2026, 4, 6, 7, 8, 9), Date.UTC(2050, 0, 2)]) {
    const clock = new FakeClock(start);
    const authority = await createCertificateAuthority({
      commonName: 'test-ca',
      clock,
      validityMs: DAY_MS,
    });
    const certificate = new X509Certificate(authority.certificatePem);
    assert.equal(certificate.validFromDate.getTime(), start - 60 * 60 * 1000);
    assert.equal(certificate.validToDate.getTime(), start + DAY_MS);
  }
});

test('serial numbers are positive for any random bytes', async () => {
  for (const byte of [0x00, 0xff]) {
    const authority = await createCertificateAuthority({
      commonName: 'test-ca',
      random: (size) => new Uint8Array(size).fill(byte),
    });
    const { serialNumber } = new X509Certificate(authority.certificatePem);
    assert.equal(BigInt(`0x${serialNumber}`) > 0n, true);
    assert.equal(serialNumber.length, 32);
  }
});

test('rejects an invalid IP address', async () => {
  const authority = await createCertificateAuthority({ commonName: 'test-ca' });
  await assert.rejects(
    authority.issue({ commonName: 'x', ipAddresses: ['localhost'], usages: 'server' }),
    /^TypeError: Not an IP address: "localhost"/,
  );
});

test('both sides of a TLS connection accept what the authority issued', async (t) => {
  const authority = await createCertificateAuthority({ commonName: 'test-ca' });
  const server = await authority.issue({
    commonName: 'server',
    dnsNames: ['localhost'],
    ipAddresses: ['127.0.0.1'],
    usages: 'server',
  });
  const client = await authority.issue({ commonName: 'alice', usages: 'client' });
  const listener = createServer({
    cert: server.certificatePem,
    key: server.privateKeyPem,
    ca: authority.certificatePem,
    requestCert: true,
    rejectUnauthorized: true,
  });
  t.after(() => listener.close());
  const peer = new Promise<string>((resolve) =>
    listener.once('secureConnection', (socket: TLSSocket) =>
      resolve(String(socket.getPeerCertificate().subject.CN)),
    ),
  );
  const socket = connect({
    host: '127.0.0.1',
    port: await listening(listener),
    ca: authority.certificatePem,
    cert: client.certificatePem,
    key: client.privateKeyPem,
    minVersion: 'TLSv1.3',
  });
  t.after(() => socket.destroy());
  await new Promise((resolve, reject) => {
    socket.once('secureConnect', resolve);
    socket.once('error', reject);
  });
  assert.equal(socket.authorized, true);
  assert.equal(await peer, 'alice');
});

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

test('a loaded authority issues certificates that its own certificate verifies', async () => {
  const start = Date.UTC(2026, 0, 1);
  const clock = new FakeClock(start);
  const options = { commonName: 'test-ca', clock, validityMs: 10 * DAY_MS };
  const created = await createCertificateAuthority(options);
  await clock.advance(4 * DAY_MS);
  const loaded = loadCertificateAuthority(created, options);
  const issued = await loaded.issue({ commonName: 'server', usages: 'server' });
  const leaf = new X509Certificate(issued.certificatePem);
  const ca = new X509Certificate(created.certificatePem);
  assert.ok(leaf.checkIssued(ca) && leaf.verify(ca.publicKey));
  assert.equal(leaf.validToDate.getTime(), start + 10 * DAY_MS, 'no longer than the authority');

  const other = await createCertificateAuthority({ commonName: 'other', clock });
  assert.throws(() => loadCertificateAuthority(other, options), RangeError);
  assert.throws(
    () => loadCertificateAuthority({ ...created, privateKeyPem: other.privateKeyPem }, options),
    RangeError,
  );
});
