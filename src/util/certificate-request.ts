import type { KeyObject } from 'node:crypto';
import { createPublicKey, verify } from 'node:crypto';
import { fromBase64 } from './bytes.ts';
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

/** Digests by the object identifier of a signature algorithm; Ed25519 has none. */
const DIGESTS: readonly (readonly [oid: string, digest: string | null])[] = [
  ['1.2.840.10045.4.3.2', 'sha256'],
  ['1.2.840.10045.4.3.3', 'sha384'],
  ['1.2.840.10045.4.3.4', 'sha512'],
  ['1.2.840.113549.1.1.11', 'sha256'],
  ['1.2.840.113549.1.1.12', 'sha384'],
  ['1.2.840.113549.1.1.13', 'sha512'],
  ['1.3.101.112', null],
];

const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';
const SUBJECT_ALT_NAME = '2.5.29.17';
const COMMON_NAME = '2.5.4.3';
const ORGANIZATION = '2.5.4.10';
const ATTRIBUTES = 0xa0;
const OCTET_STRING = 0x04;

/** @throws {Error} if the text is not a request in PEM */
export function parseCertificateRequest(pem: string): CertificateSigningRequest {
  const [, base64] =
    /-----BEGIN CERTIFICATE REQUEST-----([\s\S]*?)-----END CERTIFICATE REQUEST-----/.exec(pem) ??
    [];
  if (base64 === undefined) throw new TypeError('PEM block type must be CERTIFICATE REQUEST');
  const [info, algorithm, signature] = derMembers(derElement(fromBase64(base64)));
  const [, subject, key, ...rest] = derMembers(info);
  const publicKey = createPublicKey({ key: Buffer.from(whole(key)), format: 'der', type: 'spki' });
  const names = derMembers(subject)
    .flatMap(derSetMembers)
    .map((name) => {
      const [type, value] = derMembers(name);
      return { type: derIdentifier(type), text: derText(value) };
    });
  const textsOf = (oid: string) =>
    names.filter(({ type }) => derObjectIdentifier(oid).equals(type)).map(({ text }) => text);
  const subjectAltName = extensionIn(rest.find(({ tag }) => tag === ATTRIBUTES));
  const altNames = subjectAltName ? derMembers(derElement(subjectAltName)) : [];
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

/** Returns the requested subjectAltName. */
function extensionIn(attributes: DerElement | undefined): Uint8Array | undefined {
  if (!attributes) return undefined;
  for (const attribute of derElements(attributes.content)) {
    const [type, values] = derMembers(attribute);
    if (!hasOid(type, EXTENSION_REQUEST)) continue;
    for (const extension of derSetMembers(values).flatMap(derMembers)) {
      const parts = derMembers(extension);
      if (hasOid(parts[0], SUBJECT_ALT_NAME)) {
        return parts.find(({ tag }) => tag === OCTET_STRING)?.content;
      }
    }
  }
  return undefined;
}

function isSigned(
  signed: Uint8Array,
  algorithm: DerElement | undefined,
  publicKey: KeyObject,
  signature: DerElement | undefined,
): boolean {
  const found = DIGESTS.find(([oid]) => hasOid(algorithm, oid));
  // The first byte of a bit string is its number of unused bits.
  if (!found || !signature) return false;
  return verify(found[1], signed, publicKey, signature.content.subarray(1));
}
