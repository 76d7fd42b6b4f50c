import type { HttpRequest } from '../util/http.ts';
import type { Answer, Backend, Call } from './call.ts';
import { negotiate, represent } from './negotiation.ts';
import { create } from './operations/create.ts';
import { remove, removeCollection } from './operations/delete.ts';
import { patch } from './operations/patch.ts';
import { get, list, watch } from './operations/read.ts';
import { bind, evict } from './operations/pod-actions.ts';
import { getScale, patchScale, updateScale } from './operations/scale.ts';
import { update } from './operations/update.ts';
import type { RequestInfo, Verb } from './request-info.ts';
import type { ResourceDefinition } from './resource-definition.ts';
import { methodNotAllowed } from './status-error.ts';

/** An answer whose object, if it is one, is in the form asked for. */
export type RenderedAnswer = Exclude<Answer, { readonly kind: 'object' }>;

type Operation = (call: Call) => Answer | Promise<Answer>;

/** From a request to a resource's path to its operation; undefined if there is no such path. */
export async function answerCall(
  backend: Backend,
  request: HttpRequest,
  info: RequestInfo,
  warnings: string[],
): Promise<RenderedAnswer | undefined> {
  const definition = backend.registry.find(info.group, info.version, info.resource);
  if (!definition || !hasPath(info, definition)) return undefined;
  const operation = operationOf(info);
  if (!operation) throw methodNotAllowed();
  const representation = negotiate(request.headers['accept'], info.query.get('includeObject'));
  const answer = await operation({
    backend,
    request,
    info,
    definition,
    representation,
    warnings,
  });
  if (answer.kind !== 'object') return answer;
  const { code, object, definition: shown = definition } = answer;
  const value = represent(object, shown, representation, backend.clock.now());
  return { kind: 'json', code, value };
}

function hasPath(
  { namespace, name, subresource }: RequestInfo,
  definition: ResourceDefinition,
): boolean {
  const { namespaced, subresources } = definition;
  if (namespace !== undefined && !namespaced) return false;
  // All namespaces can be listed together; one object is in one of them.
  if (name !== undefined && namespaced && namespace === undefined) return false;
  return (
    subresource === undefined ||
    (Object.hasOwn(subresources, subresource) &&
      Boolean(subresources[subresource as keyof typeof subresources]))
  );
}

function operationOf({ verb, subresource }: RequestInfo): Operation | undefined {
  switch (subresource) {
    case undefined:
      return OPERATIONS[verb];
    case 'status':
      return STATUS_OPERATIONS[verb];
    case 'scale':
      return SCALE_OPERATIONS[verb];
    case 'finalize':
      return verb === 'update' ? update : undefined;
    case 'binding':
      return verb === 'create' ? bind : undefined;
    case 'eviction':
      return verb === 'create' ? evict : undefined;
    default:
      return undefined;
  }
}

const OPERATIONS: Readonly<Record<Verb, Operation>> = {
  get,
  list,
  watch,
  create,
  update,
  patch,
  delete: remove,
  deletecollection: removeCollection,
};

const STATUS_OPERATIONS: Readonly<Partial<Record<Verb, Operation>>> = { get, update, patch };

const SCALE_OPERATIONS: Readonly<Partial<Record<Verb, Operation>>> = {
  get: getScale,
  update: updateScale,
  patch: patchScale,
};
