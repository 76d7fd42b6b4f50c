import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parseCertificateRequest } from '../../../src/util/certificate-request.ts';
import { createCertificateAuthority, subjectNamesOf } from '../../../src/util/x509.ts';
import { certificateRequest, requestWithSubject } from '../../support/certificate-request.ts';

const MASTERS = 'system:masters';

/** Encodes an element with a short length, or with a long form of it. */
function element(tag: number, content: Uint8Array, lengthBytes: number = 0): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  const form =
    lengthBytes === 0
      ? Buffer.of(content.length)
      : Buffer.concat([Buffer.of(0x80 | lengthBytes), length.subarray(4 - lengthBytes)]);
  return Buffer.concat([Buffer.of(tag), form, content]);
}

const sequence = (...members: Buffer[]) => element(0x30, Buffer.concat(members));
const set = (...members: Buffer[]) => element(0x31, Buffer.concat(members));
const ORGANIZATION = Buffer.of(0x55, 0x04, 0x0a);
const oid = element(0x06, ORGANIZATION);
const utf8 = (text: string) => element(0x0c, Buffer.from(text));
const utf16 = (text: string) => Buffer.from(text, 'utf16le').swap16();

const NAME = set(sequence(element(0x06, Buffer.of(0x55, 0x04, 0x03)), utf8('jane')));

test('reads the names of a request', () => {
  const { commonName, organizations } = parseCertificateRequest(
    certificateRequest('jane', ['ops', 'dev']).pem,
  );
  assert.deepEqual([commonName, organizations], ['jane', ['ops', 'dev']]);
  const printable = requestWithSubject(
    sequence(set(sequence(oid, element(0x13, Buffer.from('a:b'))), sequence(oid, utf8('é'))), NAME),
  );
  assert.deepEqual(parseCertificateRequest(printable.pem).organizations, ['a:b', 'é']);
});

test('refuses subjects that another parser could read differently', () => {
  const masters = Buffer.from(MASTERS);
  const subjects: Readonly<Record<string, Buffer>> = {
    BMPString: sequence(set(sequence(oid, element(0x1e, utf16(MASTERS)))), NAME),
    T61String: sequence(set(sequence(oid, element(0x14, masters))), NAME),
    IA5String: sequence(set(sequence(oid, element(0x16, masters))), NAME),
    UniversalString: sequence(set(sequence(oid, element(0x1c, masters))), NAME),
    'OCTET STRING': sequence(set(sequence(oid, element(0x04, masters))), NAME),
    'constructed string': sequence(set(sequence(oid, element(0x2c, utf8(MASTERS)))), NAME),
    'invalid UTF-8': sequence(set(sequence(oid, element(0x0c, Buffer.of(0xff)))), NAME),
    'invalid PrintableString': sequence(
      set(sequence(oid, element(0x13, Buffer.from('a@b')))),
      NAME,
    ),
    'long form of a length': sequence(set(sequence(oid, element(0x0c, masters, 1))), NAME),
    'long form of the length of an identifier': sequence(
      set(sequence(element(0x06, ORGANIZATION, 2), utf8(MASTERS))),
      NAME,
    ),
    'zeros in an identifier': sequence(
      set(sequence(element(0x06, Buffer.of(0x55, 0x80, 0x04, 0x0a)), utf8(MASTERS))),
      NAME,
    ),
    'incomplete identifier': sequence(
      set(sequence(element(0x06, Buffer.of(0x55, 0x04, 0x8a)), utf8(MASTERS))),
      NAME,
    ),
    'long form of a tag': sequence(
      set(sequence(oid, Buffer.concat([Buffer.of(0x1f), utf8(MASTERS)]))),
      NAME,
    ),
    'SEQUENCE for a SET': sequence(sequence(sequence(oid, utf8(MASTERS))), NAME),
    'indefinite length': Buffer.concat([Buffer.of(0x30, 0x80), NAME, Buffer.of(0, 0)]),
  };
  for (const [name, subject] of Object.entries(subjects)) {
    assert.throws(() => parseCertificateRequest(requestWithSubject(subject).pem), TypeError, name);
  }
});

test('an accepted subject has the same names in the certificate', async () => {
  const authority = await createCertificateAuthority({ commonName: 'test' });
  const { pem } = requestWithSubject(sequence(set(sequence(oid, utf8(MASTERS))), NAME));
  const request = Buffer.from(pem.replaceAll(/-----.*-----|\s/g, ''), 'base64');
  const start = request.indexOf(oid);
  const names = (der: Buffer) => {
    const base64 = der.toString('base64');
    try {
      return parseCertificateRequest(
        `-----BEGIN CERTIFICATE REQUEST-----\n${base64}\n-----END CERTIFICATE REQUEST-----\n`,
      );
    } catch {
      return undefined;
    }
  };
  const changes = fc.array(fc.tuple(fc.nat({ max: 45 }), fc.nat({ max: 255 })), { maxLength: 3 });
  fc.assert(
    fc.property(changes, (bytes) => {
      const changed = Buffer.from(request);
      for (const [at, byte] of bytes) changed[start - 4 + at] = byte;
      const read = names(changed);
      if (!read) return;
      const { subject, publicKey, commonName, organizations } = read;
      const certificate = authority.sign({
        subject,
        publicKey,
        keyUsages: [],
        usages: 'client',
        notBefore: 0,
        notAfter: 1e12,
      });
      assert.deepEqual(subjectNamesOf(new X509Certificate(certificate)), {
        commonName,
        organizations,
      });
    }),
    { numRuns: 300 },
  );
});
