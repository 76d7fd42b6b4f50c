import type { KeyObject } from 'node:crypto';
import { generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import type { Server } from 'node:https';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import {
  derBitString,
  derBoolean,
  derExplicit,
  derImplicit,
  derInteger,
  derObjectIdentifier,
  derOctetString,
  derSequence,
  derTime,
} from '../../src/util/der.ts';
import { certificateSubject } from './certificate-request.ts';

/** A chain that a server sends, the certificates that a client trusts, and the decision of Go's verifier. */
export interface CertificateChain {
  readonly title: string;
  /** PEM, the server's certificate first. */
  readonly sent: string;
  readonly key: string;
  /** PEM. */
  readonly anchors: string;
  /** The name by which the client addresses the server. */
  readonly host: string;
  /** Part of Go's error; absent if Go accepts the chain. */
  readonly refused?: string;
  /** Our error where it differs, because OpenSSL verifies the chain. */
  readonly refusedByOpenssl?: string;
}

interface Subject {
  readonly name: string;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

interface Rules {
  readonly ca?: boolean;
  readonly keyUsage?: number;
  readonly usage?: keyof typeof USAGES;
  readonly keyIds?: boolean;
  /** Hours from now, as `endsIn`. */
  readonly startsIn?: number;
  readonly endsIn?: number;
  readonly dnsNames?: readonly string[];
  readonly addresses?: readonly (readonly number[])[];
}

const HOUR_MS = 3_600_000;
const ECDSA_WITH_SHA256 = derSequence(derObjectIdentifier('1.2.840.10045.4.3.2'));
const SERVER = derObjectIdentifier('1.3.6.1.5.5.7.3.1');
const CLIENT = derObjectIdentifier('1.3.6.1.5.5.7.3.2');
const USAGES = { server: [SERVER], client: [CLIENT], both: [CLIENT, SERVER] } as const;

let serial = 0;

function subject(name: string): Subject {
  return { name, ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) };
}

function keyIdOf({ publicKey }: Subject): Uint8Array {
  return publicKey.export({ type: 'spki', format: 'der' }).subarray(-20);
}

/** Returns a certificate in PEM. */
function certify(of: Subject, issuer: Subject, rules: Rules = {}): string {
  const { ca, usage, keyUsage, keyIds = true, startsIn = -48, endsIn = 24 } = rules;
  const names = [
    ...(rules.dnsNames ?? []).map((name) => derImplicit(2, Buffer.from(name))),
    ...(rules.addresses ?? []).map((address) => derImplicit(7, Buffer.from(address))),
  ];
  const extensions = new Map<string, Uint8Array>();
  if (ca !== undefined) extensions.set('2.5.29.19', derSequence(...(ca ? [derBoolean(true)] : [])));
  if (keyIds) {
    extensions.set('2.5.29.14', derOctetString(keyIdOf(of)));
    extensions.set('2.5.29.35', derSequence(derImplicit(0, keyIdOf(issuer))));
  }
  if (keyUsage !== undefined) extensions.set('2.5.29.15', derBitString(Buffer.of(keyUsage), 1));
  if (usage) extensions.set('2.5.29.37', derSequence(...USAGES[usage]));
  if (names.length > 0) extensions.set('2.5.29.17', derSequence(...names));
  const encoded = Array.from(extensions, ([oid, value]) =>
    derSequence(derObjectIdentifier(oid), derOctetString(value)),
  );
  const now = Date.now();
  const toBeSigned = derSequence(
    derExplicit(0, derInteger(Buffer.of(2))),
    derInteger(Buffer.of(1, ++serial)),
    ECDSA_WITH_SHA256,
    certificateSubject(issuer.name),
    derSequence(derTime(now + startsIn * HOUR_MS), derTime(now + endsIn * HOUR_MS)),
    certificateSubject(of.name),
    of.publicKey.export({ type: 'spki', format: 'der' }),
    ...(encoded.length > 0 ? [derExplicit(3, derSequence(...encoded))] : []),
  );
  const signature = derBitString(sign('sha256', toBeSigned, issuer.privateKey));
  const base64 = derSequence(toBeSigned, ECDSA_WITH_SHA256, signature).toString('base64');
  return `-----BEGIN CERTIFICATE-----\n${(base64.match(/.{1,64}/g) ?? []).join('\n')}\n-----END CERTIFICATE-----\n`;
}

const AUTHORITY = 'certificate signed by unknown authority';
const EXPIRED = 'certificate has expired or is not yet valid';
const USAGE = 'certificate specifies an incompatible key usage';

/** Our errors where they differ from Go's. */
const BY_OPENSSL: ReadonlyMap<string, string> = new Map([
  ['cross-signed intermediate, the other root first', AUTHORITY],
  ['self-signed certificate that only signs', USAGE],
  ['two roots of one name, the right one last', AUTHORITY],
  ['root that is no authority', USAGE],
  ['root without basic constraints', USAGE],
  ['intermediate that is no authority', USAGE],
]);

/** Returns chains of each kind. */
export function certificateChains(): readonly CertificateChain[] {
  const [root, otherRoot, sameName] = [subject('root'), subject('other root'), subject('root')];
  const [middle, lower, leaf] = [subject('intermediate'), subject('lower'), subject('server')];
  const CA: Rules = { ca: true, keyUsage: 0x06 };
  const SERVING: Rules = {
    ca: false,
    usage: 'server',
    dnsNames: ['localhost'],
    addresses: [[127, 0, 0, 1]],
  };
  const PAST: Rules = { endsIn: -24 };
  const r = certify(root, root, CA);
  const rExpired = certify(root, root, { ...CA, ...PAST });
  const other = certify(otherRoot, otherRoot, CA);
  const m = certify(middle, root, CA);
  const mByOther = certify(middle, otherRoot, CA);
  const mExpired = certify(middle, root, { ...CA, ...PAST });
  const rByOther = certify(root, otherRoot, CA);
  const low = certify(lower, middle, CA);
  const own = certify(leaf, leaf, SERVING);
  const byRoot = (rules: Rules = {}) => certify(leaf, root, { ...SERVING, ...rules });
  const named = (rules: Rules) => byRoot({ dnsNames: [], addresses: [], ...rules });
  const [issued, byMiddle, byLower] = [
    byRoot(),
    certify(leaf, middle, SERVING),
    certify(leaf, lower, SERVING),
  ];
  const key = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const of = (
    title: string,
    sent: readonly string[],
    anchors: readonly string[] = sent,
    refused?: string,
    host = 'localhost',
  ): CertificateChain => {
    const refusedByOpenssl = BY_OPENSSL.get(title);
    return {
      title,
      key,
      host,
      sent: sent.join(''),
      anchors: anchors.join(''),
      ...(refused !== undefined && { refused }),
      ...(refusedByOpenssl !== undefined && { refusedByOpenssl }),
    };
  };
  const selfSigned = (rules: Rules) => certify(leaf, leaf, { ...SERVING, ...rules });
  const withoutIds = { ...CA, keyIds: false };
  const commonName = (rules: Rules) =>
    certify({ ...leaf, name: 'localhost' }, root, { ca: false, ...rules });
  return [
    of('root', [issued], [r]),
    of('root over two intermediates', [byLower, low, m], [r]),
    of('intermediates in the wrong order', [byLower, m, low], [r]),
    of('root that is sent, too', [byMiddle, m, r], [r]),
    of('root without the intermediate', [byMiddle], [r], AUTHORITY),
    of('root and the intermediate that is not sent', [byMiddle], [r, m]),
    of('another root', [byMiddle, m], [other], AUTHORITY),
    of('several roots', [byMiddle, m], [other, r]),
    of('intermediate', [byMiddle], [m]),
    of('intermediate that is sent, too', [byMiddle, m], [m]),
    of('lower intermediate', [byLower, low, m], [low]),
    of('upper intermediate', [byLower, low, m], [m]),
    of('upper intermediate without the lower one', [byLower], [m], AUTHORITY),
    of('another certificate of the server', [issued], [byRoot()], AUTHORITY),
    of('exactly the certificate of the server', [issued]),
    of('the certificate of the server below an intermediate', [byMiddle, m], [byMiddle]),
    of('self-signed certificate', [own]),
    of('another self-signed one of this name and key', [own], [selfSigned({})], AUTHORITY),
    of('self-signed authority that serves', [selfSigned({ ca: true })]),
    of('self-signed certificate that only signs', [selfSigned(CA)]),
    of('self-signed without extensions', [certify(leaf, leaf, { dnsNames: ['localhost'] })]),
    of('cross-signed intermediate by the trusted root', [byMiddle, mByOther], [other]),
    of('cross-signed intermediate, the other root first', [byMiddle, m, mByOther], [other]),
    of('cross-signed intermediate, the trusted root first', [byMiddle, mByOther, m], [other]),
    of('cross-signed root', [byMiddle, m, rByOther], [other]),
    of('cross-signed root, trusted itself', [byMiddle, m, rByOther], [r]),
    of('expired root', [issued], [rExpired], EXPIRED),
    of('expired and renewed root', [issued], [rExpired, r]),
    of('renewed and expired root', [issued], [r, rExpired]),
    of('expired root and a valid intermediate', [byMiddle, m], [rExpired, m]),
    of('valid intermediate and an expired root', [byMiddle, m], [m, rExpired]),
    of('expired root and the certificate of the server', [issued], [rExpired, issued]),
    of(
      'root that is not valid yet and its predecessor',
      [issued],
      [certify(root, root, { ...CA, startsIn: 12 }), r],
    ),
    of('expired intermediate of a valid root', [byMiddle, mExpired], [r], EXPIRED),
    of('expired intermediate that is renewed in the bundle', [byMiddle, mExpired], [r, m]),
    of('expired server', [byRoot(PAST)], [r], EXPIRED),
    of('expired certificate of the server', [byRoot(PAST)], undefined, EXPIRED),
    of('server that is not valid yet', [byRoot({ startsIn: 12 })], [r], EXPIRED),
    of(
      'two roots of one name, the right one first',
      [byRoot({ keyIds: false })],
      [certify(root, root, withoutIds), certify(sameName, sameName, withoutIds)],
    ),
    of(
      'two roots of one name, the right one last',
      [byRoot({ keyIds: false })],
      [certify(sameName, sameName, withoutIds), certify(root, root, withoutIds)],
    ),
    of(
      'two roots of one name with identifiers of keys',
      [issued],
      [certify(sameName, sameName, CA), r],
    ),
    of(
      'root of the same name only',
      [byRoot({ keyIds: false })],
      [certify(sameName, sameName, CA)],
      AUTHORITY,
    ),
    of('root that is no authority', [issued], [certify(root, root, { ca: false })], AUTHORITY),
    of('root without basic constraints', [issued], [certify(root, root)], AUTHORITY),
    of(
      'intermediate that is no authority',
      [byMiddle, certify(middle, root, { ca: false })],
      [r],
      AUTHORITY,
    ),
    of(
      'root that may not sign certificates',
      [issued],
      [certify(root, root, { ca: true, keyUsage: 0x80 })],
      AUTHORITY,
    ),
    of('usage of clients', [byRoot({ usage: 'client' })], [r], USAGE),
    of(
      'usage of clients, exactly the certificate',
      [byRoot({ usage: 'client' })],
      undefined,
      USAGE,
    ),
    of('usage of both', [byRoot({ usage: 'both' })], [r]),
    of('no usage', [certify(leaf, root, { dnsNames: ['localhost'] })], [r]),
    of(
      'intermediate for clients',
      [byMiddle, certify(middle, root, { ...CA, usage: 'client' })],
      [r],
      USAGE,
    ),
    of('root for clients', [issued], [certify(root, root, { ...CA, usage: 'client' })], USAGE),
    of('address', [issued], [r], undefined, '127.0.0.1'),
    of(
      'another address',
      [named({ addresses: [[127, 0, 0, 2]] })],
      [r],
      'certificate is valid for 127.0.0.2, not 127.0.0.1',
      '127.0.0.1',
    ),
    ...['localhost', '127.0.0.1'].map((name) =>
      of(
        `the name ${name} and no address`,
        [named({ dnsNames: [name] })],
        [r],
        "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
        '127.0.0.1',
      ),
    ),
    ...['elsewhere', '*', 'local*'].map((name) =>
      of(
        `the name ${name}`,
        [named({ dnsNames: [name] })],
        [r],
        `certificate is valid for ${name}, not localhost`,
      ),
    ),
    of('wildcard below one label', [named({ dnsNames: ['*.local'] })], [r], undefined, 'api.local'),
    of(
      'wildcard for two labels',
      [named({ dnsNames: ['*.local'] })],
      [r],
      'certificate is valid for *.local, not a.b.local',
      'a.b.local',
    ),
    of('name in capitals', [named({ dnsNames: ['LOCALHOST'] })], [r]),
    of('several names', [named({ dnsNames: ['elsewhere', 'localhost'] })], [r]),
    of(
      'common name',
      [commonName({})],
      [r],
      'certificate relies on legacy Common Name field, use SANs instead',
    ),
    of(
      'common name and an address',
      [commonName({ addresses: [[127, 0, 0, 1]] })],
      [r],
      'certificate is not valid for any names, but wanted to match localhost',
    ),
    of(
      'wrong name, exactly the certificate',
      [named({ dnsNames: ['elsewhere', 'there'] })],
      undefined,
      'certificate is valid for elsewhere, there, not localhost',
    ),
  ];
}

/** A server on a loopback address that sends one chain after the other. */
export class ChainServer {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** Each connection serves one request. */
  static async start(listener: RequestListener): Promise<ChainServer> {
    const server = createServer(listener);
    server.maxRequestsPerSocket = 1;
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new ChainServer(server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Sends the chain on new connections. */
  use({ sent, key }: CertificateChain): void {
    this.#server.setSecureContext({ cert: sent, key });
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
