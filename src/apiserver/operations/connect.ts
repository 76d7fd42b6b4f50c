import { objectIn, textIn } from '../../util/json-value.ts';
import { goQuote } from '../../util/go-quote.ts';
import type { EndpointSlice, Service } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { Call } from './call.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import { StatusError, badRequest, forbiddenError } from '../objects/status-error.ts';
import { authorizeCreate } from '../admission/admit.ts';
import { containerOf } from './pod-log.ts';
import { existing } from './read.ts';

/**
 * Rejects a connection to a Pod, a Node or a Service.
 *
 * @throws {StatusError} 404 if the object does not exist, 400 if a Pod has no node or not the container, 503 if a Service
 *   has no endpoint, else 501
 */
export function rejectConnection(call: Call): never {
  const { info, definition } = call;
  if (info.subresource === 'proxy') requireTarget(call);
  else requireContainer(call);
  const message = `this server does not serve ${definition.plural}/${info.subresource}: nothing is executed in its Pods`;
  throw StatusError.failure({ code: 501, message });
}

/** Looks up the Pod and the container of an exec, attach or portforward as a kube-apiserver does. */
function requireContainer(call: Call): void {
  const { subresource, query } = call.info;
  requireCreate(call);
  const pod = existing(call);
  if (subresource !== 'portforward') containerOf(pod, query.get('container'));
  if (textIn(objectIn(pod, 'spec'), 'nodeName') !== '') return;
  throw badRequest(`pod ${pod.metadata.name} does not have a host assigned`);
}

/**
 * Requires the permission `create` also for a GET, which opens a WebSocket.
 *
 * @throws {StatusError} 403
 */
function requireCreate(call: Call): void {
  const { info, definition } = call;
  if (info.verb === 'create') return;
  const { allowed, reason } = authorizeCreate(call);
  if (!allowed) throw forbiddenError(definition, info.name ?? '', reason);
}

/**
 * Looks up the target of a proxy as a kube-apiserver does. Its name is `NAME`, `NAME:PORT` or
 * `SCHEME:NAME:PORT`. A Service is only read for the number of a port.
 */
function requireTarget(call: Call): void {
  const { info, definition } = call;
  const { name: id = '' } = info;
  if (id === '') throw badRequest('name must be provided');
  const parts = id.split(':');
  const [scheme = '', name = '', port = ''] = parts.length < 3 ? ['', ...parts] : parts;
  if (name === '' || parts.length > 3 || !['', 'http', 'https'].includes(scheme)) {
    throw badRequest(`invalid ${definition.kind.toLowerCase()} request ${goQuote(id)}`);
  }
  const object = () => existing({ ...call, info: { ...info, name } });
  if (definition.plural !== 'services') return void object();
  if (/^[+-]?\d+$/.test(port)) {
    const { spec } = object() as StoredObject & DeepReadonly<Pick<Service, 'spec'>>;
    if (!spec?.ports?.some((each) => each.port === Number(port))) {
      throw unavailable(`no service port ${Number(port)} found for service ${goQuote(name)}`);
    }
  }
  if (!hasEndpoint(call, name)) {
    throw unavailable(`no endpoints available for service ${goQuote(name)}`);
  }
}

function hasEndpoint({ backend, info }: Call, service: string): boolean {
  const slices = backend.store
    .collection({ group: 'discovery.k8s.io', plural: 'endpointslices' })
    .list(info.namespace) as (StoredObject & DeepReadonly<Pick<EndpointSlice, 'endpoints'>>)[];
  return slices.some(
    ({ metadata: { labels }, endpoints }) =>
      labels?.['kubernetes.io/service-name'] === service &&
      endpoints?.some(({ conditions, targetRef }) => conditions?.ready !== false && targetRef),
  );
}

function unavailable(message: string): StatusError {
  return StatusError.failure({ code: 503, reason: 'ServiceUnavailable', message });
}
