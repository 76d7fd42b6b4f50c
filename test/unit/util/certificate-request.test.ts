import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parseCertificateRequest } from '../../../src/util/certificate-request.ts';
import { createCertificateAuthority, subjectNamesOf } from '../../../src/util/x509.ts';
import type { RequestParts } from '../../support/certificate-request.ts';
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

const IDENTIFIERS = {
  extensions: Buffer.from('2a864886f70d01090e', 'hex'),
  altName: Buffer.of(0x55, 0x1d, 0x11),
  email: Buffer.from('2a864886f70d010901', 'hex'),
};
const requested = (...extensions: Buffer[]) =>
  sequence(element(0x06, IDENTIFIERS.extensions), set(sequence(...extensions)));
const attributes = (...all: Buffer[]) => element(0xa0, Buffer.concat(all));
const altName = (tag: number, content: Uint8Array, critical: Buffer = Buffer.of()) =>
  sequence(
    element(0x06, IDENTIFIERS.altName),
    critical,
    element(0x04, sequence(element(tag, content))),
  );
const [DNS, EMAIL, URI, IP] = [0x82, 0x81, 0x86, 0x87];

test('refuses requests whose parts another parser could read differently', () => {
  const one = (...args: Parameters<typeof altName>) => ({
    attributes: attributes(requested(altName(...args))),
  });
  const dns = Buffer.from('a');
  const parts: Readonly<Record<string, RequestParts>> = {
    'padded version': { version: element(0x02, Buffer.of(0, 0)) },
    'empty version': { version: element(0x02, Buffer.of()) },
    'long version': { version: element(0x02, Buffer.of(1, 2, 3, 4, 5, 6, 7, 8, 9)) },
    'no attributes': { attributes: Buffer.of() },
    'signature with an unused bit': { unusedBits: 1 },
    'two extensions of one kind': {
      attributes: attributes(requested(altName(DNS, dns), altName(IP, Buffer.of(1, 2, 3, 4)))),
    },
    'two requests of extensions': {
      attributes: attributes(requested(altName(DNS, dns)), requested(altName(DNS, dns))),
    },
    'boolean 1': one(DNS, dns, element(0x01, Buffer.of(1))),
    'DNS name in UTF-8': one(DNS, Buffer.from('é')),
    'email in UTF-8': one(EMAIL, Buffer.from('é@b')),
    'URI without scheme': one(URI, Buffer.from('://')),
    'URI with a space': one(URI, Buffer.from('http://a b/')),
    'IP address of 5 bytes': one(IP, Buffer.of(1, 2, 3, 4, 5)),
  };
  for (const [name, odd] of Object.entries(parts)) {
    const { pem } = requestWithSubject(sequence(NAME), [], odd);
    assert.throws(() => parseCertificateRequest(pem), TypeError, name);
  }
  const { pem } = requestWithSubject(sequence(NAME), [], { algorithm: '1.2.840.113549.1.1.11' });
  assert.equal(parseCertificateRequest(pem).isSigned, false);
});

test('reads a request with an email address, critical names and headers in PEM', () => {
  const email = set(sequence(element(0x06, IDENTIFIERS.email), element(0x16, Buffer.from('a@b'))));
  const critical = element(0x01, Buffer.of(0xff));
  const names = [altName(URI, Buffer.from('spiffe://a/b'), critical)];
  const { pem } = requestWithSubject(sequence(NAME, email), [], {
    attributes: attributes(requested(...names)),
  });
  const { commonName, nameKinds, isSigned } = parseCertificateRequest(
    `text\n${pem.replace('-----\n', '-----\nA: b\n\n').replaceAll('\n', '\r\n')}`,
  );
  assert.deepEqual([commonName, [...nameKinds], isSigned], ['jane', ['uri'], true]);
  for (const odd of [pem.replaceAll(/^/gm, ' '), pem.replaceAll('CERTIFICATE REQUEST', 'X')]) {
    assert.throws(() => parseCertificateRequest(odd), /PEM block type/);
  }
});

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
