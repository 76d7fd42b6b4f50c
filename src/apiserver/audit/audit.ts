import { jsonIfValid, listIn, objectsIn, textIn } from '../../util/json-value.ts';
import { microTimestamp } from '../../api/conditions.ts';
import type { HttpRequest } from '../../util/http.ts';
import { isRecord } from '../../util/values.ts';
import { actionOf } from '../auth/access.ts';
import type { AuthorizedImpersonation } from '../auth/impersonation.ts';
import type { Action } from '../../api/policy-rule.ts';
import type { RequestInfo } from '../request/request-info.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { utf8Text } from '../../util/bytes.ts';
import type { StatusError } from '../objects/status-error.ts';
import { userInfo } from '../../api/user.ts';
import type { User } from '../../api/user.ts';

/** Options of `ApiServer.audit`. */
export interface AuditOptions {
  /** The `Policy` of audit.k8s.io/v1, as an object. Its first rule that matches a request decides. */
  readonly policy: Readonly<JsonObject>;
  /** Receives the events, as objects of audit.k8s.io/v1. Must return at once. */
  readonly write: (event: Readonly<JsonObject>) => void;
}

type Level = 'None' | 'Metadata' | 'Request' | 'RequestResponse';
type Stage = 'RequestReceived' | 'ResponseStarted' | 'ResponseComplete';

/** What an event of a request contains. */
interface Config {
  readonly level: Level;
  readonly omitStages: readonly unknown[];
  readonly omitManagedFields: boolean;
}

const LEVELS: readonly Level[] = ['None', 'Metadata', 'Request', 'RequestResponse'];

/** Returns why an object is not an audit policy, or undefined. */
export function auditPolicyProblem(policy: Readonly<JsonObject>): string | undefined {
  if (policy['apiVersion'] !== 'audit.k8s.io/v1' || policy['kind'] !== 'Policy') {
    return 'the audit policy must have the apiVersion audit.k8s.io/v1 and the kind Policy';
  }
  const isKnown = ({ level }: JsonObject) => LEVELS.some((each) => each === level);
  const index = objectsIn(policy, 'rules').findIndex((rule) => !isKnown(rule));
  if (index === -1) return undefined;
  return `the level of rules[${index}] of the audit policy must be one of ${LEVELS.join(', ')}`;
}

/** Creates the audit events of requests. */
export class Auditor {
  readonly #options: AuditOptions;
  readonly #now: () => number;
  readonly #uid: () => string;

  /** @throws {TypeError} if the policy is not valid */
  constructor(options: AuditOptions, now: () => number, uid: () => string) {
    const problem = auditPolicyProblem(options.policy);
    if (problem !== undefined) throw new TypeError(problem);
    this.#options = options;
    this.#now = now;
    this.#uid = uid;
  }

  /** Starts the audit of a request. */
  start(request: HttpRequest, info: RequestInfo | undefined): AuditExchange {
    const { write, policy } = this.#options;
    const id = request.headers['audit-id'] || this.#uid();
    return new AuditExchange(request, info, id, policy, this.#now, write);
  }
}

/** The audit of one request. Its methods are called in the order of their declaration. */
export class AuditExchange {
  readonly #event: JsonObject;
  readonly #action: Action;
  readonly #policy: Readonly<JsonObject>;
  readonly #now: () => number;
  readonly #write: AuditOptions['write'];
  readonly #annotations: Record<string, string> = {};
  #config: Config | undefined;
  #status: JsonObject | undefined;
  #answer: unknown;

  constructor(
    request: HttpRequest,
    info: RequestInfo | undefined,
    auditID: string,
    policy: Readonly<JsonObject>,
    now: () => number,
    write: AuditOptions['write'],
  ) {
    this.#policy = policy;
    this.#now = now;
    this.#write = write;
    this.#action = actionOf(request, info);
    const userAgent = request.headers['user-agent'];
    this.#event = {
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      auditID,
      requestURI: request.path,
      verb: this.#action.verb,
      user: {},
      ...(userAgent && { userAgent }),
      ...(info && { objectRef: referenceOf(info) }),
      requestReceivedTimestamp: microTimestamp(now()),
    };
  }

  /** The sender is authenticated. */
  received(sender: User): void {
    this.#event['user'] = userInfo(sender);
    this.#config = configOf(this.#policy, sender, this.#action);
    this.#emit('RequestReceived', {});
  }

  impersonated({ user, constraint }: AuthorizedImpersonation): void {
    this.#event['impersonatedUser'] = userInfo(user);
    if (constraint === undefined) return;
    this.#event['authenticationMetadata'] = { impersonationConstraint: constraint };
  }

  authorized(isAllowed: boolean, reason: string): void {
    this.#annotations['authorization.k8s.io/decision'] = isAllowed ? 'allow' : 'forbid';
    this.#annotations['authorization.k8s.io/reason'] = reason;
  }

  requested({ body }: HttpRequest): void {
    if (!body || !this.#includes('Request')) return;
    // Events contain no bodies of other formats.
    const value = jsonIfValid(typeof body === 'string' ? body : utf8Text(body));
    if (value !== undefined) this.#event['requestObject'] = this.#shown(value);
  }

  /** The response is this JSON. Other responses, such as lists, are streams, which events do not contain. */
  answered(value: unknown): void {
    if (this.#includes('RequestResponse')) this.#answer = this.#shown(value);
  }

  failed({ status }: StatusError): void {
    const { status: text, message, reason, details } = status;
    this.#status = {
      status: text,
      message,
      ...(reason && { reason }),
      ...(details && { details }),
    };
    this.answered(status);
  }

  /** The headers of a watch are sent. */
  started(code: number): void {
    this.#emit('ResponseStarted', { responseStatus: { metadata: {}, code } });
  }

  completed(code: number, annotations: ReadonlyMap<string, string>): void {
    // A request that is not authenticated is not evaluated before.
    this.#config ??= configOf(this.#policy, undefined, this.#action);
    Object.assign(this.#annotations, Object.fromEntries(annotations));
    this.#emit('ResponseComplete', {
      responseStatus: { metadata: {}, ...this.#status, code },
      ...(this.#answer !== undefined && { responseObject: this.#answer }),
    });
  }

  #includes(level: Level): boolean {
    return LEVELS.indexOf(this.#config?.level ?? 'None') >= LEVELS.indexOf(level);
  }

  #shown(value: unknown): unknown {
    if (!this.#config?.omitManagedFields || !isRecord(value) || !isRecord(value['metadata'])) {
      return value;
    }
    const { managedFields: _fields, ...metadata } = value['metadata'];
    return { ...value, metadata };
  }

  #emit(stage: Stage, rest: object): void {
    const config = this.#config;
    if (!config || config.level === 'None' || config.omitStages.includes(stage)) return;
    const annotations = { ...this.#annotations };
    this.#write({
      ...this.#event,
      level: config.level,
      stage,
      ...rest,
      stageTimestamp: microTimestamp(this.#now()),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    });
  }
}

/** Returns what the first rule that matches says; without one, nothing is recorded. */
function configOf(policy: Readonly<JsonObject>, user: User | undefined, action: Action): Config {
  const rule = objectsIn(policy, 'rules').find((each) => matches(each, user, action));
  const omitManagedFields = rule?.['omitManagedFields'] ?? policy['omitManagedFields'];
  return {
    level: (rule?.['level'] as Level | undefined) ?? 'None',
    omitStages: [...listIn(policy, 'omitStages'), ...listIn(rule, 'omitStages')],
    omitManagedFields: omitManagedFields === true,
  };
}

function matches(rule: JsonObject, user: User | undefined, action: Action): boolean {
  const permits = (field: string, values: readonly string[]) => {
    const list = listIn(rule, field);
    return list.length === 0 || values.some((value) => list.includes(value));
  };
  if (!permits('users', user ? [user.name] : [])) return false;
  if (!permits('userGroups', user?.groups ?? [])) return false;
  if (!permits('verbs', [action.verb])) return false;
  const resources = objectsIn(rule, 'resources');
  if (resources.length > 0 || listIn(rule, 'namespaces').length > 0) {
    if (action.kind !== 'resource' || !permits('namespaces', [action.namespace])) return false;
    return resources.length === 0 || resources.some((each) => matchesResource(each, action));
  }
  const paths = listIn(rule, 'nonResourceURLs');
  if (paths.length === 0) return true;
  return action.kind === 'path' && paths.some((path) => matchesPath(String(path), action.path));
}

function matchesResource(
  rule: JsonObject,
  { group, resource, subresource, name }: Extract<Action, { readonly kind: 'resource' }>,
): boolean {
  const own = textIn(rule, 'group');
  const [names, resources] = [listIn(rule, 'resourceNames'), listIn(rule, 'resources')];
  if (own !== group && own !== '*') return false;
  if (resources.length === 0) return true;
  if (names.length > 0 && !names.includes(name)) return false;
  const combined = subresource === '' ? resource : `${resource}/${subresource}`;
  const wanted = [
    '*',
    combined,
    `${resource}/*`,
    ...(subresource === '' ? [] : [`*/${subresource}`]),
  ];
  return wanted.some((each) => resources.includes(each));
}

function matchesPath(pattern: string, path: string): boolean {
  return (
    pattern === path || (pattern.endsWith('*') && path.startsWith(pattern.replace(/\*+$/, '')))
  );
}

function referenceOf(info: RequestInfo): JsonObject {
  const { resource, namespace, name, group, version, subresource } = info;
  return {
    resource,
    ...(namespace && { namespace }),
    ...(name && { name }),
    ...(group && { apiGroup: group }),
    apiVersion: version,
    ...(subresource && { subresource }),
  };
}
