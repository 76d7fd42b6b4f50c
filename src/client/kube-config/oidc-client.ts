import type { Clock } from '../../util/clock.ts';
import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import { isRecord } from '../../util/values.ts';
import type { Transport } from '../transport/transport.ts';
import { http1Transport } from '../transport/transport.ts';
import type { OidcSource } from './cluster-config.ts';
import { isLoopbackHost, proxyFor } from './proxy-environment.ts';

/** Options of `OidcClient`. */
export interface OidcClientOptions {
  readonly source: OidcSource;
  /** PEM of the trusted CAs. */
  readonly ca: string | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** The result of a refresh, with the names that client-node expects. */
export interface RefreshedTokens {
  readonly id_token: string;
  readonly refresh_token: string;
  /** Expiry in seconds since the Unix epoch; unused, because the token itself contains it. */
  readonly expires_at: number;
}

const MAX_BODY_BYTES = 1024 * 1024;
const MAX_REDIRECTS = 10;

/**
 * The requests of one renewal: discovery (OpenID Connect Discovery 1.0, section 4) and a refresh token grant (RFC 6749,
 * section 6). As in client-go, the client authenticates by HTTP Basic, and then by the body.
 */
export class OidcClient {
  readonly #options: OidcClientOptions;
  readonly #transports = new Map<string, Transport>();

  constructor(options: OidcClientOptions) {
    this.#options = options;
  }

  /** @throws {Error} without the tokens and the secret */
  async refresh(refreshToken: string): Promise<RefreshedTokens> {
    const endpoint = await this.#tokenEndpoint();
    const { clientId, clientSecret = '' } = this.#options.source;
    const grant = { grant_type: 'refresh_token', refresh_token: refreshToken };
    const pair = [clientId, clientSecret].map(formEncode).join(':');
    const basic = { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
    const secret = clientSecret === '' ? {} : { client_secret: clientSecret };
    let { status, fields } = await this.#post(endpoint, grant, basic);
    // This error means that the provider accepted the client.
    if (status !== 200 && fields['error'] !== 'invalid_grant') {
      const body = { ...grant, client_id: clientId, ...secret };
      ({ status, fields } = await this.#post(endpoint, body, {}));
    }
    if (status !== 200) {
      const { error } = fields;
      const code = typeof error === 'string' && /^[\w.-]{1,60}$/.test(error) ? `: ${error}` : '';
      throw new Error(`the token endpoint responded with ${status}${code}`);
    }
    const { id_token: idToken, refresh_token: next } = fields;
    if (typeof idToken !== 'string' || idToken === '') {
      throw new Error('the token endpoint returned no id_token');
    }
    return {
      id_token: idToken,
      refresh_token: typeof next === 'string' && next !== '' ? next : refreshToken,
      expires_at: 0,
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#transports.values()].map((transport) => transport.close()));
  }

  async #tokenEndpoint(): Promise<URL> {
    const { issuer } = this.#options.source;
    let url = secureUrl(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      const { status, headers, fields } = await this.#send(url, { method: 'GET', headers: {} });
      const { location } = headers;
      if (status >= 300 && status < 400 && location !== undefined) {
        url = secureUrl(new URL(location, url).href);
        continue;
      }
      if (status !== 200) throw new Error(`discovery responded with ${status}`);
      const { token_endpoint: endpoint } = fields;
      if (typeof endpoint === 'string' && endpoint !== '') return secureUrl(endpoint);
      throw new Error('discovery returned no token_endpoint');
    }
    throw new Error('discovery redirected too often');
  }

  #post(
    endpoint: URL,
    form: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>>,
  ): Promise<Answer> {
    return this.#send(endpoint, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(form).toString(),
    });
  }

  async #send(url: URL, request: Omit<HttpRequest, 'path'>): Promise<Answer> {
    const path = url.pathname + url.search;
    const { signal } = this.#options;
    const headers = { accept: 'application/json', ...request.headers };
    const response = await this.#transportTo(url).handle({ ...request, path, headers, signal });
    const body = await jsonOf(response);
    const fields = isRecord(body) ? body : {};
    return { status: response.status, headers: response.headers, fields };
  }

  #transportTo({ origin }: URL): Transport {
    const known = this.#transports.get(origin);
    if (known) return known;
    const { source, ca, clock } = this.#options;
    const transport = http1Transport({
      server: origin,
      tls: () => (ca === undefined ? {} : { ca }),
      proxyUrl: proxyFor(new URL(origin), source.environment),
      clock,
    });
    this.#transports.set(origin, transport);
    return transport;
  }
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The body; empty if it is no JSON object. */
  readonly fields: Readonly<Record<string, unknown>>;
}

async function jsonOf({ body }: HttpResponse): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) throw new Error(`the response exceeds ${MAX_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Tokens and secrets are sent over TLS, or to this machine. */
function secureUrl(text: string): URL {
  const url = URL.parse(text);
  const isSecure = url?.protocol === 'https:';
  const isLocal = url?.protocol === 'http:' && isLoopbackHost(url.hostname);
  if (url && (isSecure || isLocal)) return url;
  throw new Error('an address of it does not start with https://, so that tokens would be exposed');
}

/** Encodes a value of Basic authentication (RFC 6749, section 2.3.1). */
function formEncode(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1);
}
