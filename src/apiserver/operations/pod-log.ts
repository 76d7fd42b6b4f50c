import { objectIn, objectsIn, textIn } from '../../util/json-value.ts';
import type { Kubelet } from '../../api/kubelet.ts';
import type { HttpResponse } from '../../util/http.ts';
import type { Answer, Call } from './call.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import { StatusError, badRequest, internalError, notFoundError } from '../objects/status-error.ts';
import { kubeletQuery } from './pod-log-options.ts';
import { existing } from './read.ts';

/** Maximum length of a kubelet's error text, in characters. */
const MAX_ERROR_LENGTH = 2000;

/** `GET /log`: returns the output of a container from the kubelet of the Pod's node. */
export async function readLog(call: Call): Promise<Answer> {
  const { info, request } = call;
  const query = kubeletQuery(info.query, info.name ?? '');
  const pod = existing(call);
  const { namespace = '', name } = pod.metadata;
  const container = containerOf(pod, info.query.get('container'));
  const node = textIn(objectIn(pod, 'spec'), 'nodeName');
  // The Pod has no node yet, so there is no output.
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
  if (response.status < 200 || response.status > 206) throw await kubeletError(response, name);
  return { kind: 'text', body: response.body };
}

/**
 * Returns the requested container, or the only one.
 *
 * @throws {StatusError} 400 if the name is missing or unknown
 */
export function containerOf(pod: StoredObject, wanted: string | null): string {
  const spec = objectIn(pod, 'spec');
  const namesIn = (field: string) => objectsIn(spec, field).map((each) => textIn(each, 'name'));
  const containers = namesIn('containers');
  const all = [...namesIn('initContainers'), ...containers, ...namesIn('ephemeralContainers')];
  const { name } = pod.metadata;
  if (wanted) {
    if (all.includes(wanted)) return wanted;
    throw badRequest(`container ${wanted} is not valid for pod ${name}`);
  }
  const [only, ...others] = containers;
  if (only !== undefined && others.length === 0) return only;
  throw badRequest(
    `a container name must be specified for pod ${name}, choose one of: [${all.join(' ')}]`,
  );
}

/** @throws {StatusError} as kube-apiserver does if it cannot reach the node */
export function kubeletOf({ backend, definition }: Call, node: string): Kubelet {
  const nodes = backend.registry.find('', 'v1', 'nodes');
  // kube-apiserver answers NotFound for a Pod with the name of the node.
  if (nodes && !backend.store.collection(nodes).get(undefined, node)) {
    throw notFoundError(definition, node);
  }
  const kubelet = backend.kubelets(node);
  if (kubelet) return kubelet;
  const message = 'no preferred addresses found; known addresses: []';
  throw StatusError.failure({ code: 500, message });
}

/** Converts an error of the kubelet to a Status. */
async function kubeletError(response: HttpResponse, name: string): Promise<StatusError> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > MAX_ERROR_LENGTH) break;
  }
  text = text.slice(0, MAX_ERROR_LENGTH);
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
    ...(!found && { reason: 'NotFound' }),
    details: { name, kind: 'pods/log' },
  });
}
