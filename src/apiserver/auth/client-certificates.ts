import { X509Certificate } from 'node:crypto';
import { subjectNamesOf } from '../../util/x509.ts';
import type { User } from '../../api/user.ts';
import { AUTHENTICATED } from '../../api/user.ts';

/** Extended key usages that permit the authentication of clients: any, and client. */
const CLIENT_USAGES = ['2.5.29.37.0', '1.3.6.1.5.5.7.3.2'];

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Authenticates client certificates: the common name is the user, the organizations are the groups. */
export class ClientCertificates {
  readonly #now: () => number;
  readonly #users = new WeakMap<X509Certificate, User>();
  readonly #authorities: readonly X509Certificate[];

  /**
   * Accepts certificates that these authorities have signed.
   *
   * @param authoritiesPem certificates in PEM
   * @param now returns the time in milliseconds since the Unix epoch
   */
  constructor(authoritiesPem: string, now: () => number) {
    const pems = authoritiesPem.match(PEM_CERTIFICATE) ?? [];
    this.#authorities = pems.map((pem) => new X509Certificate(pem));
    this.#now = now;
  }

  /** Returns the user of a certificate, or undefined if it is not valid. */
  userOf(certificate: X509Certificate): User | undefined {
    const now = this.#now();
    const isCurrent =
      Date.parse(certificate.validFrom) <= now && now <= Date.parse(certificate.validTo);
    if (!isCurrent) return undefined;
    const known = this.#users.get(certificate);
    if (known) return known;
    const usages: readonly string[] | undefined = certificate.keyUsage;
    const isSigned = this.#authorities.some(
      (each) => certificate.checkIssued(each) && certificate.verify(each.publicKey),
    );
    if (!isSigned) return undefined;
    if (usages && !CLIENT_USAGES.some((usage) => usages.includes(usage))) return undefined;
    const user = subjectOf(certificate);
    if (user) this.#users.set(certificate, user);
    return user;
  }
}

function subjectOf(certificate: X509Certificate): User | undefined {
  const { commonName, organizations } = subjectNamesOf(certificate);
  if (commonName === '') return undefined;
  const id = certificate.fingerprint256.replaceAll(':', '').toLowerCase();
  return {
    name: commonName,
    groups: [...organizations, AUTHENTICATED],
    extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${id}`] },
  };
}
