import { objectIn, textIn } from '../../util/json-value.ts';
import { goQuote } from '../../util/go-quote.ts';
import type { PortConnection } from './connection.ts';
import type { Answer, Call } from './call.ts';
import { badRequest, forbiddenError } from '../objects/status-error.ts';
import { authorizeCreate } from '../admission/admit.ts';
import { isTrue } from '../request/request-info.ts';
import { containerOf, kubeletOf } from './pod-log.ts';
import { existing } from './read.ts';

/**
 * Connects to the containers of a Pod: exec, attach and port-forward.
 *
 * @throws {StatusError} 404 if the Pod or its node does not exist; 400 if the Pod has no node, does not have the container,
 *   or the request has no `Upgrade` header
 */
export function connect(call: Call): Answer {
  const { info, request } = call;
  const { subresource, query } = info;
  requireCreate(call);
  const pod = existing(call);
  const { namespace = '', name, uid } = pod.metadata;
  const isPorts = subresource === 'portforward';
  const container = isPorts ? '' : containerOf(pod, query.get('container'));
  const node = textIn(objectIn(pod, 'spec'), 'nodeName');
  if (node === '') throw badRequest(`pod ${name} does not have a host assigned`);
  const kubelet = kubeletOf(call, node);
  if (!(request.headers['connection'] ?? '').toLowerCase().includes('upgrade')) {
    throw badRequest('Upgrade request required');
  }
  if (isPorts) {
    const ports = portsIn(query);
    const open = () => kubelet.ports?.(namespace, name) ?? NOT_CONNECTED;
    return { kind: 'connection', connection: { kind: 'ports', open, pod: name, uid, ...ports } };
  }
  const tty = isTrue(query.get('tty'));
  const streams = {
    tty,
    stdin: isTrue(query.get('stdin')),
    stdout: isTrue(query.get('stdout')),
    // A terminal has one output.
    stderr: isTrue(query.get('stderr')) && !tty,
  };
  const command = subresource === 'exec' ? query.getAll('command') : undefined;
  const open = () => {
    if (!streams.stdin && !streams.stdout && !streams.stderr) return NO_STREAMS;
    const wanted = { namespace, pod: name, container, command, tty };
    return kubelet.exec?.(wanted) ?? NOT_CONNECTED;
  };
  return { kind: 'connection', connection: { kind: 'process', open, streams } };
}

const NO_STREAMS = {
  kind: 'error',
  status: 400,
  message: 'you must specify at least 1 of stdin, stdout, stderr',
} as const;

const NOT_CONNECTED = {
  kind: 'error',
  status: 500,
  message: 'the kubelet of this node is simulated, and serves only logs',
} as const;

/** Returns the ports of a port-forward over a WebSocket. Error messages are those of kubelets. */
function portsIn(query: URLSearchParams): Pick<PortConnection, 'numbers' | 'problem'> {
  const texts = query.getAll('ports').flatMap((text) => text.split(','));
  const numbers: number[] = [];
  if (texts.length === 0) return { numbers, problem: 'query parameter "port" is required' };
  for (const text of texts) {
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (number === 0) return { numbers, problem: `port ${goQuote(text)} must be > 0` };
    if (!(number <= 65_535)) {
      return { numbers, problem: `unable to parse ${goQuote(text)} as a port` };
    }
    numbers.push(number);
  }
  return { numbers, problem: undefined };
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
