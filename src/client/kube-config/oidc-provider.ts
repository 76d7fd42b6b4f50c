import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { isRecord } from '../../util/values.ts';
import { withinTimeout } from '../../util/within-timeout.ts';
import type { OidcSource } from './cluster-config.ts';
import { credentialError, PemFiles } from './credential-files.ts';
import type { OidcTokens } from './oidc-store.ts';
import type { ReadFile } from './read-file.ts';

/** Options of `OidcProvider`. */
export interface OidcProviderOptions {
  readonly source: OidcSource;
  readonly clock: Clock;
  readonly log: Logger;
  readonly readFile: ReadFile;
}

/** Time before the expiry at which a token is renewed, in milliseconds, as in client-go. */
const EXPIRY_SKEW_MS = 10_000;
/** Timeout of discovery and renewal together, in milliseconds. */
const RENEW_TIMEOUT_MS = 30_000;

/**
 * The ID token of an OpenID Connect provider, renewed by client-node's `OpenIDConnectAuth` with the refresh token. New
 * tokens are stored in the kubeconfig, as kubectl does, because a provider can invalidate the old refresh token.
 */
export class OidcProvider {
  readonly #options: OidcProviderOptions;
  readonly #ca: PemFiles;
  #tokens: OidcTokens;
  /** The tokens in the kubeconfig when it was last read or written. */
  #stored: OidcTokens;
  #renewing: Promise<string> | undefined;

  constructor(options: OidcProviderOptions) {
    const { source, clock, log, readFile } = options;
    const { idToken, refreshToken, ca } = source;
    this.#options = options;
    this.#tokens = { idToken, refreshToken };
    this.#stored = this.#tokens;
    this.#ca = new PemFiles({ sources: { ca }, clock, log, readFile });
  }

  /**
   * Returns the ID token; no promise while it is valid.
   *
   * @throws {ApiError} of kind `unauthorized` if it has expired and cannot be renewed
   */
  token(): string | Promise<string> {
    const { idToken } = this.#tokens;
    if (idToken !== undefined && this.#isValid(idToken)) return idToken;
    this.#renewing ??= this.#renewOrKeep().finally(() => (this.#renewing = undefined));
    return this.#renewing;
  }

  #isValid(token: string): boolean {
    return this.#options.clock.now() + EXPIRY_SKEW_MS < this.#expiryOf(token);
  }

  /** Returns the time in milliseconds at which a token expires. */
  #expiryOf(token: string): number {
    const [, payload, signature, rest] = token.split('.');
    try {
      if (payload === undefined || signature === undefined || rest !== undefined) throw NOT_A_JWT;
      const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
      const expiry = isRecord(claims) ? claims['exp'] : undefined;
      if (typeof expiry === 'number') return expiry * 1000;
      throw NOT_A_JWT;
    } catch {
      throw this.#failure(NOT_A_JWT);
    }
  }

  async #renewOrKeep(): Promise<string> {
    const { clock, log } = this.#options;
    try {
      return await this.#renew();
    } catch (error) {
      const { idToken } = this.#tokens;
      if (idToken === undefined || clock.now() >= this.#expiryOf(idToken)) throw error;
      log.error(error, 'Failed to renew the ID token, using it until it expires');
      return idToken;
    }
  }

  async #renew(): Promise<string> {
    const { source, clock, log } = this.#options;
    const { readTokens } = await import('./oidc-store.ts');
    const stored = source.store && (await readTokens(source.store));
    if (stored && !isDeepStrictEqual(stored, this.#stored)) {
      // Another program has renewed them, so that the refresh token that is known here may be invalid.
      this.#tokens = stored;
      this.#stored = stored;
      if (stored.idToken !== undefined && this.#isValid(stored.idToken)) return stored.idToken;
    }
    const { refreshToken } = this.#tokens;
    if (refreshToken === undefined) {
      throw this.#failure(new Error('the id-token has expired, and there is no refresh-token'));
    }
    try {
      this.#tokens = await withinTimeout({ clock, timeoutMs: RENEW_TIMEOUT_MS }, (signal) =>
        this.#refresh(refreshToken, signal),
      );
    } catch (error) {
      throw this.#failure(error);
    }
    log.info('Renewed the ID token', { issuer: originOf(source.issuer) });
    await this.#store();
    return this.#tokens.idToken ?? '';
  }

  async #store(): Promise<void> {
    const { source, log } = this.#options;
    if (!source.store) return;
    const { storeTokens } = await import('./oidc-store.ts');
    try {
      await storeTokens(source.store, this.#tokens);
      this.#stored = this.#tokens;
    } catch (error) {
      log.error(error, 'Failed to store the tokens, using them until the program ends', {
        file: source.store.file,
      });
    }
  }

  /** Runs client-node's provider with our client, because its own cannot renew a token: see decision 0001. */
  async #refresh(refreshToken: string, signal: AbortSignal): Promise<OidcTokens> {
    const { source, clock } = this.#options;
    const { ca } = await this.#ca.material();
    const { OpenIDConnectAuth } = await import('./client-node.ts');
    const { OidcClient } = await import('./oidc-client.ts');
    const client = new OidcClient({ source, ca, clock, signal });
    // It renews what is no JWT.
    const config = {
      'id-token': 'expired',
      'refresh-token': refreshToken,
      'client-id': source.clientId,
      'idp-issuer-url': source.issuer,
    };
    const headers: Record<string, string> = {};
    try {
      await new OpenIDConnectAuth().applyAuthentication(
        { name: '', authProvider: { name: 'oidc', config } },
        { headers },
        client,
      );
    } finally {
      await client.close();
    }
    return { idToken: config['id-token'], refreshToken: config['refresh-token'] };
  }

  #failure(cause: unknown): Error {
    const issuer = originOf(this.#options.source.issuer);
    return credentialError(
      `The OpenID Connect provider ${issuer} cannot be used`,
      cause,
      'Log in again, or check auth-provider in the kubeconfig.',
    );
  }
}

const NOT_A_JWT = new Error('the id-token is not a JWT with an expiry');

/** Returns the address for messages: without path, user and password. */
function originOf(issuer: string): string {
  return URL.parse(issuer)?.origin ?? '(malformed URL)';
}
