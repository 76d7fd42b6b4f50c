import type { RequestNotes } from '../request/received-request.ts';
import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import type { Logger } from '../../util/logger.ts';
import { goQuote } from '../../util/go-quote.ts';
import { messageOf } from '../../util/values.ts';
import { LruMap } from '../../util/lru-map.ts';
import { healthMetrics, healthResponse } from './health.ts';
import { parseDuration } from '../../cel/values/time.ts';
import type { User } from '../../api/user.ts';
import { actionOf } from '../auth/access.ts';
import type { Impersonation, ImpersonationMode } from '../auth/impersonation.ts';
import { authorizeImpersonation, impersonatedUser } from '../auth/impersonation.ts';
import type { Action } from '../../api/policy-rule.ts';
import { DEFAULT_AUDIENCES } from '../auth/service-account-tokens.ts';
import { ADMIN, ANONYMOUS } from '../../api/user.ts';
import type { AuditExchange, Auditor } from '../audit/audit.ts';
import type { Backend } from '../operations/call.ts';
import { discover } from '../discovery/discovery.ts';
import type { ClientCertificates } from '../auth/client-certificates.ts';
import type { FaultPlan, Faults } from './faults.ts';
import { ConnectionReset } from './faults.ts';
import { JSON_TYPE, requireMediaType } from '../request/negotiation.ts';
import type { ObservedRbac } from '../auth/observed-rbac.ts';
import { yamlOfRole } from '../auth/observed-rbac.ts';
import { OpenApiDocuments, openApiResponse } from '../discovery/openapi-documents.ts';
import type { OpenStreams } from './open-streams.ts';
import { PROTOBUF_TYPE } from '../protobuf/protobuf-body.ts';
import type { IncomingRequest } from '../request/request-body.ts';
import { withBody } from '../request/request-body.ts';
import type { RequestLog, RequestRecord } from '../audit/request-log.ts';
import type { Registry } from '../objects/registry.ts';
import type { RequestInfo, Target } from '../request/request-info.ts';
import { parseTarget, requestInfo } from '../request/request-info.ts';
import { measureRequest } from './request-metrics.ts';
import {
  compressible,
  compressibleWatch,
  errorResponse,
  indented,
  legible,
  listResponse,
  objectResponse,
} from './response-encoding.ts';
import type { ServedResponse } from './response.ts';
import { emptyResponse, jsonResponse, streamResponse, textResponse } from './response.ts';
import type { RenderedAnswer } from '../operations/router.ts';
import { answerCall } from '../operations/router.ts';
import {
  StatusError,
  accessDenied,
  badRequest,
  faultStatus,
  internalError,
  methodNotAllowed,
  noSuchPath,
  unauthorized,
} from '../objects/status-error.ts';
import type { KubernetesVersion } from '../objects/kubernetes-version.ts';
import { versionInfo } from '../objects/kubernetes-version.ts';
import { protocolToken } from './websocket.ts';

export interface RequestHandlerDeps {
  readonly backend: Backend;
  readonly faults: Faults;
  readonly requests: RequestLog;
  readonly observed: ObservedRbac;
  readonly certificates: ClientCertificates;
  readonly streams: OpenStreams;
  readonly auditor: Auditor | undefined;
  readonly log: Logger;
  /** Version that `/version` shows. */
  readonly kubernetesVersion: KubernetesVersion;
}

/** What a request reports besides its response. */
interface Reports {
  readonly notes: RequestNotes;
  readonly audit: AuditExchange | undefined;
}

/**
 * Handles all requests, from the network and from this process:
 *
 *   fault injection → authentication → authorization → body → document or operation → response
 */
export class RequestHandler {
  readonly #deps: RequestHandlerDeps;
  readonly #healthCounts = new Map<string, number>();
  readonly #openApi: OpenApiDocuments;
  /** The last impersonation mode of each user. */
  readonly #lastModes = new LruMap<string, ImpersonationMode>(10_000);

  constructor(deps: RequestHandlerDeps) {
    this.#deps = deps;
    this.#openApi = new OpenApiDocuments(deps.backend.registry);
  }

  /**
   * Answers a request. Rejects only where a connection would break.
   *
   * @param authenticate whether the request needs the token
   */
  async handle(request: IncomingRequest, authenticate: boolean): Promise<ServedResponse> {
    const { faults, requests, backend } = this.#deps;
    request.signal?.throwIfAborted();
    const target = targetOf(request);
    const record = recordOf(request, target, backend.clock.now());
    requests.add(record);
    const plan = await faults.before(record, request.signal);
    request.signal?.throwIfAborted();
    const response = await this.#serve(request, record, target, authenticate, plan);
    try {
      if (plan?.failure === 'lostResponse') throw new ConnectionReset();
      if (faults.hasAfterHooks) await faults.after(record, response);
    } catch (error) {
      await discard(response);
      throw error;
    }
    record.status = response.status;
    if (record.user !== ANONYMOUS) return response;
    // As upstream, an HTTP/2 connection of an unauthenticated client is closed.
    return { ...response, headers: { ...response.headers, connection: 'close' } };
  }

  async #serve(
    request: IncomingRequest,
    record: RequestRecord,
    target: Target | StatusError,
    authenticate: boolean,
    plan: FaultPlan | undefined,
  ): Promise<ServedResponse> {
    const notes: RequestNotes = { warnings: [], annotations: new Map() };
    const audit = this.#deps.auditor?.start(request, record.info);
    const completed = (response: ServedResponse) => {
      audit?.completed(response.status, notes.annotations);
      return response;
    };
    const failed = (error: StatusError) => {
      audit?.failed(error);
      const response = errorResponse(error, request.headers['accept'], notes.warnings);
      return completed(legible(response, request));
    };
    try {
      if (plan?.failure === 'reset') throw new ConnectionReset();
      if (typeof plan?.failure === 'number') {
        throw faultStatus(plan.failure, plan.retryAfterSeconds);
      }
      if (target instanceof StatusError) throw target;
      if (isVerbAlone(target)) return completed(uninterpretable(request));
      requireTimeout(target, record.info);
      if (request.isHead && !this.#allowsHead(target)) throw methodNotAllowed();
      const user = this.#admit(request, record, authenticate, audit);
      if (!record.info) {
        const document = this.#document(request, target) ?? (await this.#metrics(request, target));
        if (document) return completed(document);
      }
      return await this.#operate(request, user, target, record.info, { notes, audit });
    } catch (error) {
      if (error instanceof StatusError) return failed(error);
      if (error instanceof ConnectionReset || request.signal?.aborted) throw error;
      const { method, path } = record;
      this.#deps.log.error(error, 'Request failed', { method, path });
      audit?.failed(internalError(messageOf(error)));
      return completed(errorResponse(internalError(messageOf(error)), undefined));
    }
  }

  /**
   * Authenticates and authorizes a request. Returns its user.
   *
   * @throws {StatusError} 401 if the token is unknown, 403 if the request is not allowed
   */
  #admit(
    request: IncomingRequest,
    record: RequestRecord,
    authenticate: boolean,
    audit: AuditExchange | undefined,
  ): User {
    const { access } = this.#deps.backend;
    const sender = this.#sender(request, authenticate);
    record.user = sender;
    audit?.received(sender);
    const action = actionOf(request, record.info);
    const impersonation = this.#impersonate(request, sender, action);
    const { user } = impersonation ?? { user: sender };
    record.user = user;
    if (impersonation) audit?.impersonated(impersonation);
    const { allowed, reason } = access.authorize(user, action);
    audit?.authorized(allowed, reason);
    if (allowed) return user;
    throw accessDenied(user, action, reason);
  }

  /**
   * Returns the user who sends a request: the one of the client certificate, or else of the token. Without both,
   * that is the anonymous user. If requests need no authentication, it is the administrator, also with an unknown
   * token.
   *
   * @throws {StatusError} 401 if the token is unknown, or the certificate is not valid and there is no token
   */
  #sender({ headers, clientCertificate }: IncomingRequest, authenticate: boolean): User {
    const { certificates } = this.#deps;
    const certified = clientCertificate && certificates.userOf(clientCertificate);
    if (certified) return certified;
    const [scheme = '', bearer = ''] = (headers['authorization'] ?? '').split(' ');
    const token = scheme.toLowerCase() === 'bearer' ? bearer : (protocolToken(headers) ?? '');
    if (token === '' && clientCertificate) throw unauthorized();
    if (token === '') return authenticate ? ANONYMOUS : ADMIN;
    const result = this.#deps.backend.access.authenticate(token, DEFAULT_AUDIENCES);
    if (typeof result === 'object') return result.user;
    if (authenticate) throw unauthorized();
    return ADMIN;
  }

  /**
   * Returns the user that the sender impersonates, if any.
   *
   * @throws {StatusError} 400 if the headers name no user, 403 if the sender may not do so
   */
  #impersonate(request: HttpRequest, sender: User, action: Action): Impersonation | undefined {
    const wanted = impersonatedUser(request);
    const { access } = this.#deps.backend;
    return wanted && authorizeImpersonation(access, this.#lastModes, sender, wanted, action);
  }

  /** Answers paths of the server itself. */
  #document(request: HttpRequest, target: Target): HttpResponse | undefined {
    const { segments } = target;
    const [first, ...rest] = segments;
    const health = target.endsWithSlash ? undefined : healthResponse(target, this.#healthCounts);
    if (health) return health;
    // As upstream, the method does not matter at the root and at the list of groups.
    const isPlain = first === undefined || (first === 'apis' && rest.length === 0);
    if (request.method !== 'GET' && !isPlain) {
      const isOwn = (first === 'version' && rest.length === 0) || this.#openId(request, target);
      if (!isOwn && !discover(this.#deps.backend.registry, segments, {})) {
        return undefined;
      }
      throw methodNotAllowed();
    }
    const { accept } = request.headers;
    if (first === 'version' && rest.length === 0) {
      requireMediaType(accept, [JSON_TYPE]);
      return indented(jsonResponse(200, versionInfo(this.#deps.kubernetesVersion)));
    }
    if (first === 'observed-rbac' && rest.length === 0) {
      const role = this.#deps.observed.roleOf(target.query.get('user') ?? '');
      return textResponse(200, yamlOfRole(role));
    }
    if (first === undefined) return indented(jsonResponse(200, { paths: this.#paths() }));
    const openId = this.#openId(request, target);
    if (openId) {
      requireMediaType(accept, [openId.headers['content-type'] ?? '']);
      return openId;
    }
    const openApi = target.endsWithSlash
      ? undefined
      : openApiResponse(this.#openApi, request, target);
    if (openApi) return openApi;
    const document = discover(this.#deps.backend.registry, segments, request.headers);
    if (!document) return undefined;
    const { value, encoding, parameters } = document;
    const response = legible(objectResponse(200, value, encoding, [], parameters), request);
    if (parameters === undefined) return response;
    const headers = { ...response.headers, vary: 'Accept', 'cache-control': 'public' };
    return { ...response, headers };
  }

  /** Answers the paths of OpenID Connect discovery. */
  #openId({ headers }: HttpRequest, { segments }: Target): HttpResponse | undefined {
    const path = segments.join('/');
    if (!/^(?:\.well-known|openid)\//.test(path)) return undefined;
    const documents = this.#deps.backend.tokens.discovery(
      headers['host'] ?? 'kubernetes.default.svc',
    );
    const document = Object.hasOwn(documents, path) ? documents[path] : undefined;
    if (!document) return undefined;
    const type = path.endsWith('jwks') ? 'application/jwk-set+json' : JSON_TYPE;
    const response = jsonResponse(200, document, [], type);
    return {
      ...response,
      headers: { ...response.headers, 'cache-control': 'public, max-age=3600' },
    };
  }

  /** A kube-apiserver answers HEAD like GET, except at its own resources and its own discovery. */
  #allowsHead(target: Target): boolean {
    return target.segments[0] !== 'version' && !isOfTheServer(this.#deps.backend.registry, target);
  }

  async #operate(
    incoming: IncomingRequest,
    user: User,
    target: Target,
    info: RequestInfo | undefined,
    { notes, audit }: Reports,
  ): Promise<ServedResponse> {
    const { backend } = this.#deps;
    // Before the resource is looked up, because its definition may change while the body arrives.
    const request = await withBody(incoming);
    audit?.requested(request);
    const answered = info ? measureRequest(backend, request, info) : () => undefined;
    try {
      const isServed = info && target.segments[0] !== '';
      const rendered = isServed && (await answerCall(backend, request, user, info, notes));
      if (!rendered) {
        if (isOfTheServer(backend.registry, target)) {
          throw info?.legacyWatch && request.method !== 'GET' ? methodNotAllowed() : noSuchPath();
        }
        answered(404);
        audit?.completed(404, notes.annotations);
        return textResponse(404, '404 page not found\n');
      }
      const onEnd = () => {
        answered(200);
        audit?.completed(200, notes.annotations);
      };
      if (rendered.answer.kind === 'json') audit?.answered(rendered.answer.value);
      const response = await this.#respond(request, rendered, notes.warnings, onEnd);
      if (rendered.answer.kind === 'watch') audit?.started(response.status);
      else {
        answered(response.status);
        audit?.completed(response.status, notes.annotations);
      }
      return response;
    } catch (error) {
      answered(error instanceof StatusError ? error.status.code : 500);
      throw error;
    }
  }

  /** Answers a scrape, if the server records metrics. */
  async #metrics({ method }: HttpRequest, { segments }: Target): Promise<HttpResponse | undefined> {
    const { metrics } = this.#deps.backend;
    const path = segments.join('/');
    if (!metrics || method !== 'GET') return undefined;
    if (path === 'metrics/slis') return textResponse(200, healthMetrics(this.#healthCounts));
    if (path !== 'metrics') return undefined;
    const { contentType, text } = await metrics.expose();
    const response = textResponse(200, text);
    return { ...response, headers: { ...response.headers, 'content-type': contentType } };
  }

  #respond(
    request: HttpRequest,
    { answer, encoding }: RenderedAnswer,
    warnings: readonly string[],
    onEnd: () => void,
  ): ServedResponse | Promise<ServedResponse> {
    switch (answer.kind) {
      case 'json': {
        const response = objectResponse(answer.code, answer.value, encoding, warnings);
        return compressible(legible(response, request), request);
      }
      case 'list': {
        const response = listResponse(answer.rendering, answer.state, warnings);
        return compressible(legible(response, request), request);
      }
      case 'watch': {
        const response = streamResponse(
          this.#deps.streams.body(answer.watcher, request.signal, onEnd),
          encoding === 'protobuf' ? `${PROTOBUF_TYPE};stream=watch` : JSON_TYPE,
          warnings,
        );
        return {
          ...(answer.isList ? compressibleWatch(response, request) : response),
          messages: encoding === 'protobuf' ? 'frames' : 'lines',
        };
      }
      case 'text':
        return { ...streamResponse(answer.body, 'text/plain'), messages: 'bytes' };
      case 'nothing':
        return emptyResponse();
    }
  }

  #paths(): string[] {
    const paths = [
      '/.well-known/openid-configuration',
      '/api',
      '/apis',
      '/healthz',
      '/livez',
      ...(this.#deps.backend.metrics ? ['/metrics', '/metrics/slis'] : []),
      '/openapi/v2',
      '/openapi/v3',
      '/openid/v1/jwks',
      '/readyz',
      '/version',
    ];
    for (const { name, versions } of this.#deps.backend.registry.groups()) {
      const root = name ? `/apis/${name}` : '/api';
      if (name) paths.push(root);
      for (const { version } of versions) paths.push(`${root}/${version}`);
    }
    return paths.sort();
  }
}

/** Returns the parsed path, or the 400 for a malformed one. */
function targetOf({ path }: HttpRequest): Target | StatusError {
  try {
    return parseTarget(path);
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
}

/**
 * Checks the timeout of a request, which has no other effect here.
 *
 * @throws {StatusError} 400 if it is not a duration
 */
function requireTimeout({ query }: Target, info: RequestInfo | undefined): void {
  const timeout = query.get('timeout');
  if (!timeout || info?.verb === 'watch' || info?.subresource === 'log') return;
  if (parseDuration(timeout) !== undefined) return;
  const problem = /^[+-]?(?:\d+\.?\d*|\.\d+)$/.test(timeout)
    ? 'missing unit in duration'
    : 'invalid duration';
  throw badRequest(
    `invalid timeout specified in the request URL - time: ${problem} ${goQuote(timeout)}`,
  );
}

function uninterpretable({ path }: HttpRequest): HttpResponse {
  const problem = `unable to determine kind and namespace from url, ${path}`;
  const text = `${goQuote(path)}: failed to create RequestInfo: ${problem}`;
  return textResponse(500, `Internal Server Error: ${text}\n`);
}

/** Returns the log record of a request. A malformed path has no resource. */
function recordOf(
  { method, path, headers }: HttpRequest,
  target: Target | StatusError,
  receivedMs: number,
): RequestRecord {
  const info = target instanceof StatusError ? undefined : requestInfo(method, target);
  return { method, path, info, userAgent: headers['user-agent'] ?? '', receivedMs };
}

/** Ends a response without a reader. */
async function discard({ body }: HttpResponse): Promise<void> {
  await body[Symbol.asyncIterator]().return?.();
}

/** Whether a path ends after the verb of a legacy path, which a kube-apiserver fails to interpret. */
function isVerbAlone(target: Target): boolean {
  const [first = '', second] = belowVersion(target);
  return ['proxy', 'watch'].includes(first) && second === undefined;
}

/** Returns the segments after the version of an API group. */
function belowVersion({ segments: [root, ...rest] }: Target): string[] {
  return root === 'api' ? rest.slice(1) : root === 'apis' ? rest.slice(2) : [];
}

/** Whether a path is in a built-in group, where a missing resource gets a Status. */
function isOfTheServer(registry: Registry, { segments }: Target): boolean {
  const [root, group = '', version] = segments;
  if (root === 'api') return true;
  if (root !== 'apis' || group === '' || version === undefined) return false;
  const versions = registry.group(group)?.versions ?? [];
  return versions.some(({ definitions }) => definitions.some(({ custom }) => !custom));
}
