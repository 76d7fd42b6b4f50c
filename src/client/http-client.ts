import { isApiError } from '../api/api-error.ts';
import type { ObjectName } from '../api/object-key.ts';
import { labelSelectorText } from '../api/label-selector.ts';
import type { ChangedObject, KubernetesObject, NewObject, ObjectList } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import { collectionPath, groupResourceOf, objectPath } from '../api/resource.ts';
import { systemClock } from '../util/clock.ts';
import type { Clock } from '../util/clock.ts';
import type { CallTrace, HttpHandler, HttpRequest } from '../util/http.ts';
import { parseResponse } from './response.ts';
import type {
  Client,
  DeleteOptions,
  GetOptions,
  ListOptions,
  Patch,
  RawRequest,
  WatchOptions,
  WatchStream,
  WriteOptions,
} from './client.ts';
import { Decoder } from './decoder.ts';
import type { DecoderOptions, Expected } from './decoder.ts';
import type { ExecutedCall, RequestExecutorOptions } from './request-executor.ts';
import type { ServerReachability } from './server-reachability.ts';
import { RequestExecutor } from './request-executor.ts';
import { encodeJson, malformed, parseJson } from './json.ts';
import { isRecord } from '../util/values.ts';
import { watchStream } from './watch-stream.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const HTTP_CLIENT_OPTIONS: OptionNames<HttpClientOptions> = {
  handler: true,
  server: true,
  credentials: true,
  replaceTarget: true,
  userAgent: true,
  requestTimeoutMs: true,
  qps: true,
  burst: true,
  onWarning: true,
  clock: true,
  log: true,
  metrics: true,
  reachability: true,
  keepManagedFields: true,
  maxLineBytes: true,
  namespace: true,
};

/** Options of {@link HttpClient}. */
export interface HttpClientOptions extends RequestExecutorOptions, DecoderOptions {
  /** Maximum size of a watch event in bytes, as in `WatchStreamOptions`. */
  readonly maxLineBytes?: number | undefined;
  /**
   * Namespace of the program, in which the Lease of its leader election is by default.
   * @default unknown
   */
  readonly namespace?: string | undefined;
}

/** Options of `HttpClient.withOptions`. */
export interface SharedClientOptions extends Pick<
  HttpClientOptions,
  'userAgent' | 'requestTimeoutMs' | 'qps' | 'burst'
> {
  /**
   * Wraps the transport, for example with a write fence.
   * @default the transport itself
   */
  readonly wrapTransport?: ((handler: HttpHandler) => HttpHandler) | undefined;
}

const JSON_TYPE = 'application/json';

/** Headers that requests share, so that those behind the client are built once. */
const READ_HEADERS = { accept: JSON_TYPE };
const WRITE_HEADERS = { accept: JSON_TYPE, 'content-type': JSON_TYPE };
const PATCH_HEADERS: Readonly<Record<Patch['type'], typeof WRITE_HEADERS>> = {
  merge: { accept: JSON_TYPE, 'content-type': 'application/merge-patch+json' },
  json: { accept: JSON_TYPE, 'content-type': 'application/json-patch+json' },
  strategic: { accept: JSON_TYPE, 'content-type': 'application/strategic-merge-patch+json' },
  // The body is JSON, which is valid YAML.
  apply: { accept: JSON_TYPE, 'content-type': 'application/apply-patch+yaml' },
};

type UpdateOptions = WriteOptions & { readonly subresource?: string | undefined };

/**
 * A {@link Client} that sends HTTP requests through an `HttpHandler`: a transport, or a server in the same process.
 * Requests uncompressed responses, which cost less than gzip on the network of a cluster.
 */
export class HttpClient implements Client {
  /** Namespace of the program; undefined if it is unknown. */
  readonly namespace: string | undefined;
  /** User-Agent header of its requests; undefined for the default. */
  readonly userAgent: string | undefined;
  readonly reachability: ServerReachability;
  readonly #options: HttpClientOptions;
  readonly #executor: RequestExecutor;
  readonly #decoder: Decoder;
  readonly #clock: Clock;
  readonly #maxLineBytes: number | undefined;
  /** Whether lists and watches ask for objects without managedFields. */
  #dropsManagedFields: boolean;

  constructor(options: HttpClientOptions) {
    checkOptions(options, HTTP_CLIENT_OPTIONS, 'HttpClient');
    this.namespace = options.namespace;
    this.userAgent = options.userAgent;
    this.#options = options;
    this.#executor = new RequestExecutor(options);
    this.reachability = this.#executor.reachability;
    this.#decoder = new Decoder(options);
    this.#clock = options.clock ?? systemClock;
    this.#maxLineBytes = options.maxLineBytes;
    this.#dropsManagedFields = !options.keepManagedFields;
  }

  /**
   * Returns a client with other options that shares connections and credentials with this one. Closing the connection
   * closes both.
   */
  withOptions(options: SharedClientOptions): HttpClient {
    const { wrapTransport = (handler) => handler, ...changes } = options;
    const { handler, replaceTarget, ...rest } = this.#options;
    // A target with the same handler is the same target, so each handler is wrapped once.
    const wrapped = new WeakMap<HttpHandler, HttpHandler>();
    const wrap = (inner: HttpHandler): HttpHandler => {
      const outer = wrapped.get(inner) ?? wrapTransport(inner);
      wrapped.set(inner, outer);
      return outer;
    };
    return new HttpClient({
      ...rest,
      ...changes,
      reachability: this.reachability,
      handler: wrap(handler),
      replaceTarget:
        replaceTarget &&
        (async () => {
          const target = await replaceTarget();
          return target && { ...target, handler: wrap(target.handler) };
        }),
    });
  }

  async get<T extends KubernetesObject>(
    resource: Resource<T>,
    at: ObjectName,
    options: GetOptions = {},
  ): Promise<T> {
    const { signal, trace, resourceVersion } = options;
    const path = withQuery(pathOf(resource, at), { resourceVersion });
    return this.#object(resource, { method: 'GET', path, signal, trace });
  }

  async list<T extends KubernetesObject>(
    resource: Resource<T>,
    options: ListOptions = {},
  ): Promise<ObjectList<T>> {
    const { signal, trace, namespace, labelSelector, metadataOnly, ...rest } = options;
    const { continueToken, limit, ...query } = rest;
    if (namespace) requireNamespace(resource, namespace);
    const path = withQuery(collectionPath(resource, namespace), {
      labelSelector: labelSelectorText(labelSelector),
      ...query,
      limit: limit || undefined,
      continue: continueToken,
    });
    const form = metadataOnly ? 'PartialObjectMetadataList' : undefined;
    const { call, response, body } = await this.#negotiate(form, async (accept) => {
      const call = httpCall({ method: 'GET', path, accept, signal, trace });
      return { call, ...(await this.#executor.send(call)) };
    });
    return parseResponse(response, body, this.#executor.describe(call), (bytes, what) =>
      this.#decoder.list(bytes, what, { resource, metadataOnly }),
    );
  }

  async watch<T extends KubernetesObject>(
    resource: Resource<T>,
    options: WatchOptions = {},
  ): Promise<WatchStream<T>> {
    const { signal, trace, namespace, labelSelector, metadataOnly, ...query } = options;
    if (namespace) requireNamespace(resource, namespace);
    const path = withQuery(collectionPath(resource, namespace), {
      watch: true,
      labelSelector: labelSelectorText(labelSelector),
      ...query,
    });
    const form = metadataOnly ? 'PartialObjectMetadata' : undefined;
    const { call, body, activity } = await this.#negotiate(form, async (accept) => {
      const call = {
        ...httpCall({ method: 'GET', path, accept, signal, trace }),
        longRunning: true,
      };
      const { body, activity } = await this.#executor.open(call);
      return { call, body, activity };
    });
    const expected: Expected<T> = { resource, metadataOnly };
    return watchStream({
      ...expected,
      body,
      activity,
      signal,
      decoder: this.#decoder,
      clock: this.#clock,
      call: this.#executor.describe(call),
      maxLineBytes: this.#maxLineBytes,
    });
  }

  async create<T extends KubernetesObject>(
    resource: Resource<T>,
    object: NewObject<T>,
    options: WriteOptions = {},
  ): Promise<T> {
    requireNamespace(resource, object.metadata.namespace);
    const path = withQuery(
      collectionPath(resource, object.metadata.namespace),
      writeQuery(options),
    );
    const { signal, trace } = options;
    return this.#object(resource, { method: 'POST', path, body: object, signal, trace });
  }

  async update<T extends KubernetesObject>(
    resource: Resource<T>,
    object: ChangedObject<T>,
    options: UpdateOptions = {},
  ): Promise<T> {
    const at = pathOf(resource, object.metadata, options.subresource);
    const path = withQuery(at, writeQuery(options));
    const { signal, trace } = options;
    return this.#object(resource, { method: 'PUT', path, body: object, signal, trace });
  }

  async patch<T extends KubernetesObject>(
    resource: Resource<T>,
    at: ObjectName,
    patch: Patch<NoInfer<T>>,
    options: UpdateOptions = {},
  ): Promise<T> {
    if (!Object.hasOwn(PATCH_HEADERS, patch.type)) {
      throw new TypeError(`patch: unknown type; expected ${Object.keys(PATCH_HEADERS).join(', ')}`);
    }
    if (patch.type === 'apply' && !options.fieldManager) {
      throw new TypeError('patch: fieldManager is required for apply; expected a name, got none');
    }
    const path = withQuery(pathOf(resource, at, options.subresource), {
      ...writeQuery(options),
      force: (patch.type === 'apply' && patch.force) || undefined,
    });
    return this.#object(resource, {
      method: 'PATCH',
      path,
      body: patch.body,
      headers: PATCH_HEADERS[patch.type],
      signal: options.signal,
      trace: options.trace,
    });
  }

  async delete(resource: Resource, at: ObjectName, options: DeleteOptions = {}): Promise<void> {
    const { signal, trace, uid, resourceVersion, dryRun, ...rest } = options;
    const preconditions =
      uid === undefined && resourceVersion === undefined ? undefined : { uid, resourceVersion };
    const response = await this.#json({
      method: 'DELETE',
      path: pathOf(resource, at),
      body: {
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        preconditions,
        ...(dryRun && { dryRun: ['All'] }),
        ...rest,
      },
      signal,
      trace,
    });
    // An API server responds with the object or a Status.
    if (!isRecord(response) || typeof response['kind'] !== 'string') {
      throw malformed(
        `The response to the deletion of ${groupResourceOf(resource)} is not a Kubernetes object`,
      );
    }
  }

  async raw(request: RawRequest): Promise<unknown> {
    const { method = 'GET', path, accept, body, signal, trace } = request;
    return this.#json({ method, path, accept, body, signal, trace });
  }

  /** Sends a request whose response is text, such as a Pod's log or `/metrics`. */
  async text(request: RawRequest): Promise<string> {
    const { method = 'GET', path, accept = '*/*', body, signal } = request;
    const response = await this.#executor.send(httpCall({ method, path, accept, body, signal }));
    return response.body.toString('utf8');
  }

  async #object<T extends KubernetesObject>(resource: Resource<T>, json: JsonCall): Promise<T> {
    const call = httpCall(json);
    const { response, body } = await this.#executor.send(call);
    return parseResponse(response, body, this.#executor.describe(call), (bytes, what) =>
      this.#decoder.response(bytes, what, { resource }),
    );
  }

  /**
   * Requests objects without managedFields (KEP-5958). Kubernetes before 1.37 ignores the parameter. If a
   * server rejects it, it is not sent again.
   */
  async #negotiate<R>(
    form: MetadataForm | undefined,
    send: (accept: string) => Promise<R>,
  ): Promise<R> {
    if (!this.#dropsManagedFields) return send(acceptHeader(form, ''));
    try {
      return await send(acceptHeader(form, DROP_MANAGED_FIELDS));
    } catch (error) {
      if (!isApiError(error, 'notAcceptable')) throw error;
      const result = await send(acceptHeader(form, ''));
      this.#dropsManagedFields = false;
      return result;
    }
  }

  async #json(json: JsonCall): Promise<unknown> {
    const call = httpCall(json);
    const { response, body } = await this.#executor.send(call);
    return parseResponse(response, body, this.#executor.describe(call), parseJson);
  }
}

interface JsonCall {
  readonly method: HttpRequest['method'];
  readonly path: string;
  readonly accept?: string | undefined;
  /** @default by `accept` and whether there is a body */
  readonly headers?: HttpRequest['headers'];
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  readonly trace?: CallTrace | undefined;
}

function httpCall(json: JsonCall): ExecutedCall {
  const { method, path, accept = JSON_TYPE, headers, body, signal, trace } = json;
  const shared = headers ?? (body === undefined ? READ_HEADERS : WRITE_HEADERS);
  return {
    method,
    path,
    headers: accept === JSON_TYPE ? shared : { ...shared, accept },
    body: body === undefined ? undefined : encodeJson(body),
    signal,
    trace,
  };
}

type MetadataForm = 'PartialObjectMetadata' | 'PartialObjectMetadataList';

const DROP_MANAGED_FIELDS = ';drop=metadata.managedFields';

/** Returns the accepted media types. Servers that cannot send metadata alone send complete objects. */
function acceptHeader(form: MetadataForm | undefined, parameter: string): string {
  const complete = `${JSON_TYPE}${parameter}`;
  return form ? `${JSON_TYPE};as=${form};g=meta.k8s.io;v=v1${parameter},${complete}` : complete;
}

function writeQuery({ fieldManager, dryRun, fieldValidation }: WriteOptions): Query {
  return { fieldManager, dryRun: dryRun ? 'All' : undefined, fieldValidation };
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

function withQuery(path: string, query: Query): string {
  let text = path;
  let sign = '?';
  for (const name of Object.keys(query)) {
    const value = query[name];
    if (value === undefined || value === '') continue;
    text += `${sign}${name}=${encodeQueryValue(String(value))}`;
    sign = '&';
  }
  return text;
}

/** Encodes a value as URLSearchParams does, which takes ten times as long for values that need no encoding. */
function encodeQueryValue(value: string): string {
  return /^[\w.-]*$/.test(value) ? value : new URLSearchParams({ '': value }).toString().slice(1);
}

/** @throws {TypeError} if the name or namespace is empty or malformed */
function pathOf(resource: Resource, at: ObjectName, subresource?: string): string {
  requireNamespace(resource, at.namespace);
  requireSegment(resource, 'name', at.name);
  return objectPath(resource, at, subresource);
}

function requireNamespace(resource: Resource, namespace: string | undefined): void {
  if (resource.namespaced) requireSegment(resource, 'namespace', namespace);
}

/**
 * Requires a value that is one segment of a path. An empty name would address the whole collection, and a name
 * with a slash another resource.
 */
function requireSegment(resource: Resource, field: string, value: string | undefined): void {
  if (value === undefined || !/^(?!\.\.?$)[^/%]+$/.test(value)) {
    throw new TypeError(
      `${groupResourceOf(resource)}: expected the ${field} of one object, got ${JSON.stringify(value)}`,
    );
  }
}
