import { WebhookCallError } from '../objects/webhook-call.ts';
import type { WebhookCall, WebhookCaller, WebhookFunction } from '../objects/webhook-call.ts';
import type { RequestOptions } from 'node:https';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import { nodeHttps } from '../../util/node-http.ts';
import { rejectOnAbort } from '../../util/abort.ts';
import type { Clock } from '../../util/clock.ts';
import { goQuote } from '../../util/go-quote.ts';
import { REJECTED_CERTIFICATES } from '../../util/certificate-errors.ts';
import { serverTrust } from '../../util/server-trust.ts';
import { isRecord, messageOf } from '../../util/values.ts';
import { TimeoutError, withinTimeout } from '../../util/within-timeout.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { numberIn, objectIn, requireShallow, textIn } from '../../util/json-value.ts';

export interface WebhookClientDeps {
  readonly store: ObjectStore;
  readonly clock: Clock;
  /**
   * Webhooks in this process by the URL under which they are configured. The URL of a Service is
   * `https://NAME.NAMESPACE.svc/PATH`.
   */
  readonly functions: Readonly<Record<string, WebhookFunction>>;
}

/** Maximum size of a response in bytes. */
const MAX_RESPONSE_BYTES = 32 * 1024 ** 2;
const HTTPS_PORT = 443;

/** Calls webhooks over HTTPS or in this process. */
export class WebhookClient implements WebhookCaller {
  readonly #deps: WebhookClientDeps;
  readonly #functions = new Map<string, WebhookFunction>();
  /** Idle connections do not keep the process alive. */
  readonly #agent = new (nodeHttps().Agent)({ keepAlive: true, maxFreeSockets: 4 });

  constructor(deps: WebhookClientDeps) {
    this.#deps = deps;
    this.register(deps.functions);
  }

  /** Adds functions by URL, or replaces them. */
  register(functions: WebhookClientDeps['functions']): void {
    for (const [url, run] of Object.entries(functions)) {
      this.#functions.set(new URL(url).href, run);
    }
  }

  /**
   * Returns the review that the webhook answers.
   *
   * @throws {WebhookCallError} if there is no such answer within the timeout
   */
  async call(call: WebhookCall): Promise<JsonObject> {
    const { clock } = this.#deps;
    const { client, review, request, timeoutMs, signal } = call;
    const url = urlOf(client);
    const run = this.#functions.get(url.href);
    // As upstream, the URL of a Service has its port, and a default port of a URL is left out.
    const origin = objectIn(client, 'service')
      ? `https://${url.hostname}:${url.port || HTTPS_PORT}`
      : url.origin;
    const target = `${origin}${cleanPath(url.pathname)}?timeout=${Math.ceil(timeoutMs / 1000)}s`;
    try {
      return await withinTimeout({ clock, timeoutMs, signal }, async (limit) => {
        if (!run) return this.#post(client, url, target, { ...review, request }, limit);
        const response = await rejectOnAbort(Promise.resolve(run(request)), limit);
        return { ...review, response: { uid: request.uid, ...encodeResponse(response) } };
      });
    } catch (error) {
      if (error instanceof WebhookCallError || signal?.aborted) throw error;
      throw new WebhookCallError(`Post ${goQuote(target)}: ${goReason(error, url)}`);
    }
  }

  /** Closes idle connections. */
  close(): void {
    this.#agent.destroy();
  }

  async #post(
    client: JsonObject,
    url: URL,
    target: string,
    body: object,
    signal: AbortSignal,
  ): Promise<JsonObject> {
    const service = objectIn(client, 'service');
    const caBundle = textIn(client, 'caBundle');
    const { search, pathname } = new URL(target);
    const options: RequestOptions = {
      ...(service ? this.#resolve(service, url) : hostAndPort(url)),
      ...(!isAddress(url) && { servername: url.hostname }),
      ...serverTrust(caBundle ? Buffer.from(caBundle, 'base64').toString() : undefined),
      path: pathname + search,
      method: 'POST',
      headers: { host: url.host, accept: 'application/json', 'content-type': 'application/json' },
      agent: this.#agent,
      signal,
    };
    const outgoing = nodeHttps().request(options);
    outgoing.end(JSON.stringify(body));
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    const text = await textOf(incoming);
    const { statusCode = 0 } = incoming;
    if (statusCode < 200 || statusCode > 299)
      throw new WebhookCallError(failureOf(statusCode, text));
    return parseReview(text);
  }

  /**
   * Returns the address of a Service, as a kube-apiserver without endpoint routing. A Service is in the network of a
   * cluster, which does not exist: behind its address or name in the network of this machine is another server.
   */
  #resolve(service: JsonObject, url: URL): Pick<RequestOptions, 'host' | 'port'> {
    const [namespace, name] = [textIn(service, 'namespace'), textIn(service, 'name')];
    const port = numberIn(service, 'port') ?? HTTPS_PORT;
    const services = this.#deps.store.collection({ group: '', plural: 'services' });
    const spec = objectIn(services.get(namespace, name), 'spec');
    if (!spec) throw new Error(`service ${goQuote(name)} not found`);
    const host = textIn(spec, spec['type'] === 'ExternalName' ? 'externalName' : 'clusterIP');
    if (!LOOPBACK.test(host)) throw withoutNetwork(url);
    return { host, port };
  }
}

/** Names and addresses of this machine. */
const LOOPBACK = /^(localhost\.?|127\.\d+\.\d+\.\d+|::1)$/;

/** Host names of Services. */
const SERVICE_HOST = /\.svc(\.cluster\.local)?\.?$/;

/** @throws {Error} if the host is that of a Service */
function hostAndPort(url: URL): Pick<RequestOptions, 'host' | 'port'> {
  if (SERVICE_HOST.test(url.hostname)) throw withoutNetwork(url);
  return { host: hostOf(url), port: url.port || HTTPS_PORT };
}

function withoutNetwork({ hostname, pathname }: URL): Error {
  return new Error(
    `the embedded API server has no network with ${hostname}: run the program in the process of the server (npm start in its project), or set clientConfig.url to its address on this machine, such as https://localhost:9443${pathname}`,
  );
}

function urlOf(client: JsonObject): URL {
  const service = objectIn(client, 'service');
  if (!service) return new URL(textIn(client, 'url'));
  const port = numberIn(service, 'port') ?? HTTPS_PORT;
  const host = `${textIn(service, 'name')}.${textIn(service, 'namespace')}.svc`;
  return new URL(`https://${host}:${port}/${textIn(service, 'path').replace(/^\//, '')}`);
}

/** Removes empty parts of a path, as Go's client does: with them, many servers answer with a redirect. */
function cleanPath(path: string): string {
  return `/${path.split('/').filter(Boolean).join('/')}`;
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** TLS names no server if the URL has an address. */
function isAddress(url: URL): boolean {
  return /^[\d.]+$|:/.test(hostOf(url));
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_RESPONSE_BYTES) {
      throw new WebhookCallError(`the response is larger than ${MAX_RESPONSE_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parseReview(text: string): JsonObject {
  try {
    const review: unknown = JSON.parse(text);
    requireShallow(review);
    if (isRecord(review)) return review;
  } catch (error) {
    throw new WebhookCallError(messageOf(error));
  }
  throw new WebhookCallError("couldn't get version/kind; json parse error");
}

/** Returns the message of a response without success, which may be a Status. */
function failureOf(statusCode: number, text: string): string {
  const generic = GENERIC.get(statusCode);
  if (generic !== undefined) return generic;
  return `an error on the server (${goQuote(text.trim() || 'unknown')}) has prevented the request from succeeding`;
}

const GENERIC: ReadonlyMap<number, string> = new Map([
  [400, 'the server rejected our request for an unknown reason'],
  [401, 'the server has asked for the client to provide credentials'],
  [404, 'the server could not find the requested resource'],
  [405, 'the server does not allow this method on the requested resource'],
  [409, 'the server reported a conflict'],
  [422, 'the server rejected our request due to an error in our request'],
  [429, 'the server has received too many requests and has asked us to try again later'],
  [503, 'the server is currently unable to handle the request'],
  [
    504,
    'the server was unable to return a response in the time allotted, but may still be processing the request',
  ],
]);

/** Returns the text of a Go client for an error of a connection. */
function goReason(error: unknown, url: URL): string {
  if (error instanceof TimeoutError || (error instanceof Error && error.name === 'AbortError')) {
    return 'context deadline exceeded';
  }
  // One error for each address of a name.
  const failure: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const { code, address = hostOf(url), port = url.port || HTTPS_PORT } = detailsOf(failure);
  const connect = CONNECT_FAILURES.get(code);
  if (connect !== undefined) {
    return `dial tcp ${isIPv6(address) ? `[${address}]` : address}:${port}: connect: ${connect}`;
  }
  const rejected = REJECTED_CERTIFICATES.get(code);
  if (rejected !== undefined) return `tls: failed to verify certificate: ${rejected}`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `tls: failed to verify certificate: ${messageOf(error)}`;
  }
  if (code === 'ENOTFOUND') return `dial tcp: lookup ${hostOf(url)}: no such host`;
  return OTHER_FAILURES.get(code) ?? messageOf(error);
}

function detailsOf(error: unknown): { code: string; address?: string; port?: number } {
  const { code, address, port } = isRecord(error) ? error : {};
  return {
    code: String(code),
    ...(typeof address === 'string' && { address }),
    ...(typeof port === 'number' && { port }),
  };
}

const CONNECT_FAILURES: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'connection refused'],
  ['EHOSTUNREACH', 'no route to host'],
  ['ENETUNREACH', 'network is unreachable'],
  ['ETIMEDOUT', 'connection timed out'],
]);

const OTHER_FAILURES: ReadonlyMap<string, string> = new Map([
  ['ECONNRESET', 'EOF'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'http: server gave HTTP response to HTTPS client'],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', 'http: server gave HTTP response to HTTPS client'],
]);

/** The response of a function, with its patch as in JSON. */
function encodeResponse(response: Readonly<JsonObject>): Readonly<JsonObject> {
  const { patch } = response;
  if (!Array.isArray(patch)) return response;
  const base64 = Buffer.from(JSON.stringify(patch)).toString('base64');
  return { ...response, patch: base64, patchType: 'JSONPatch' };
}
