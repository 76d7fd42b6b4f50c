import { messageOf } from '../../util/values.ts';
import { goQuote } from '../../util/go-quote.ts';
import { emptyBody } from '../../util/http.ts';
import type { HttpHandler } from '../../util/http.ts';
import type { EndpointSlice, Pod, Service } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { Answer, Call } from './call.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import { StatusError, badRequest } from '../objects/status-error.ts';
import { kubeletOf } from './pod-log.ts';
import { existing } from './read.ts';

/** What a name in a path stands for: `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`. */
interface ProxyTarget {
  readonly name: string;
  readonly port: string;
}

/**
 * Forwards a request to a node, a Pod or a Service.
 *
 * @throws {StatusError} 404 if the object does not exist, 503 if a Service has no endpoint or nothing answers at the port
 */
export async function proxy(call: Call): Promise<Answer> {
  const { info, definition, request } = call;
  const target = targetOf(call);
  const server = SERVERS[definition.plural]?.(call, target);
  if (!server) throw unavailable(`${definition.plural} have no proxy`);
  const rest = info.parts.slice(3).join('/');
  const query = info.query.size > 0 ? `?${info.query.toString()}` : '';
  const { method } = request;
  if (rest === '' && method === 'GET' && !request.path.split('?')[0]?.endsWith('/')) {
    const location = `${request.path.split('?')[0]}/${query}`;
    return { kind: 'proxied', response: { status: 301, headers: { location }, body: emptyBody() } };
  }
  const { signal } = request;
  const forwarded = { method, path: `/${rest}${query}`, headers: {}, ...(signal && { signal }) };
  return { kind: 'proxied', response: await server(forwarded) };
}

const SERVERS: Readonly<Record<string, (call: Call, target: ProxyTarget) => HttpHandler>> = {
  nodes: (call, { name }) => {
    namedObject(call, name);
    return kubeletOf(call, name);
  },
  pods: (call, { name, port }) => {
    const pod = namedObject(call, name) as StoredObject & DeepReadonly<Pod>;
    const ports = pod.spec?.containers.flatMap((container) => container.ports ?? []);
    return serverOf(call, pod, port === '' ? (ports?.[0]?.containerPort ?? 80) : Number(port));
  },
  services: serverOfService,
};

/** Returns the server of an endpoint of a Service, which is only read for the number of a port. */
function serverOfService(call: Call, { name, port }: ProxyTarget): HttpHandler {
  let portName = port;
  if (/^[+-]?\d+$/.test(port)) {
    const { spec } = namedObject(call, name) as StoredObject & DeepReadonly<Pick<Service, 'spec'>>;
    const found = spec?.ports?.find((each) => each.port === Number(port));
    if (!found) {
      throw unavailable(`no service port ${Number(port)} found for service ${goQuote(name)}`);
    }
    portName = found.name ?? '';
  }
  const { backend, info } = call;
  const slices = backend.store
    .collection({ group: 'discovery.k8s.io', plural: 'endpointslices' })
    .list(info.namespace) as (StoredObject & DeepReadonly<EndpointSlice>)[];
  const pods = backend.store.collection({ group: '', plural: 'pods' });
  for (const { metadata, endpoints, ports } of slices) {
    if (metadata.labels?.['kubernetes.io/service-name'] !== name) continue;
    const ready = endpoints?.find((each) => each.conditions?.ready !== false && each.targetRef);
    if (!ready?.targetRef) continue;
    const number = ports?.find((each) => (each.name ?? '') === portName)?.port;
    const pod = pods.get(info.namespace, ready.targetRef.name ?? '');
    if (pod && number) return serverOf(call, pod, number);
  }
  throw unavailable(`no endpoints available for service ${goQuote(name)}`);
}

function serverOf(
  call: Call,
  { metadata, spec }: StoredObject & DeepReadonly<Pod>,
  port: number,
): HttpHandler {
  const node = spec?.nodeName ?? '';
  const ports = node && kubeletOf(call, node).ports?.(metadata.namespace ?? '', metadata.name);
  if (!ports) throw unavailable(`Pod ${goQuote(metadata.name)} has no address`);
  if (ports.kind === 'error') throw unavailable(ports.message);
  try {
    return ports.target(port);
  } catch (error) {
    throw unavailable(`error trying to reach service: ${messageOf(error)}`);
  }
}

/** @throws {StatusError} 404 */
function namedObject(call: Call, name: string): StoredObject {
  return existing({ ...call, info: { ...call.info, name } });
}

/** @throws {StatusError} 400 */
function targetOf({ info, definition }: Call): ProxyTarget {
  const { name: id = '' } = info;
  if (id === '') throw badRequest('name must be provided');
  const parts = id.split(':');
  const [scheme = '', name = '', port = ''] = parts.length < 3 ? ['', ...parts] : parts;
  if (name === '' || parts.length > 3 || !['', 'http', 'https'].includes(scheme)) {
    throw badRequest(`invalid ${definition.kind.toLowerCase()} request ${goQuote(id)}`);
  }
  return { name, port };
}

function unavailable(message: string): StatusError {
  return StatusError.failure({ code: 503, reason: 'ServiceUnavailable', message });
}
