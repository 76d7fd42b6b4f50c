import type { KeyObject } from 'node:crypto';
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  generateKeyPairSync,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';
import { isIP, isIPv4 } from 'node:net';
import { promisify } from 'node:util';
import type { Clock } from './clock.ts';
import { systemClock } from './clock.ts';
import { isRecord } from './values.ts';
import {
  derBitString,
  derBoolean,
  derExplicit,
  derImplicit,
  derInteger,
  derObjectIdentifier,
  derOctetString,
  derSequence,
  derSetOfOne,
  derTime,
  derUtf8String,
} from './der.ts';

/** Options of {@link CertificateAuthority}. */
export interface CertificateAuthorityOptions {
  readonly commonName: string;
  /**
   * Source of the time from which certificates are valid.
   * @default the clock of the machine
   */
  readonly clock?: Pick<Clock, 'now'> | undefined;
  /**
   * Validity of the authority and its certificates, in milliseconds.
   * @default 365 days
   */
  readonly validityMs?: number | undefined;
  /**
   * Source of serial numbers: returns `size` unpredictable bytes.
   * @default node:crypto
   */
  readonly random?: ((size: number) => Uint8Array) | undefined;
}

/** The subject of a certificate to issue. */
export interface CertificateRequest {
  /** In a client certificate, the name of the user. */
  readonly commonName: string;
  /** In a client certificate, the groups of the user. */
  readonly organizations?: readonly string[] | undefined;
  readonly dnsNames?: readonly string[] | undefined;
  /** IPv4 or IPv6 addresses. */
  readonly ipAddresses?: readonly string[] | undefined;
  readonly usages: 'server' | 'client';
  /**
   * Type of the key: EC P-256, or RSA with 2048 bits.
   * @default 'ec'
   */
  readonly keyType?: 'ec' | 'rsa' | undefined;
}

/** A certificate and its private key, in PEM. */
export interface Certificate {
  readonly certificatePem: string;
  /** PKCS #8. */
  readonly privateKeyPem: string;
}

/** A certificate authority. Clients trust its certificate. Its key must not leave the server. */
export interface CertificateAuthority extends Certificate {
  /** Creates a key and a certificate signed by the authority. */
  issue(request: CertificateRequest): Promise<Certificate>;
  /** Signs a certificate for a key that its owner keeps. Returns it as PEM. */
  sign(order: CertificateOrder): string;
}

/** A certificate to sign. Times are milliseconds since the Unix epoch. */
export interface CertificateOrder {
  /** The distinguished name in DER. */
  readonly subject: Uint8Array;
  readonly publicKey: KeyObject;
  /** The value of the extension in DER. */
  readonly subjectAltName?: Uint8Array | undefined;
  readonly keyUsages: readonly ('digital signature' | 'key encipherment')[];
  readonly usages: 'server' | 'client';
  readonly notBefore: number;
  readonly notAfter: number;
}

/** The names in the subject of a certificate that identify a user. */
export interface SubjectNames {
  /** The last common name, or an empty string. */
  readonly commonName: string;
  readonly organizations: readonly string[];
}

/** Returns the names in the subject of a certificate, as OpenSSL reads them. */
export function subjectNamesOf(certificate: X509Certificate): SubjectNames {
  const { subject } = certificate.toLegacyObject();
  const fields: Readonly<Record<string, unknown>> = isRecord(subject) ? subject : {};
  const textsIn = (field: string) =>
    [fields[field] ?? []].flat().filter((text) => typeof text === 'string');
  return { commonName: textsIn('CN').at(-1) ?? '', organizations: textsIn('O') };
}

/** Certificates are valid from 1 h before their creation, because clocks differ. */
const BACKDATED_MS = 60 * 60 * 1000;
const YEAR_MS = 365 * 24 * 60 * 60 * 1000;

const OID = {
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  server: '1.3.6.1.5.5.7.3.1',
  client: '1.3.6.1.5.5.7.3.2',
} as const;

/** KeyUsage values: a bit string with its number of unused bits. */
const DIGITAL_SIGNATURE = derBitString(Buffer.of(0x80), 7);
const SIGN_CERTIFICATES_AND_CRLS = derBitString(Buffer.of(0x06), 1);

const SIGNATURE_ALGORITHM = derSequence(derObjectIdentifier(OID.ecdsaWithSha256));

/**
 * Creates a certificate authority with a new key, which is not written to disk. Keys are EC P-256,
 * signatures are ECDSA with SHA-256, certificates are X.509 v3 as in RFC 5280.
 */
export async function createCertificateAuthority(
  options: CertificateAuthorityOptions,
): Promise<CertificateAuthority> {
  const { commonName, clock = systemClock, validityMs = YEAR_MS } = options;
  const { publicKey, privateKey } = newKeyPair();
  const certify = certifier(privateKey, options);
  const subject = distinguishedName(commonName);
  const notAfter = clock.now() + validityMs;
  const certificatePem = certify({ subject, publicKey, notAfter }, [
    criticalExtension(OID.basicConstraints, derSequence(derBoolean(true))),
    criticalExtension(OID.keyUsage, SIGN_CERTIFICATES_AND_CRLS),
  ]);
  return loadCertificateAuthority({ certificatePem, privateKeyPem: pemOfKey(privateKey) }, options);
}

/**
 * Loads an authority that `createCertificateAuthority` created with the same `commonName`. Its certificates
 * expire no later than the authority itself.
 *
 * @throws {RangeError} if the certificate belongs to another authority, or the key to another certificate
 */
export function loadCertificateAuthority(
  { certificatePem, privateKeyPem }: Certificate,
  options: CertificateAuthorityOptions,
): CertificateAuthority {
  const { commonName, clock = systemClock, validityMs = YEAR_MS } = options;
  const privateKey = createPrivateKey(privateKeyPem);
  const own = new X509Certificate(certificatePem);
  if (!own.ca || own.subject !== `CN=${commonName}`) {
    throw new RangeError(
      `The certificate belongs to ${own.subject}, not to the authority CN=${commonName}`,
    );
  }
  if (!own.checkPrivateKey(privateKey)) {
    throw new RangeError(
      `The private key does not match the certificate of the authority CN=${commonName}`,
    );
  }
  const certify = certifier(privateKey, options);
  const keyId = keyIdentifier(createPublicKey(privateKey));
  const extensionsFor = (
    usages: CertificateRequest['usages'],
    keyUsages: readonly Uint8Array[],
  ) => [
    extension(OID.authorityKeyIdentifier, derSequence(derImplicit(0, keyId))),
    criticalExtension(OID.basicConstraints, derSequence()),
    ...keyUsages.map((usage) => criticalExtension(OID.keyUsage, usage)),
    extension(OID.extendedKeyUsage, derSequence(derObjectIdentifier(OID[usages]))),
  ];
  const endOf = (notAfter: number) => Math.min(notAfter, Date.parse(own.validTo));
  return {
    certificatePem,
    privateKeyPem,

    sign({ subjectAltName, keyUsages, usages, ...order }) {
      const extensions = [
        ...extensionsFor(usages, keyUsageOf(keyUsages)),
        ...(subjectAltName ? [extension(OID.subjectAltName, subjectAltName)] : []),
      ];
      return certify({ ...order, notAfter: endOf(order.notAfter) }, extensions);
    },

    async issue(request) {
      const keys = request.keyType === 'rsa' ? await newRsaKeyPair() : newKeyPair();
      const issued = {
        subject: distinguishedName(request.commonName, request.organizations),
        publicKey: keys.publicKey,
        notAfter: endOf(clock.now() + validityMs),
      };
      const extensions = [
        ...extensionsFor(request.usages, [DIGITAL_SIGNATURE]),
        ...subjectAltNames(request),
      ];
      return {
        certificatePem: certify(issued, extensions),
        privateKeyPem: pemOfKey(keys.privateKey),
      };
    },
  };
}

interface Certified {
  readonly subject: Uint8Array;
  readonly publicKey: KeyObject;
  /**
   * Milliseconds since the Unix epoch, as is `notAfter`.
   * @default 1 h before the authority was loaded
   */
  readonly notBefore?: number;
  readonly notAfter: number;
}

/** Returns a function that signs certificates with the authority's key and encodes them as PEM. */
function certifier(
  privateKey: KeyObject,
  { commonName, clock = systemClock, random = randomBytes }: CertificateAuthorityOptions,
): (certified: Certified, extensions: readonly Uint8Array[]) => string {
  const issuer = distinguishedName(commonName);
  const backdated = clock.now() - BACKDATED_MS;
  return ({ subject, publicKey, notBefore = backdated, notAfter }, extensions) =>
    signedCertificate(
      derSequence(
        derExplicit(0, derInteger(Buffer.of(2))),
        derInteger(serialNumber(random)),
        SIGNATURE_ALGORITHM,
        issuer,
        derSequence(derTime(notBefore), derTime(notAfter)),
        subject,
        publicKey.export({ type: 'spki', format: 'der' }),
        derExplicit(
          3,
          derSequence(
            extension(OID.subjectKeyIdentifier, derOctetString(keyIdentifier(publicKey))),
            ...extensions,
          ),
        ),
      ),
      privateKey,
    );
}

/** Returns the KeyUsage value of the usages, or nothing if there are none. */
function keyUsageOf(usages: CertificateOrder['keyUsages']): readonly Uint8Array[] {
  const enciphers = usages.includes('key encipherment');
  const bits = (usages.includes('digital signature') ? 0x80 : 0) | (enciphers ? 0x20 : 0);
  return bits === 0 ? [] : [derBitString(Buffer.of(bits), enciphers ? 5 : 7)];
}

/** Takes 0.1 ms, less than a turn of the thread pool. */
function newKeyPair(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

/** Takes 30 to 300 ms of the thread pool. */
const newRsaKeyPair = () => promisify(generateKeyPair)('rsa', { modulusLength: 2048 });

/** Returns a positive serial number of 127 bits, within the limit of 20 bytes. */
function serialNumber(random: (size: number) => Uint8Array): Uint8Array {
  const bytes = Buffer.from(random(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes;
}

function distinguishedName(commonName: string, organizations: readonly string[] = []): Buffer {
  const attribute = (oid: string, value: string) =>
    derSetOfOne(derSequence(derObjectIdentifier(oid), derUtf8String(value)));
  return derSequence(
    ...organizations.map((organization) => attribute(OID.organization, organization)),
    attribute(OID.commonName, commonName),
  );
}

function subjectAltNames({ dnsNames = [], ipAddresses = [] }: CertificateRequest): Buffer[] {
  if (dnsNames.length + ipAddresses.length === 0) return [];
  const names = [
    ...dnsNames.map((name) => derImplicit(2, Buffer.from(name, 'ascii'))),
    ...ipAddresses.map((address) => derImplicit(7, addressBytes(address))),
  ];
  return [extension(OID.subjectAltName, derSequence(...names))];
}

/** @throws {TypeError} if `address` is not an IP address */
function addressBytes(address: string): Buffer {
  if (isIP(address) === 0) throw new TypeError(`Not an IP address: ${JSON.stringify(address)}`);
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  // The URL parser normalises all notations of IPv6 to groups of hexadecimal digits.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const before = groups(head);
  const after = groups(tail ?? '');
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0);
  return Buffer.from([...before, ...zeros, ...after].flatMap((group) => [group >> 8, group & 255]));
}

function groups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}

function extension(oid: string, value: Uint8Array): Buffer {
  return derSequence(derObjectIdentifier(oid), derOctetString(value));
}

/** Encodes a critical extension: verifiers that do not support it reject the certificate. */
function criticalExtension(oid: string, value: Uint8Array): Buffer {
  return derSequence(derObjectIdentifier(oid), derBoolean(true), derOctetString(value));
}

/** Returns the key identifier of RFC 5280: SHA-1 of the public point. It has no security function. */
function keyIdentifier(publicKey: KeyObject): Buffer {
  const point = publicKey.export({ type: 'spki', format: 'der' }).subarray(-65);
  return createHash('sha1').update(point).digest();
}

function signedCertificate(toBeSigned: Buffer, key: KeyObject): string {
  const signature = sign('sha256', toBeSigned, key);
  const der = derSequence(toBeSigned, SIGNATURE_ALGORITHM, derBitString(signature));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

function pemOfKey(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}
