import type { HttpHandler, HttpResponse } from '../../util/http.ts';
import { objectIn, objectsIn, textIn } from '../builtin/fields.ts';
import type { Answer, Call } from '../call.ts';
import type { StoredObject } from '../resource-definition.ts';
import { StatusError, badRequest, internalError, notFound } from '../status-error.ts';
import { kubeletQuery } from './pod-log-options.ts';
import { existing } from './read.ts';

/** What a kubelet says of an error is shown up to here, in characters. */
const LONGEST_COMPLAINT = 2000;

/** `GET /log`: what a container has printed. The kubelet of the Pod's node has it, and is asked. */
export async function readLog(call: Call): Promise<Answer> {
  const { info, request } = call;
  const query = kubeletQuery(info.query, info.name ?? '');
  const pod = existing(call);
  const { namespace = '', name } = pod.metadata;
  const container = containerOf(pod, info.query.get('container'));
  const node = textIn(objectIn(pod, 'spec'), 'nodeName');
  // It runs nowhere yet: nothing was printed.
  if (node === '') return { kind: 'nothing' };
  const path = `/containerLogs/${namespace}/${name}/${container}`;
  const kubelet = kubeletOf(call, node);
  const response = await kubelet({
    method: 'GET',
    path: query.size > 0 ? `${path}?${query.toString()}` : path,
    headers: {},
    ...(request.signal && { signal: request.signal }),
    longRunning: query.has('follow'),
  });
  if (response.status < 200 || response.status > 206) throw await complaint(response, name);
  return { kind: 'text', body: response.body };
}

/**
 * The one that is asked for; the only one, if none is.
 *
 * @throws {StatusError} 400 if it is not said which, or there is no such container
 */
function containerOf(pod: StoredObject, wanted: string | null): string {
  const spec = objectIn(pod, 'spec');
  const namesIn = (field: string) => objectsIn(spec, field).map((each) => textIn(each, 'name'));
  const containers = namesIn('containers');
  const initial = namesIn('initContainers');
  const { name } = pod.metadata;
  if (wanted) {
    if ([...containers, ...initial, ...namesIn('ephemeralContainers')].includes(wanted)) {
      return wanted;
    }
    throw badRequest(`container ${wanted} is not valid for pod ${name}`);
  }
  const [only, ...others] = containers;
  if (only !== undefined && others.length === 0) return only;
  const choice = [...initial, ...containers].join(' ');
  throw badRequest(
    `a container name must be specified for pod ${name}, choose one of: [${choice}]`,
  );
}

/** @throws {StatusError} as a server that does not find the way */
function kubeletOf({ backend, definition }: Call, node: string): HttpHandler {
  const nodes = backend.registry.find('', 'v1', 'nodes');
  // A real server answers as if the Pod were missing, by the name of the node.
  if (nodes && !backend.store.collection(nodes).get(undefined, node)) {
    throw notFound(definition, node);
  }
  const kubelet = backend.kubelets(node);
  if (kubelet) return kubelet;
  const message = 'no preferred addresses found; known addresses: []';
  throw StatusError.failure({ code: 500, message });
}

/** The kubelet's refusal in the server's words. */
async function complaint(response: HttpResponse, name: string): Promise<StatusError> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > LONGEST_COMPLAINT) break;
  }
  text = text.slice(0, LONGEST_COMPLAINT);
  const { status: code } = response;
  if (code === 400) return badRequest(text);
  if (code === 500) return internalError(text);
  const found = code !== 404;
  const what = found
    ? `the server responded with the status code ${code} but did not return more information`
    : 'the server could not find the requested resource';
  return StatusError.failure({
    code,
    message: `${what} ( pods/log ${name})`,
    ...(found ? {} : { reason: 'NotFound' }),
    details: { name, kind: 'pods/log' },
  });
}
