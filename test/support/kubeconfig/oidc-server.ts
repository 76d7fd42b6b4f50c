import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { CertificateAuthority } from '../../../src/util/x509.ts';
import { createCertificateAuthority } from '../../../src/util/x509.ts';

/** Returns a JWT that expires at a time in seconds since the Unix epoch. Its signature is invalid. */
export function jwt(exp: number, name = 'jane'): string {
  const parts = [{ alg: 'RS256' }, { iss: 'https://x', sub: name, exp }, 'signature'];
  return parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
}

/** An OpenID Connect provider that rotates refresh tokens: each is valid once. */
export class OidcServer {
  readonly authority: CertificateAuthority;
  /** The requests, without tokens that differ in each run. */
  readonly requests: string[] = [];
  /** Where the client must authenticate. */
  authentication: 'basic' | 'body' = 'basic';
  /** Expiry of the next ID tokens, in seconds since the Unix epoch. */
  expiresAt = 4_000_000_000;
  /** Fields of the responses of the token endpoint, instead of tokens. */
  answer: object | undefined;
  /** Path of the token endpoint, or another address. */
  tokenEndpoint = '/token';
  /** Where the discovery of the issuer `/old` leads. */
  redirect = '/.well-known/openid-configuration';
  refreshToken = 'refresh-0';
  #count = 0;
  readonly #server: Server;

  private constructor(authority: CertificateAuthority, server: Server) {
    this.authority = authority;
    this.#server = server;
    server.on('request', (request, response) => void this.#respond(request, response));
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const { method, url = '', headers } = request;
    const form = new URLSearchParams(await text(request));
    const pair = Buffer.from(headers.authorization?.slice('Basic '.length) ?? '', 'base64');
    const fields = [...form].map(([name, value]) => `${name}=${value}`).toSorted();
    const authorized = pair.length > 0 ? [`basic ${pair.toString()}`] : [];
    this.requests.push([`${method} ${url}`, ...authorized, ...fields].join(' '));
    const respond = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    if (url === '/old/.well-known/openid-configuration') {
      response.writeHead(302, { location: this.redirect });
      return response.end();
    }
    if (url.endsWith('/.well-known/openid-configuration')) {
      const endpoint = new URL(this.tokenEndpoint, this.url).href;
      return respond(200, { issuer: this.url, token_endpoint: endpoint });
    }
    const isClient =
      this.authentication === 'basic'
        ? String(pair) === 'client:s%26cret'
        : form.get('client_id') === 'client' && form.get('client_secret') === 's&cret';
    if (!isClient) return respond(401, { error: 'invalid_client' });
    if (this.answer) return respond(200, this.answer);
    if (form.get('refresh_token') !== this.refreshToken) {
      return respond(400, {
        error: 'invalid_grant',
        error_description: form.get('refresh_token'),
      });
    }
    this.refreshToken = `refresh-${++this.#count}`;
    return respond(200, {
      access_token: 'access',
      token_type: 'Bearer',
      id_token: jwt(this.expiresAt, String(this.#count)),
      refresh_token: this.refreshToken,
    });
  }

  static async start(): Promise<OidcServer> {
    const authority = await createCertificateAuthority({ commonName: 'provider' });
    const { certificatePem: cert, privateKeyPem: key } = await authority.issue({
      commonName: 'provider',
      usages: 'server',
      ipAddresses: ['127.0.0.1'],
    });
    const server = createServer({ cert, key });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new OidcServer(authority, server);
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Returns the `auth-provider` of a user in a kubeconfig. */
  provider(config: Readonly<Record<string, string>> = {}): string {
    const { certificatePem } = this.authority;
    const all = {
      'idp-issuer-url': this.url,
      'client-id': 'client',
      'client-secret': 's&cret',
      'idp-certificate-authority-data': Buffer.from(certificatePem).toString('base64'),
      ...config,
    };
    return `auth-provider: {name: oidc, config: ${JSON.stringify(all).replace('$URL', this.url)}}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
