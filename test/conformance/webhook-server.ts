import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createCertificateAuthority } from '../../src/util/x509.ts';
import type { Json } from './api.ts';

/** Answers the `request` of a review with its `response`, without the uid, or with a status code. */
export type Answer = (request: Json) => Json;

/** An HTTPS server with webhooks that a test defines. */
export class WebhookServer {
  readonly #server: Server;
  readonly #caBundle: string;
  readonly #answers = new Map<string, Answer>();

  private constructor(server: Server, caBundle: string) {
    this.#server = server;
    this.#caBundle = caBundle;
  }

  /** @param dnsNames names besides `localhost` for which its certificate is valid */
  static async start(dnsNames: readonly string[] = []): Promise<WebhookServer> {
    const authority = await createCertificateAuthority({ commonName: 'webhooks' });
    const { certificatePem: cert, privateKeyPem: key } = await authority.issue({
      commonName: 'webhooks',
      dnsNames: ['localhost', ...dnsNames],
      ipAddresses: ['127.0.0.1'],
      usages: 'server',
    });
    const server = createServer({ cert, key });
    const caBundle = Buffer.from(authority.certificatePem).toString('base64');
    const webhooks = new WebhookServer(server, caBundle);
    server.on('request', (incoming, outgoing) => void webhooks.#serve(incoming, outgoing));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return webhooks;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Serves a webhook at a path and returns its `clientConfig`. */
  serve(path: string, answer: Answer): Json {
    this.#answers.set(path, answer);
    return { url: `https://127.0.0.1:${this.port}${path}`, caBundle: this.#caBundle };
  }

  /** The `clientConfig` of a Service that leads to this server. */
  service(namespace: string, name: string, path: string, answer: Answer): Json {
    const { caBundle } = this.serve(path, answer);
    return { service: { namespace, name, path, port: this.port }, caBundle };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of incoming as AsyncIterable<Buffer>) text += chunk.toString();
    const [path = ''] = (incoming.url ?? '').split('?');
    const answer = this.#answers.get(path);
    if (!answer) {
      outgoing.writeHead(404).end();
      return;
    }
    const { request, ...review }: Json = JSON.parse(text);
    const answered = await answer(request);
    if (typeof answered === 'number') {
      outgoing.writeHead(answered).end();
      return;
    }
    const response = { uid: request.uid, ...answered };
    outgoing.writeHead(200, { 'content-type': 'application/json' });
    outgoing.end(JSON.stringify({ ...review, response }));
  }
}

/** A patch in the response of a mutating webhook. */
export function patchOf(operations: Json): Json {
  const patch = Buffer.from(JSON.stringify(operations)).toString('base64');
  return { allowed: true, patchType: 'JSONPatch', patch };
}
