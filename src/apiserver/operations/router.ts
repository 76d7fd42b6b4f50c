import type { RequestNotes } from '../request/received-request.ts';
import type { HttpRequest } from '../../util/http.ts';
import type { User } from '../../api/user.ts';
import type { Answer, Backend, Call } from './call.ts';
import type { Encoding } from '../request/negotiation.ts';
import { OBJECT_TYPES, negotiate, represent, requireMediaType } from '../request/negotiation.ts';
import { serverSideApply } from './apply.ts';
import { connect } from './connect.ts';
import { create } from './create.ts';
import { remove, removeCollection } from './delete.ts';
import { patch, patchTypes } from './patch.ts';
import { get, listObjects, watch } from './read.ts';
import { bind, bindNamed } from './binding.ts';
import { evict } from './eviction.ts';
import { readLog } from './pod-log.ts';
import { answerReview } from './review.ts';
import { createToken } from './service-account-token.ts';
import { proxy } from './proxy.ts';
import { getScale, patchScale, updateScale } from './scale.ts';
import { update } from './update.ts';
import { contentType, isApplyPatch } from '../request/request-body.ts';
import type { RequestInfo, Verb } from '../request/request-info.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import type { Subresources } from '../objects/subresources.ts';
import { hasSubresource } from '../objects/subresources.ts';
import {
  badRequest,
  methodNotAllowed,
  noConsumer,
  notFoundError,
  unsupportedMediaType,
  verbNotSupported,
} from '../objects/status-error.ts';
import { pause } from '../request/pause.ts';
import { requireWriteOptions } from '../request/write-options.ts';

/** An answer with its object in the requested representation. */
export interface RenderedAnswer {
  readonly answer: Exclude<Answer, { readonly kind: 'object' }>;
  readonly encoding: Encoding;
}

type Operation = (call: Call) => Answer | Promise<Answer>;

/** Runs the operation of a request. Returns undefined if the path does not exist. */
export async function answerCall(
  backend: Backend,
  request: HttpRequest,
  user: User,
  info: RequestInfo,
  notes: RequestNotes,
): Promise<RenderedAnswer | undefined> {
  const definition = backend.registry.find(info.group, info.version, info.resource);
  if (!definition || !hasPath(request, info, definition)) return undefined;
  const { deprecationWarning: warning, custom } = definition;
  // As upstream, only a custom resource warns of a method or a type of patches that it does not have.
  if (warning && custom) notes.warnings.push(warning);
  const operation = operationOf(info, definition);
  if (!operation) throw verbError(info, definition);
  const { accept } = request.headers;
  const types = patchTypes(definition);
  if (info.verb === 'patch' && !types.includes(contentType(request))) {
    throw custom ? unsupportedMediaType(types) : noConsumer();
  }
  const isStream = info.verb === 'watch';
  if (!custom) {
    const texts = info.subresource === 'log' ? ['text/plain'] : [];
    requireMediaType(accept, [...texts, ...OBJECT_TYPES], isStream || info.verb === 'list');
    if (warning) notes.warnings.push(warning);
  }
  const representation = negotiate(accept, info.query.get('includeObject'), definition, isStream);
  const { turns } = backend;
  const call = { backend, turns, request, user, info, definition, representation, ...notes };
  requireWriteOptions(call);
  try {
    await pause(call);
    return await render(await operation(call), call);
  } finally {
    turns.end(request);
  }
}

/** Returns an answer with its object in the requested representation. */
async function render(answer: Answer, call: Call): Promise<RenderedAnswer> {
  const { backend, definition, representation } = call;
  if (answer.kind === 'list') await backend.converter.prepare(answer.state.objects, definition);
  const { encoding = 'json' } = representation;
  if (answer.kind !== 'object') return { answer, encoding };
  if (answer.definition === undefined) await backend.converter.prepare([answer.object], definition);
  const { code, object, definition: shown = definition } = answer;
  await pause(call);
  const value = represent(object, shown, representation, backend.clock.now());
  return { answer: { kind: 'json', code, value }, encoding };
}

function hasPath(
  { method }: HttpRequest,
  { verb, namespace, name, subresource, parts, legacyWatch }: RequestInfo,
  definition: ResourceDefinition,
): boolean {
  const { namespaced, custom, review } = definition;
  if (verb === 'proxy' || (parts.length > 3 && subresource !== 'proxy')) return false;
  if (legacyWatch) {
    if (method !== 'GET' || subresource !== undefined) return false;
    if (review || definition.verbs?.includes('watch') === false) return false;
    if (legacyWatch.name !== undefined && namespaced && namespace === undefined) return false;
  }
  // Reviews are not stored, so that they have neither names nor lists.
  if (review && (name !== undefined || namespaced !== (namespace !== undefined))) return false;
  if (namespace !== undefined && !namespaced) return false;
  if (namespaced && namespace === undefined) {
    // A list may span all namespaces; a single object is in one namespace.
    if (name !== undefined || definition.verbs?.includes('list') === false) return false;
    if (custom && verb !== 'list' && verb !== 'watch') return false;
  }
  // As upstream, an unknown subresource of a custom resource is a 404.
  if (custom && subresource !== undefined && !hasSubresource(definition, subresource)) {
    throw notFoundError(definition, name ?? '');
  }
  return subresource === undefined || hasSubresource(definition, subresource);
}

/** Returns the error for a verb that a path does not support. */
function verbError({ verb, name }: RequestInfo, definition: ResourceDefinition): Error {
  // Of the built-in kinds, only ComponentStatuses are listed and not watched.
  const isList = verb === 'watch' && definition.verbs?.includes('list');
  if (!definition.custom && !isList) return methodNotAllowed();
  if (name === undefined && !isList) return badRequest('name must be provided');
  return verbNotSupported(definition, verb);
}

function operationOf(
  { verb, namespace, name, subresource }: RequestInfo,
  definition: ResourceDefinition,
): Operation | undefined {
  const { group, plural, namespaced, verbs, review } = definition;
  if (verb === 'proxy') return undefined;
  if (review) return verb === 'create' ? (call) => answerReview(call, review) : undefined;
  if (subresource !== undefined) {
    return hasSubresource(definition, subresource)
      ? SUBRESOURCE_OPERATIONS[subresource][verb]
      : undefined;
  }
  if (verbs && !verbs.includes(verb)) return undefined;
  if (group === '' && plural === 'bindings') return namespace ? bindNamed : undefined;
  if (verb === 'create' && name !== undefined) return undefined;
  if ((verb === 'update' || verb === 'patch') && name === undefined) return undefined;
  const isOfNamespace = verb === 'create' || verb === 'deletecollection';
  if (isOfNamespace && namespaced && namespace === undefined) return undefined;
  return OPERATIONS[verb];
}

function patchOrApply(call: Call): Promise<Answer> {
  return isApplyPatch(contentType(call.request)) ? serverSideApply(call) : patch(call);
}

type Operations = Readonly<Record<Exclude<Verb, 'proxy'>, Operation>>;

const OPERATIONS: Operations = {
  get,
  list: listObjects,
  watch,
  create,
  update,
  patch: patchOrApply,
  delete: remove,
  deletecollection: removeCollection,
};

const READ_AND_WRITE: Partial<Operations> = { get, update, patch: patchOrApply };

const CONNECT: Partial<Operations> = { get: connect, create: connect };

const SUBRESOURCE_OPERATIONS: Readonly<Record<keyof Subresources, Partial<Operations>>> = {
  approval: READ_AND_WRITE,
  attach: CONNECT,
  binding: { create: bind },
  ephemeralcontainers: READ_AND_WRITE,
  eviction: { create: evict },
  exec: CONNECT,
  finalize: { update },
  log: { get: readLog },
  portforward: CONNECT,
  proxy: { get: proxy, create: proxy, update: proxy, patch: proxy, delete: proxy },
  resize: READ_AND_WRITE,
  scale: { get: getScale, update: updateScale, patch: patchScale },
  status: READ_AND_WRITE,
  token: { create: createToken },
};
