import { X509Certificate } from 'node:crypto';
import { isIP, isIPv6 } from 'node:net';
import type { ConnectionOptions, PeerCertificate } from 'node:tls';
import { systemClock } from './clock.ts';
import { Memo } from './memo.ts';

/** TLS options by which a client trusts a server. */
export type ServerTrust = Pick<
  ConnectionOptions,
  'ca' | 'allowPartialTrustChain' | 'checkServerIdentity'
>;

/**
 * Returns TLS options by which a client trusts the servers that clients in Go trust: each certificate in `ca` can be
 * the end of a chain, also an intermediate or the server's own, and the common name is not a name of the server.
 *
 * @param ca PEM of the trusted certificates; undefined: those that Node.js trusts
 */
export function serverTrust(ca: string | undefined): ServerTrust {
  return {
    ...(ca !== undefined && { ca: currentAnchors(ca) }),
    allowPartialTrustChain: true,
    checkServerIdentity: nameProblem,
  };
}

/** Bundles of a process: of its API servers and webhooks. */
const bundles = new Memo(64, certificatesIn);

/**
 * Returns the certificates of a bundle that are valid now, in PEM. OpenSSL would end at an expired one even if another
 * certificate leads to a valid one. Returns the bundle if none is valid, so that the handshake fails with the reason.
 */
export function currentAnchors(pem: string): string {
  // OpenSSL uses the clock of the machine, too.
  const nowMs = systemClock.now();
  const all = bundles.get(pem);
  const current = all.filter((one) => isCurrent(one, nowMs));
  return current.length === 0 || current.length === all.length ? pem : pemOf(current);
}

/** Returns the certificates in a PEM text, without those that cannot be parsed. */
export function certificatesIn(pem: string): readonly X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  return blocks.flatMap((block) => {
    try {
      const x509 = new X509Certificate(block);
      // Throws if the type of the key is not supported.
      return x509.publicKey.type === 'public' ? [x509] : [];
    } catch {
      return []; // An invalid certificate counts as absent.
    }
  });
}

/** Returns the certificates as PEM, one after the other. */
export function pemOf(certificates: readonly X509Certificate[]): string {
  return certificates.map((x509) => x509.toString()).join('');
}

/** Returns the end of the validity in milliseconds since the Unix epoch. */
export function endOf(x509: X509Certificate): number {
  return Date.parse(x509.validTo);
}

export function isCurrent(x509: X509Certificate, nowMs: number): boolean {
  return Date.parse(x509.validFrom) <= nowMs && nowMs < endOf(x509);
}

export function isSame(a: X509Certificate, b: X509Certificate): boolean {
  return a.raw.equals(b.raw);
}

/**
 * Returns the anchor to which a chain of certificates, the server's first, leads at a time; undefined if there is none.
 * It does not check names and usages.
 */
export function anchorOf(
  [first, ...intermediates]: readonly X509Certificate[],
  anchors: readonly X509Certificate[],
  nowMs: number,
): X509Certificate | undefined {
  const reached = first ? [first] : [];
  for (const one of reached) {
    if (!isCurrent(one, nowMs)) continue;
    const found = anchors.find((anchor) => isSame(one, anchor) || isIssuedBy(one, anchor));
    if (found && isCurrent(found, nowMs)) return found;
    reached.push(
      ...intermediates.filter((next) => !reached.includes(next) && isIssuedBy(one, next)),
    );
  }
  return undefined;
}

function isIssuedBy(certificate: X509Certificate, authority: X509Certificate): boolean {
  return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
}

/** Returns an error with Go's text if the certificate is not valid for the host. */
function nameProblem(host: string, { raw }: PeerCertificate): Error | undefined {
  const certificate = new X509Certificate(raw);
  const name = host.replace(/\.$/, '');
  const { dnsNames, addresses } = certificateNames(certificate);
  const isValid = isIP(name)
    ? certificate.checkIP(name) !== undefined
    : certificate.checkHost(name, { subject: 'never', partialWildcards: false }) !== undefined ||
      dnsNames.some((pattern) => isWildcardOf(pattern, name));
  if (isValid) return undefined;
  const code = 'ERR_TLS_CERT_ALTNAME_INVALID';
  return Object.assign(new Error(mismatch(host, certificate, dnsNames, addresses)), { code });
}

/** Whether a wildcard below one label, such as `*.local`, has the host. OpenSSL requires two labels. */
function isWildcardOf(pattern: string, host: string): boolean {
  const [first, ...rest] = host.toLowerCase().split('.');
  return first !== '' && rest.length === 1 && pattern.toLowerCase() === `*.${rest[0]}`;
}

function mismatch(
  host: string,
  certificate: X509Certificate,
  dnsNames: readonly string[],
  addresses: readonly string[],
): string {
  if (certificate.subjectAltName === undefined && certificate.checkHost(host) !== undefined) {
    return 'x509: certificate relies on legacy Common Name field, use SANs instead';
  }
  const names = isIP(host) ? addresses : dnsNames;
  if (names.length > 0) return `x509: certificate is valid for ${names.join(', ')}, not ${host}`;
  return isIP(host)
    ? `x509: cannot validate certificate for ${host} because it doesn't contain any IP SANs`
    : `x509: certificate is not valid for any names, but wanted to match ${host}`;
}

/** One name in Node's text of the extension. A value with special characters is in quotes. */
const NAME = /([^:,"]+):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/gy;

/** Returns the names of a certificate that are compared with a host. */
export function certificateNames({ subjectAltName = '' }: X509Certificate): {
  readonly dnsNames: readonly string[];
  readonly addresses: readonly string[];
} {
  const names = Array.from(subjectAltName.matchAll(NAME), ([, type, value = '']) => ({
    type,
    value,
  }));
  const of = (wanted: string) =>
    names.filter(({ type }) => type === wanted).map(({ value }) => value);
  const addresses = of('IP Address').map((address) =>
    isIPv6(address) ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address,
  );
  return { dnsNames: of('DNS').filter((name) => /^[\w.*-]+$/.test(name)), addresses };
}
