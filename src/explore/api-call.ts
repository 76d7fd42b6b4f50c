import type { KubernetesObject } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import { parseTarget, requestInfo } from '../apiserver/request/request-info.ts';
import type { RequestInfo } from '../apiserver/request/request-info.ts';
import { Memo } from '../util/memo.ts';
import { isRecord } from '../util/values.ts';
import type { HttpRequest } from '../util/http.ts';

/** A request in terms of the API. */
export interface ApiCall {
  /** Undefined for paths that are not of resources, and for other services. */
  readonly info: RequestInfo | undefined;
  readonly isWrite: boolean;
  /** `create pods default/web-0` */
  readonly text: string;
  /** Returns the object in the body, or undefined. */
  readonly body: () => KubernetesObject | undefined;
}

/** Resources that controllers write beside their work: how often depends on how often something was tried. */
const BACKGROUND = new Set(['/events', 'events.k8s.io/events', 'coordination.k8s.io/leases']);

/** Returns whether a resource, such as `apps/deployments`, is one of Events or Leases. */
export function isBackgroundResource(resource: string): boolean {
  return BACKGROUND.has(resource);
}

/** Describes a request. */
export function apiCallOf(request: HttpRequest): ApiCall {
  const isWrite = request.method !== 'GET';
  const body = () => objectIn(request.body);
  const info = requestInfo(request.method, parseTarget(request.path));
  if (!info) return { info, isWrite, text: `${request.method} ${request.path}`, body };
  const { verb, resource, subresource, namespace } = info;
  const isNamed = info.name !== undefined || verb !== 'create' || typeof request.body !== 'string';
  const name = isNamed ? info.name : createdNames.get(request.body);
  const path = [namespace, name].filter((part) => part !== undefined).join('/');
  const what = subresource === undefined ? resource : `${resource}/${subresource}`;
  return { info, isWrite, text: path === '' ? `${verb} ${what}` : `${verb} ${what} ${path}`, body };
}

/** Describes a request to a service outside of the cluster. */
export function serviceCallOf({ method, url }: Request): ApiCall {
  const isWrite = method !== 'GET' && method !== 'HEAD';
  return { info: undefined, isWrite, text: `${method} ${url}`, body: () => undefined };
}

/** Returns whether the call is about Events or Leases. */
export function isBackground({ info }: ApiCall): boolean {
  return info !== undefined && isBackgroundResource(`${info.group}/${info.resource}`);
}

function objectIn(body: HttpRequest['body']): KubernetesObject | undefined {
  if (typeof body !== 'string') return undefined;
  const object: unknown = JSON.parse(body);
  return isRecord(object) && isRecord(object['metadata'])
    ? (object as unknown as KubernetesObject)
    : undefined;
}

/** Returns the name of an object; of a generated one, its prefix and `*`. */
function nameOf(object: KubernetesObject | undefined): string | undefined {
  const { name, generateName } = object?.metadata ?? {};
  return name ?? (generateName === undefined ? undefined : `${generateName}*`);
}

/** Number of texts that are remembered: most requests and events are those of the schedules before. */
const REMEMBERED = 2000;

const createdNames = new Memo(REMEMBERED, (body) => nameOf(objectIn(body)));
const eventTexts = new Memo(REMEMBERED, textOfEvents);

/** Describes the events in a piece of a watch: `ADDED default/web-0, BOOKMARK`. */
export function describeEvents(chunk: Uint8Array): string {
  return eventTexts.get(new TextDecoder().decode(chunk));
}

function textOfEvents(lines: string): string {
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const { type, object } = JSON.parse(line) as {
        readonly type: string;
        readonly object: Pick<KubernetesObject, 'metadata'>;
      };
      return type === 'BOOKMARK' || type === 'ERROR' ? type : `${type} ${keyOf(object)}`;
    })
    .join(', ');
}
