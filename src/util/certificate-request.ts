import type { KeyObject } from 'node:crypto';
import { createPublicKey, verify } from 'node:crypto';
import { fromBase64, toHex, utf8Text } from './bytes.ts';
import { derObjectIdentifier } from './der.ts';
import type { DerElement } from './der-reader.ts';
import {
  derElement,
  derElements,
  derIdentifier,
  derMembers,
  derSetMembers,
  derText,
} from './der-reader.ts';

/** A certificate signing request (PKCS #10, RFC 2986). */
export interface CertificateSigningRequest {
  /** The distinguished name in DER. */
  readonly subject: Uint8Array;
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly publicKey: KeyObject;
  /** The value of the extension in DER; absent if the request has none. */
  readonly subjectAltName: Uint8Array | undefined;
  /** Kinds of its names. */
  readonly nameKinds: ReadonlySet<'dns' | 'email' | 'ip' | 'uri' | 'other'>;
  /** Whether the owner of the key has signed the request. */
  readonly isSigned: boolean;
}

const NAME_KINDS: ReadonlyMap<number, 'dns' | 'email' | 'ip' | 'uri'> = new Map([
  [0x81, 'email'],
  [0x82, 'dns'],
  [0x86, 'uri'],
  [0x87, 'ip'],
]);

/** Types of keys and digests by the object identifier of a signature algorithm; Ed25519 has no digest. */
const ALGORITHMS: readonly (readonly [oid: string, key: string, digest: string | null])[] = [
  ['1.2.840.10045.4.3.2', 'ec', 'sha256'],
  ['1.2.840.10045.4.3.3', 'ec', 'sha384'],
  ['1.2.840.10045.4.3.4', 'ec', 'sha512'],
  ['1.2.840.113549.1.1.11', 'rsa', 'sha256'],
  ['1.2.840.113549.1.1.12', 'rsa', 'sha384'],
  ['1.2.840.113549.1.1.13', 'rsa', 'sha512'],
  ['1.3.101.112', 'ed25519', null],
];

/** Attributes of a name whose values are IA5Strings: the email address and the component of a domain. */
const IA5_ATTRIBUTES = ['1.2.840.113549.1.9.1', '0.9.2342.19200300.100.1.25'];

const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';
const SUBJECT_ALT_NAME = '2.5.29.17';
const COMMON_NAME = '2.5.4.3';
const ORGANIZATION = '2.5.4.10';
const ATTRIBUTES = 0xa0;
const BOOLEAN = 0x01;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const IA5_STRING = 0x16;

/** The first block of a text in PEM: its type and its content after the headers. */
const PEM_BLOCK =
  /^-----BEGIN ([^\n]*?)-----[ \t\r]*\n(?:(?:[^\n:]+:[^\n]*\n)+\r?\n)?([A-Za-z0-9+/=\s]*?)-----END \1-----[ \t\r]*$/m;

/** @throws {Error} if the text is not a request in PEM */
export function parseCertificateRequest(pem: string): CertificateSigningRequest {
  const [, type, content = ''] = PEM_BLOCK.exec(pem) ?? [];
  const base64 = content.replace(/\s/g, '');
  if (type !== 'CERTIFICATE REQUEST' || base64.length % 4 !== 0) {
    throw new TypeError('PEM block type must be CERTIFICATE REQUEST');
  }
  const [info, algorithm, signature] = derMembers(derElement(fromBase64(base64)));
  const [version, subject, key, attributes] = derMembers(info);
  requireInteger(version);
  requireBytes(derMembers(key)[1]);
  requireBytes(signature);
  const publicKey = createPublicKey({ key: Buffer.from(whole(key)), format: 'der', type: 'spki' });
  const names = derMembers(subject)
    .flatMap(derSetMembers)
    .map((name) => {
      const [type, value] = derMembers(name);
      return { type: derIdentifier(type), text: textOf(type, value) };
    });
  const textsOf = (oid: string) =>
    names.filter(({ type }) => derObjectIdentifier(oid).equals(type)).map(({ text }) => text);
  const subjectAltName = altNameIn(attributes);
  const altNames = subjectAltName ? derMembers(derElement(subjectAltName)) : [];
  for (const altName of altNames) requireAltName(altName);
  return {
    subject: whole(subject),
    commonName: textsOf(COMMON_NAME).at(-1) ?? '',
    organizations: textsOf(ORGANIZATION),
    publicKey,
    subjectAltName,
    nameKinds: new Set(altNames.map(({ tag }) => NAME_KINDS.get(tag) ?? 'other')),
    isSigned: isSigned(whole(info), derMembers(algorithm)[0], publicKey, signature),
  };
}

/** @throws {TypeError} if the element is missing */
function whole(element: DerElement | undefined): Uint8Array {
  if (!element) throw new TypeError('asn1: syntax error: sequence truncated');
  return element.whole;
}

function hasOid(element: DerElement | undefined, oid: string): boolean {
  return derObjectIdentifier(oid).equals(derIdentifier(element));
}

/** Returns the text of an attribute of a name. */
function textOf(type: DerElement | undefined, value: DerElement | undefined): string {
  const isIa5 = IA5_ATTRIBUTES.some((oid) => hasOid(type, oid));
  return isIa5 && value?.tag === IA5_STRING ? asciiText(value) : derText(value);
}

function asciiText({ content }: DerElement): string {
  if (content.some((byte) => byte >= 0x80)) throw invalid('IA5String contains invalid character');
  return utf8Text(content);
}

/** @throws {TypeError} if the element is no small integer in DER */
function requireInteger(element: DerElement | undefined): void {
  const [first, second = 0] = element?.content ?? [];
  const isPadded =
    element?.content.length !== 1 &&
    (first === 0 ? second < 0x80 : first === 0xff && second >= 0x80);
  if (element?.tag !== INTEGER || first === undefined || element.content.length > 8 || isPadded) {
    throw invalid('integer is not minimally encoded');
  }
}

/** @throws {TypeError} if the element is no bit string of whole bytes, after their number of unused bits */
function requireBytes(element: DerElement | undefined): void {
  if (element?.tag !== BIT_STRING || element.content[0] !== 0) throw invalid('invalid bit string');
}

/** Returns the requested subjectAltName. Parsers differ in which of several extensions of a kind they take. */
function altNameIn(attributes: DerElement | undefined): Uint8Array | undefined {
  if (attributes?.tag !== ATTRIBUTES) throw invalid('sequence truncated');
  const extensions = derElements(attributes.content).flatMap((attribute) => {
    const [type, values] = derMembers(attribute);
    return hasOid(type, EXTENSION_REQUEST) ? derSetMembers(values).flatMap(derMembers) : [];
  });
  const parts = extensions.map(derMembers);
  const types = parts.map(([type]) => toHex(derIdentifier(type)));
  if (new Set(types).size < types.length) {
    throw new TypeError('x509: certificate request contains duplicate requested extensions');
  }
  for (const [, critical, ...rest] of parts) {
    const isBoolean = critical?.tag === BOOLEAN;
    const [value, ...more] = isBoolean ? critical.content : [0];
    const isValid = more.length === 0 && (value === 0 || value === 0xff);
    const last = isBoolean ? rest[0] : critical;
    if (!isValid || last?.tag !== OCTET_STRING) throw invalid('invalid extension');
  }
  const found = parts.find(([type]) => hasOid(type, SUBJECT_ALT_NAME));
  return found?.at(-1)?.content;
}

/** @throws {TypeError} if a name has no form that all parsers read alike */
function requireAltName(name: DerElement): void {
  switch (NAME_KINDS.get(name.tag)) {
    case 'ip':
      if (name.content.length !== 4 && name.content.length !== 16) {
        throw new TypeError(`x509: cannot parse IP address of length ${name.content.length}`);
      }
      return;
    case 'uri':
      if (!URL.canParse(asciiText(name))) throw new TypeError('x509: cannot parse URI');
      return;
    case 'dns':
    case 'email':
      asciiText(name);
      return;
    default:
  }
}

function invalid(why: string): TypeError {
  return new TypeError(`asn1: syntax error: ${why}`);
}

function isSigned(
  signed: Uint8Array,
  algorithm: DerElement | undefined,
  publicKey: KeyObject,
  signature: DerElement | undefined,
): boolean {
  const [, key, digest = null] = ALGORITHMS.find(([oid]) => hasOid(algorithm, oid)) ?? [];
  if (!signature || publicKey.asymmetricKeyType !== key) return false;
  return verify(digest, signed, publicKey, signature.content.subarray(1));
}
