import { goQuote } from '../../util/go-quote.ts';
import { fromBase64, textFromBase64, toBase64Url } from '../../util/bytes.ts';
import { LruMap } from '../../util/lru-map.ts';
import { isRecord } from '../../util/values.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import type { Authentication, User } from '../../api/user.ts';
import { API_AUDIENCE, AUTHENTICATED } from '../../api/user.ts';

/** Issuer of the tokens of ServiceAccounts. */
const ISSUER = 'https://kubernetes.default.svc';

/** Deleted objects invalidate their tokens after this time, in milliseconds. */
const LEEWAY_MS = 60_000;

/** Number of tokens with a verified signature that are kept. */
const VERIFIED_TOKENS = 1000;

interface Reference {
  readonly name: string;
  readonly uid: string;
}

/** Resources that a token can be bound to. */
const BOUND = { pod: 'pods', node: 'nodes', secret: 'secrets' } as const;

/** Kind of an object that a token can be bound to. */
export type BoundKind = keyof typeof BOUND;

/** The claims of a token of a ServiceAccount. */
interface Claims {
  readonly aud: readonly string[];
  /** Seconds since the Unix epoch, as are `iat` and `nbf`. */
  readonly exp: number;
  readonly iat: number;
  readonly nbf: number;
  readonly iss: string;
  readonly jti: string;
  readonly 'kubernetes.io': {
    readonly namespace: string;
    readonly serviceaccount: Reference;
  } & Partial<Record<BoundKind, Reference>>;
  readonly sub: string;
}

/** A key pair that signs tokens with ES256. Cryptography with keys is the platform's. */
export interface TokenKey {
  /** Derived from the public key. */
  readonly id: string;
  /** The public key. */
  readonly jwk: Readonly<Record<'kty' | 'crv' | 'x' | 'y', string>>;
  sign(text: string): Uint8Array;
  verify(text: string, signature: Uint8Array): boolean;
}

export interface TokenOrder {
  readonly account: StoredObject;
  readonly audiences: readonly string[];
  readonly seconds: number;
  /** Objects whose deletion invalidates the token, and the node of a Pod. */
  readonly bound: Partial<Record<BoundKind, Reference>>;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** Unique id of the token. */
  readonly id: string;
}

/**
 * Issues and validates tokens of ServiceAccounts: JSON Web Tokens, signed with ES256.
 */
export class ServiceAccountTokens {
  readonly #store: ObjectStore;
  readonly #now: () => number;
  readonly #newKey: () => TokenKey;
  readonly #verified = new LruMap<string, Claims>(VERIFIED_TOKENS);
  #createdKey: TokenKey | undefined;

  /** @param newKey called when the first token is issued or validated */
  constructor(store: ObjectStore, now: () => number, newKey: () => TokenKey) {
    this.#store = store;
    this.#now = now;
    this.#newKey = newKey;
  }

  issue({ account, audiences, seconds, bound, now, id }: TokenOrder): string {
    const { namespace = '', name, uid } = account.metadata;
    const issued = Math.floor(now / 1000);
    const claims: Claims = {
      aud: audiences,
      exp: issued + seconds,
      iat: issued,
      iss: ISSUER,
      jti: id,
      'kubernetes.io': { namespace, serviceaccount: { name, uid }, ...bound },
      nbf: issued,
      sub: `system:serviceaccount:${namespace}:${name}`,
    };
    const text = `${encode({ alg: 'ES256', kid: this.#key.id, typ: 'JWT' })}.${encode(claims)}`;
    return `${text}.${toBase64Url(this.#key.sign(text))}`;
  }

  /** Returns the documents of OpenID Connect discovery by their paths, for clients that verify tokens. */
  discovery(host: string): Readonly<Record<string, object>> {
    const { id, jwk } = this.#key;
    const { kty, crv, x, y } = jwk;
    return {
      '.well-known/openid-configuration': {
        issuer: ISSUER,
        jwks_uri: `https://${host}/openid/v1/jwks`,
        response_types_supported: ['id_token'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['ES256'],
      },
      'openid/v1/jwks': {
        keys: [{ use: 'sig', kty, kid: id, crv, alg: 'ES256', x, y }],
      },
    };
  }

  /**
   * Returns the ServiceAccount of a token and the audiences that it has in common with `wanted`, or the reason
   * why the token is not valid. Returns undefined if this server did not issue it.
   */
  authenticate(token: string, wanted: readonly string[]): Authentication | string | undefined {
    const claims = this.#claimsOf(token);
    if (!claims) return undefined;
    const audiences = wanted.filter((audience) => claims.aud.includes(audience));
    if (audiences.length === 0) {
      return `token audiences ${quotedList(claims.aud)} is invalid for the target audiences ${quotedList(wanted)}`;
    }
    const problem = this.#problemOf(claims);
    return problem ?? { user: userOf(claims), audiences };
  }

  /** Returns the claims of a token with a valid signature. */
  #claimsOf(token: string): Claims | undefined {
    const known = this.#verified.get(token);
    if (known) return known;
    const [header = '', payload = '', signature = '', ...rest] = token.split('.');
    const signed = fromBase64(signature);
    // The encoding has no padding, and no second form of the same bytes.
    if (signature === '' || toBase64Url(signed) !== signature || rest.length > 0) {
      return undefined;
    }
    if (!this.#key.verify(`${header}.${payload}`, signed)) return undefined;
    const claims: unknown = JSON.parse(textFromBase64(payload));
    if (!isClaims(claims)) return undefined;
    this.#verified.set(token, claims);
    return claims;
  }

  #problemOf({ exp, nbf, 'kubernetes.io': claim }: Claims): string | undefined {
    const now = this.#now();
    if (now > exp * 1000 + LEEWAY_MS) return 'service account token has expired';
    if (now < nbf * 1000 - LEEWAY_MS) return 'service account token is not valid yet';
    const { namespace, serviceaccount, pod } = claim;
    const account = this.#find('serviceaccounts', namespace, serviceaccount.name);
    if (!account) return `serviceaccounts ${goQuote(serviceaccount.name)} not found`;
    if (account.metadata.uid !== serviceaccount.uid) {
      return `service account UID (${account.metadata.uid}) does not match claim (${serviceaccount.uid})`;
    }
    if (this.#isDeleted(account)) {
      return `service account ${namespace}/${serviceaccount.name} has been deleted`;
    }
    for (const kind of ['secret', 'pod', 'node'] as const) {
      const reference = claim[kind];
      // The node of a Pod is information only.
      if (!reference || (kind === 'node' && pod)) continue;
      const place = kind === 'node' ? undefined : namespace;
      const object = this.#find(BOUND[kind], place, reference.name);
      if (!object || object.metadata.uid !== reference.uid || this.#isDeleted(object)) {
        return 'service account token has been invalidated';
      }
    }
    return undefined;
  }

  #find(plural: string, namespace: string | undefined, name: string): StoredObject | undefined {
    return this.#store.collection({ group: '', plural }).get(namespace, name);
  }

  #isDeleted({ metadata: { deletionTimestamp } }: StoredObject): boolean {
    return (
      deletionTimestamp !== undefined && Date.parse(deletionTimestamp) < this.#now() - LEEWAY_MS
    );
  }

  get #key(): TokenKey {
    this.#createdKey ??= this.#newKey();
    return this.#createdKey;
  }
}

/** Whether the payload of a token with a valid signature has the claims that this class writes. */
function isClaims(payload: unknown): payload is Claims {
  return isRecord(payload) && payload['iss'] === ISSUER;
}

function userOf({ jti, sub, 'kubernetes.io': claim }: Claims): User {
  const { namespace, serviceaccount, pod, node } = claim;
  const prefix = 'authentication.kubernetes.io';
  return {
    name: sub,
    uid: serviceaccount.uid,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, AUTHENTICATED],
    extra: {
      [`${prefix}/credential-id`]: [`JTI=${jti}`],
      ...(node && { [`${prefix}/node-name`]: [node.name], [`${prefix}/node-uid`]: [node.uid] }),
      ...(pod && { [`${prefix}/pod-name`]: [pod.name], [`${prefix}/pod-uid`]: [pod.uid] }),
    },
  };
}

/** Audiences of a token request without any. */
export const DEFAULT_AUDIENCES: readonly string[] = [API_AUDIENCE];

function encode(value: object): string {
  return toBase64Url(JSON.stringify(value));
}

function quotedList(texts: readonly string[]): string {
  return `[${texts.map(goQuote).join(' ')}]`;
}
