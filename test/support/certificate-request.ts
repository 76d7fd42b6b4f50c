import type { KeyObject } from 'node:crypto';
import { generateKeyPairSync, sign } from 'node:crypto';
import {
  derBitString,
  derExplicit,
  derImplicit,
  derInteger,
  derObjectIdentifier,
  derOctetString,
  derSequence,
  derSetOfOne,
  derUtf8String,
} from '../../src/util/der.ts';

/** A new key with a certificate signing request in PEM. */
export interface KeyAndRequest {
  readonly privateKey: KeyObject;
  readonly pem: string;
}

/** Creates a key and a request for its certificate. */
export function certificateRequest(
  commonName: string,
  organizations: readonly string[] = [],
  dnsNames: readonly string[] = [],
): KeyAndRequest {
  return requestWithSubject(certificateSubject(commonName, organizations), dnsNames);
}

/** Returns a distinguished name in DER. */
export function certificateSubject(
  commonName: string,
  organizations: readonly string[] = [],
): Uint8Array {
  const attribute = (oid: string, name: string) =>
    derSetOfOne(derSequence(derObjectIdentifier(oid), derUtf8String(name)));
  return derSequence(
    ...organizations.map((name) => attribute('2.5.4.10', name)),
    attribute('2.5.4.3', commonName),
  );
}

/** Parts of a request in DER, well-formed or not. */
export interface RequestParts {
  readonly version?: Buffer;
  readonly attributes?: Buffer;
  /** @default that of the signature */
  readonly algorithm?: string;
  readonly unusedBits?: number;
}

/** Creates a key and a request for a certificate with a subject in DER, well-formed or not. */
export function requestWithSubject(
  subject: Uint8Array,
  dnsNames: readonly string[] = [],
  parts: RequestParts = {},
): KeyAndRequest {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const names = dnsNames.map((name) => derImplicit(2, Buffer.from(name)));
  const altNames = derSequence(
    derSequence(derObjectIdentifier('2.5.29.17'), derOctetString(derSequence(...names))),
  );
  const extensions = derSequence(
    derObjectIdentifier('1.2.840.113549.1.9.14'),
    derSetOfOne(altNames),
  );
  const info = derSequence(
    parts.version ?? derInteger(Buffer.of(0)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    parts.attributes ?? derExplicit(0, dnsNames.length > 0 ? extensions : Buffer.of()),
  );
  const algorithm = derSequence(derObjectIdentifier(parts.algorithm ?? '1.2.840.10045.4.3.2'));
  const signature = derBitString(sign('sha256', info, privateKey), parts.unusedBits);
  const base64 = derSequence(info, algorithm, signature).toString('base64');
  const lines = base64.match(/.{1,64}/g) ?? [];
  const type = 'CERTIFICATE REQUEST';
  const pem = [`-----BEGIN ${type}-----`, ...lines, `-----END ${type}-----`, ''].join('\n');
  return { privateKey, pem };
}
