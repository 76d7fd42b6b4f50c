import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { Clock } from '../util/clock.ts';
import {
  anchorOf,
  certificatesIn,
  endOf,
  isSame,
  certificateNames,
  pemOf,
} from '../util/server-trust.ts';
import { createCertificateAuthority, loadCertificateAuthority } from '../util/x509.ts';
import type { Certificate } from '../util/x509.ts';

/** The part of a Secret that `ManagedCertificate` reads and writes. */
export interface CertificateSecret {
  readonly data?: Readonly<Record<string, string>>;
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
}

/** Data and annotations of a Secret. */
export interface CertificateContent {
  readonly data: Record<string, string>;
  readonly annotations: Record<string, string>;
}

/** Keys of the Secret. `ca.crt` has all trusted authorities; a private key belongs to one of them. */
const KEYS = {
  authorities: 'ca.crt',
  signingKey: 'ca.key',
  nextKey: 'ca-next.key',
  certificate: 'tls.crt',
  privateKey: 'tls.key',
} as const;

/** Annotation of Secrets that `ManagedCertificate` may overwrite. */
export const MANAGED = 'crd-controller.mark8s.io/webhook-certificates';
/** Annotation with the fingerprints of the authorities that are in the CA bundles of the configurations. */
const INJECTED = 'crd-controller.mark8s.io/injected-authorities';
/** Annotation with the time at which the last certificate of a replaced authority expires. */
const RETIRE_AFTER = 'crd-controller.mark8s.io/retire-authorities-after';

/** Maximum number of replaced authorities that are still trusted. */
const MAX_REPLACED = 8;

/** Tolerated difference between the clocks of replicas, in milliseconds. */
const CLOCK_SKEW_MS = 60 * 60 * 1000;

/** Subject of the authorities, which differ in their keys. */
const AUTHORITY_NAME = 'webhook-ca';

/** Serving certificate with the authority that clients need to verify it. */
export interface ServingCertificate {
  readonly pair: Certificate;
  readonly x509: X509Certificate;
  readonly authority: X509Certificate;
}

/** Authority with its private key. */
interface Signer {
  readonly x509: X509Certificate;
  readonly privateKeyPem: string;
}

/** The valid part of a Secret's content. */
export interface StoredCertificates {
  /** Trusted authorities, newest first. */
  readonly authorities: readonly X509Certificate[];
  /** The authority that signs serving certificates. */
  readonly signing: Signer | undefined;
  /** The authority that replaces `signing` when it is in all CA bundles. */
  readonly next: Signer | undefined;
  readonly serving: ServingCertificate | undefined;
  /** Fingerprints of the authorities in the CA bundles of the configurations. */
  readonly injected: ReadonlySet<string>;
  /** Time after which replaced authorities are removed, in milliseconds since the Unix epoch. */
  readonly retireAfterMs: number | undefined;
}

/** Rules by which certificates are renewed. */
export interface RenewalRules {
  readonly clock: Pick<Clock, 'now'>;
  readonly dnsNames: readonly string[];
  readonly validityMs: number;
  readonly authorityValidityMs: number;
}

/** What a replica knows besides the Secret. */
export interface RenewalState {
  /** The certificate that this replica serves, if it has not expired. */
  readonly served: ServingCertificate | undefined;
  /** Reports whether API servers trust the authority. */
  readonly isTrusted: (authority: X509Certificate) => boolean;
  /** The Secret was lost. Its keys may be known to others, so the authority is replaced too. */
  readonly isLost: boolean;
}

/**
 * Returns the valid part of the content of `secret`. Anything else counts as absent.
 *
 * @param served a certificate whose authority is trusted even if the Secret does not contain it
 */
export function parseCertificates(
  { data = {}, metadata: { annotations = {} } }: CertificateSecret,
  nowMs: number,
  served: ServingCertificate | undefined,
): StoredCertificates {
  const text = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString();
  const stored = certificatesIn(text(KEYS.authorities));
  const authorities = distinct(stored.filter((x509) => x509.ca && endOf(x509) > nowMs));
  const signing = signerOf(text(KEYS.signingKey), authorities, nowMs);
  const next = signerOf(text(KEYS.nextKey), authorities, nowMs);
  const trusted = served ? [...authorities, served.authority] : authorities;
  const pair = {
    certificatePem: text(KEYS.certificate),
    privateKeyPem: text(KEYS.privateKey),
  };
  const injected = (annotations[INJECTED] ?? '').split(',').filter((one) => one !== '');
  const retireAfterMs = Date.parse(annotations[RETIRE_AFTER] ?? '');
  return {
    authorities,
    signing,
    next: next && signing && isSame(next.x509, signing.x509) ? undefined : next,
    serving: servingOf(pair, trusted, nowMs),
    injected: new Set(injected),
    retireAfterMs: Number.isNaN(retireAfterMs) ? undefined : retireAfterMs,
  };
}

/** Returns the content of `secret` with these certificates. Other keys and annotations are unchanged. */
export function withCertificates(
  secret: CertificateSecret,
  { authorities, signing, next, serving, injected, retireAfterMs }: StoredCertificates,
): CertificateContent {
  const { data = {}, metadata } = secret;
  const fingerprints = authorities.map(fingerprintOf).filter((one) => injected.has(one));
  const texts = {
    [KEYS.authorities]: pemOf(authorities),
    [KEYS.signingKey]: signing?.privateKeyPem,
    [KEYS.nextKey]: next?.privateKeyPem,
    [KEYS.certificate]: serving?.pair.certificatePem,
    [KEYS.privateKey]: serving?.pair.privateKeyPem,
  };
  const encoded = Object.entries(texts).map(
    ([key, text]) => [key, text && Buffer.from(text).toString('base64')] as const,
  );
  const annotations = {
    ...metadata.annotations,
    [MANAGED]: 'true',
    [INJECTED]: fingerprints.join(',') || undefined,
    [RETIRE_AFTER]: retireAfterMs === undefined ? undefined : new Date(retireAfterMs).toISOString(),
  };
  return {
    data: defined({ ...data, ...Object.fromEntries(encoded) }),
    annotations: defined(annotations),
  };
}

/**
 * Returns the certificates that replace `stored`; equal ones if nothing is due. A serving certificate of a
 * new authority is only issued when API servers trust the authority, unless there is no other valid one.
 */
export async function renewCertificates(
  stored: StoredCertificates,
  rules: RenewalRules,
  { served, isTrusted, isLost }: RenewalState,
): Promise<StoredCertificates> {
  const { clock, dnsNames, validityMs } = rules;
  const nowMs = clock.now();
  let { authorities, signing, next, serving, retireAfterMs } = stored;
  const keepUntil = (certificate: ServingCertificate | undefined) => {
    const endMs = certificate ? endOf(certificate.x509) : nowMs + validityMs;
    retireAfterMs = Math.max(retireAfterMs ?? 0, endMs);
  };
  if (served && !includes(authorities, served.authority)) {
    authorities = [...authorities, served.authority];
    keepUntil(served);
  }
  const names = serving ? certificateNames(serving.x509).dnsNames : [];
  const isNamed = dnsNames.every((name) => serving?.x509.checkHost(name) !== undefined);
  const isDue = !serving || !isNamed || endOf(serving.x509) <= nowMs + renewBeforeMs(rules);
  const canRenew = signing && (!serving || !isNamed || isLater(signing, serving, rules));
  const needsAuthority = signing ? endOf(signing.x509) <= nowMs + 2 * validityMs : isDue;
  if (!next && (needsAuthority || isLost)) {
    next = await newAuthority(rules);
    authorities = [next.x509, ...authorities];
  }
  const isUrgent = !serving || endOf(serving.x509) < nowMs + validityMs / 24;
  const issuer = next && (isTrusted(next.x509) || (!canRenew && isUrgent)) ? next : undefined;
  if (issuer ?? (isDue && canRenew)) {
    if (issuer) {
      if (serving ?? served) keepUntil(serving ?? served);
      signing = issuer;
      next = undefined;
    }
    // Replicas of another release may need other names, which must not cause another renewal.
    const others = isNamed ? [] : names;
    serving = signing && (await issue(signing, [...new Set([...dnsNames, ...others])], rules));
  }
  const inUse = [signing?.x509, next?.x509, serving?.authority].filter((one) => one !== undefined);
  const replaced = authorities.filter((one) => !includes(inUse, one));
  if (replaced.length === 0) retireAfterMs = undefined;
  else if (retireAfterMs === undefined) keepUntil(undefined);
  const isRetired = retireAfterMs !== undefined && retireAfterMs + CLOCK_SKEW_MS <= nowMs;
  const kept = replaced.slice(0, isRetired ? 0 : MAX_REPLACED);
  authorities = authorities.filter(
    (one) => includes([...inUse, ...kept], one) || (served && isSame(one, served.authority)),
  );
  return { authorities, signing, next, serving, injected: stored.injected, retireAfterMs };
}

/** Returns the time of the next renewal, in milliseconds since the Unix epoch. */
export function nextRenewalMs(
  { signing, serving, retireAfterMs }: StoredCertificates,
  rules: RenewalRules,
): number {
  return Math.min(
    serving ? endOf(serving.x509) - renewBeforeMs(rules) : Infinity,
    signing ? endOf(signing.x509) - 2 * rules.validityMs : Infinity,
    retireAfterMs === undefined ? Infinity : retireAfterMs + CLOCK_SKEW_MS,
  );
}

/** Returns the SHA-256 fingerprint in hexadecimal digits. */
export function fingerprintOf(x509: X509Certificate): string {
  return x509.fingerprint256.replaceAll(':', '').toLowerCase();
}

export function includes(certificates: readonly X509Certificate[], one: X509Certificate): boolean {
  return certificates.some((other) => isSame(one, other));
}

function distinct(certificates: readonly X509Certificate[]): readonly X509Certificate[] {
  return certificates.filter((one, at) => !includes(certificates.slice(0, at), one));
}

function isStarted(x509: X509Certificate, nowMs: number): boolean {
  return Date.parse(x509.validFrom) <= nowMs;
}

/** Renewal at two thirds of the validity, as cert-manager's default. */
function renewBeforeMs({ validityMs }: RenewalRules): number {
  return validityMs / 3;
}

/** Whether a certificate that `signing` issues now is valid for longer than `serving`. */
function isLater(
  signing: Signer,
  serving: ServingCertificate,
  { clock, validityMs }: RenewalRules,
): boolean {
  const endMs = Math.min(clock.now() + validityMs, endOf(signing.x509));
  return endMs > endOf(serving.x509) + validityMs / 10;
}

/** Returns the authority of a private key, if it can sign certificates. */
function signerOf(
  privateKeyPem: string,
  authorities: readonly X509Certificate[],
  nowMs: number,
): Signer | undefined {
  const key = privateKeyOf(privateKeyPem);
  const { namedCurve } = key?.asymmetricKeyDetails ?? {};
  if (!key || namedCurve !== 'prime256v1') return undefined;
  const x509 = authorities.find((one) => one.checkPrivateKey(key));
  const isOurs = x509?.subject === `CN=${AUTHORITY_NAME}` && isStarted(x509, nowMs);
  return isOurs ? { x509, privateKeyPem } : undefined;
}

/** Returns the pair with its authority, if clients that trust `authorities` accept it. */
function servingOf(
  pair: Certificate,
  authorities: readonly X509Certificate[],
  nowMs: number,
): ServingCertificate | undefined {
  const chain = certificatesIn(pair.certificatePem);
  const [x509] = chain;
  const key = privateKeyOf(pair.privateKeyPem);
  if (!x509 || !key || !x509.checkPrivateKey(key)) return undefined;
  const authority = anchorOf(chain, authorities, nowMs);
  return authority && { pair, x509, authority };
}

function privateKeyOf(pem: string) {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined; // An invalid key counts as absent.
  }
}

async function newAuthority({ clock, authorityValidityMs }: RenewalRules): Promise<Signer> {
  const { certificatePem, privateKeyPem } = await createCertificateAuthority({
    commonName: AUTHORITY_NAME,
    clock,
    validityMs: authorityValidityMs,
  });
  return { x509: new X509Certificate(certificatePem), privateKeyPem };
}

async function issue(
  { x509: authority, privateKeyPem }: Signer,
  dnsNames: readonly string[],
  { clock, validityMs }: RenewalRules,
): Promise<ServingCertificate> {
  const signer = loadCertificateAuthority(
    { certificatePem: authority.toString(), privateKeyPem },
    { commonName: AUTHORITY_NAME, clock, validityMs },
  );
  const pair = await signer.issue({ commonName: 'webhook', dnsNames, usages: 'server' });
  return { pair, x509: new X509Certificate(pair.certificatePem), authority };
}

function defined<V>(record: Readonly<Record<string, V | undefined>>): Record<string, V> {
  return Object.fromEntries(
    Object.entries(record).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  );
}
