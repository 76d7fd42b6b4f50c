import type { KeyObject } from 'node:crypto';
import {
  createECDH,
  createHash,
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  sign,
  verify,
} from 'node:crypto';

const SIGNATURE = 'ieee-p1363';

/** A key pair for signatures of JSON Web Tokens with ES256. */
export class Es256Key {
  /** The digest of the public key. */
  readonly id: string;
  /** The public key. */
  readonly jwk: Readonly<Record<'kty' | 'crv' | 'x' | 'y', string>>;
  readonly #signing: KeyObject;
  readonly #verifying: KeyObject;

  /** Derives the key from a secret. The same secret and purpose result in the same key. */
  constructor(secret: string | Uint8Array, purpose: string) {
    const scalar = Buffer.from(hkdfSync('sha256', secret, '', purpose, 32));
    const curve = createECDH('prime256v1');
    curve.setPrivateKey(scalar);
    const point = curve.getPublicKey();
    this.jwk = {
      kty: 'EC',
      crv: 'P-256',
      x: point.subarray(1, 33).toString('base64url'),
      y: point.subarray(33).toString('base64url'),
    };
    const key = { ...this.jwk, d: scalar.toString('base64url') };
    this.#signing = createPrivateKey({ format: 'jwk', key });
    this.#verifying = createPublicKey(this.#signing);
    const der = this.#verifying.export({ format: 'der', type: 'spki' });
    this.id = createHash('sha256').update(der).digest('base64url');
  }

  sign(text: string): Uint8Array {
    return sign('sha256', Buffer.from(text), { key: this.#signing, dsaEncoding: SIGNATURE });
  }

  verify(text: string, signature: Uint8Array): boolean {
    const key = { key: this.#verifying, dsaEncoding: SIGNATURE } as const;
    return verify('sha256', Buffer.from(text), key, signature);
  }
}
