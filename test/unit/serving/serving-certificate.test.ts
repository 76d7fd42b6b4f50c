import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, symlinkSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import {
  CertificateFiles,
  selfSignedCertificate,
} from '../../../src/serving/serving-certificate.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import type { Certificate } from '../../../src/util/x509.ts';
import { createCertificateAuthority } from '../../../src/util/x509.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

const root = mkdtempSync(join(tmpdir(), 'serving-certificate-'));
after(() => rmSync(root, { recursive: true }));

const authority = await createCertificateAuthority({ commonName: 'test-ca' });
const issue = () =>
  authority.issue({ commonName: 'metrics', dnsNames: ['localhost'], usages: 'server' });

/** A folder with a certificate behind a symbolic link, like a mounted Secret. */
function mounted(first: Certificate) {
  const folder = mkdtempSync(join(root, 'secret-'));
  let versions = 0;
  const put = ({ certificatePem, privateKeyPem }: Certificate) => {
    const version = join(folder, `version-${versions++}`);
    mkdirSync(version);
    writeFileSync(join(version, 'tls.crt'), certificatePem);
    writeFileSync(join(version, 'tls.key'), privateKeyPem);
    symlinkSync(version, join(folder, 'next'));
    renameSync(join(folder, 'next'), join(folder, 'data'));
  };
  put(first);
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const files = new CertificateFiles(
    { clock, log },
    {
      certificatePath: join(folder, 'data/tls.crt'),
      privateKeyPath: join(folder, 'data/tls.key'),
    },
  );
  /** Waits until the files have been read again. */
  const look = async () => {
    await clock.advance(10_000);
    while (clock.pending === 0) await new Promise((resolve) => setImmediate(resolve));
  };
  return { folder, put, files, lines, look };
}

describe('CertificateFiles', () => {
  it('renews certificate and key together when the files change, and logs the fingerprint', async () => {
    const [first, second] = await Promise.all([issue(), issue()]);
    const { put, files, lines, look } = mounted(first);
    assert.deepEqual(await files.load(), first);
    const renewed: Certificate[] = [];
    const stop = new AbortController();
    const watching = files.watch(stop.signal, (pair) => renewed.push(pair));
    await look();
    assert.deepEqual([renewed, lines], [[], []]);
    put(second);
    await look();
    await look();
    assert.deepEqual(renewed, [second]);
    const { fingerprint256 } = new X509Certificate(second.certificatePem);
    assert.deepEqual(
      lines.map(({ message, fields }) => [message, fields['fingerprint']]),
      [['Serving a new certificate', fingerprint256]],
    );
    stop.abort();
    await watching;
  });

  it('keeps the previous certificate while the files are invalid, and logs the error once', async () => {
    const [first, second, third] = await Promise.all([issue(), issue(), issue()]);
    const { folder, put, files, lines, look } = mounted(first);
    await files.load();
    const renewed: Certificate[] = [];
    const stop = new AbortController();
    const watching = files.watch(stop.signal, (pair) => renewed.push(pair));
    const messages = () => lines.splice(0).map(({ message }) => message);
    const invalid = 'Unable to load the new certificate; serving the previous one';

    put({ ...second, privateKeyPem: first.privateKeyPem });
    for (let times = 0; times < 3; times++) await look();
    assert.deepEqual(messages(), [invalid]);
    put({ ...second, certificatePem: second.certificatePem.slice(0, 300) });
    await look();
    assert.deepEqual(messages(), [invalid], 'another error is logged');
    rmSync(join(folder, 'data'));
    for (let times = 0; times < 3; times++) await look();
    assert.deepEqual(messages(), [invalid]);
    assert.deepEqual(renewed, []);
    put(third);
    await look();
    assert.deepEqual([renewed, messages()], [[third], ['Serving a new certificate']]);
    rmSync(join(folder, 'data'));
    await look();
    assert.deepEqual(messages(), [invalid], 'trouble that comes back is logged again');
    stop.abort();
    await watching;
  });

  it('rejects invalid files at startup', async () => {
    const [first, second] = await Promise.all([issue(), issue()]);
    const broken = mounted({ ...first, privateKeyPem: second.privateKeyPem });
    await assert.rejects(
      broken.files.load(),
      /tls\.crt and .*tls\.key are not a certificate and its key: /,
    );
    rmSync(join(broken.folder, 'data'));
    await assert.rejects(broken.files.load(), /ENOENT.*tls\.(crt|key)/);
  });
});

describe('a self-signed certificate', () => {
  it('is valid for this machine, and is never renewed', async () => {
    const source = selfSignedCertificate({ clock: new FakeClock(), dnsNames: ['pod-a'] });
    const { certificatePem, privateKeyPem } = await source.load();
    const certificate = new X509Certificate(certificatePem);
    assert.equal(certificate.checkHost('pod-a'), 'pod-a');
    assert.equal(certificate.checkHost('localhost'), 'localhost');
    assert.equal(certificate.checkIP('127.0.0.1'), '127.0.0.1');
    assert.notEqual((await source.load()).privateKeyPem, privateKeyPem);
    const stop = new AbortController();
    const watching = source.watch(stop.signal, () => assert.fail());
    stop.abort();
    await watching;
  });
});
