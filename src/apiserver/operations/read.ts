import type { Answer, Call } from './call.ts';
import { continueAt, continueToken } from '../request/continue-token.ts';
import type { ListMeta } from '../request/negotiation.ts';
import { renderList } from '../request/negotiation.ts';
import { storageKey } from '../storage/object-store.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import type { RequestedList } from '../request/list-options.ts';
import { listOptions, parseRevision } from '../request/list-options.ts';
import {
  StatusError,
  expired,
  notFoundError,
  tooLargeResourceVersion,
} from '../objects/status-error.ts';
import { Watcher } from './watcher.ts';

/** Maximum wait of a read for a future revision, in milliseconds. */
const FRESHNESS_WAIT_MS = 3000;

export async function get(call: Call): Promise<Answer> {
  await untilReached(call, parseRevision(call.info));
  return { kind: 'object', code: 200, object: existing(call) };
}

/** @throws {StatusError} 404 if there is no object with the name in the path */
export function existing({ backend, definition, info }: Call): StoredObject {
  const { namespace, name = '' } = info;
  const object = backend.store.collection(definition).get(namespace, name);
  if (!object) throw notFoundError(definition, name);
  return object;
}

/**
 * Lists one page or all objects. Every page shows the state of the first one: the continue token has its
 * revision, and the history restores that state.
 */
export async function listObjects(call: Call): Promise<Answer> {
  const { backend, definition, representation } = call;
  const options = listOptions(call.info, definition);
  if (!options.exact) await untilReached(call, options.revision);
  const page = await pageOf(call, options);
  const { objects, revision } = page;
  const { history } = backend.store.collection(definition);
  return {
    kind: 'list',
    rendering: renderList(page.metadata, definition, representation, backend.clock.now()),
    state: { objects, revision, history },
  };
}

export async function watch(call: Call): Promise<Answer> {
  const { backend, definition, representation } = call;
  const options = listOptions(call.info, definition);
  if (options.sendInitialEvents) await whenReached(call, options.revision);
  const { store, clock, limits } = backend;
  const { group, version, resource } = call.info;
  const watcher = new Watcher(
    {
      collection: store.collection(definition),
      definition,
      clock,
      lines: backend.lines,
      revision: () => store.revision,
      prepare: (objects) => backend.converter.prepare(objects, definition),
      sent: backend.metrics?.watchEvents({ group, version, resource }),
    },
    {
      ...options,
      representation,
      bookmarkIntervalMs: limits.bookmarkIntervalMs,
      timeoutMs: limits.watchTimeoutMs,
      bufferLimit: limits.watchBufferLimit,
    },
  );
  const isList = options.sendInitialEvents === true && options.allowBookmarks;
  return { kind: 'watch', watcher, isList };
}

interface Page {
  readonly revision: number;
  readonly objects: readonly StoredObject[];
  readonly metadata: ListMeta;
}

/** Returns the selected objects, at most as many as the limit. */
export async function pageOf(call: Call, options: RequestedList): Promise<Page> {
  const { backend, definition } = call;
  const { store } = backend;
  const { selection } = options;
  const from = options.continueToken === undefined ? undefined : continueAt(options.continueToken);
  // A list at any revision is not paged, as from kube-apiserver's watch cache.
  const limit = options.revision === 0 && !from ? 0 : options.limit;
  // A token without a revision is an inconsistent continue token.
  const revision = from
    ? (from.revision ?? store.revision)
    : exactRevision(options, store.revision);
  const collection = store.collection(definition);
  let objects: StoredObject[];
  try {
    objects =
      revision === store.revision
        ? collection.list(selection.namespace)
        : collection.listAt(revision, selection.namespace);
  } catch (error) {
    throw from ? expiredToken(error, from.after) : error;
  }
  const isFound = from
    ? (object: StoredObject) => storageKey(object) > from.after
    : selection.isFound;
  if (isFound) objects = objects.filter(isFound);
  if (selection.converts) await backend.converter.prepare(objects, definition);
  const selected = selection.everything
    ? objects
    : objects.filter((object) => selection.matches(object));
  const resourceVersion = String(revision);
  const last = selected[limit - 1];
  // As upstream, a full page continues if any object follows, even if the selectors match no other.
  if (!last || last === objects.at(-1)) {
    return { revision, objects: selected, metadata: { resourceVersion } };
  }
  return {
    revision,
    objects: selected.slice(0, limit),
    metadata: {
      resourceVersion,
      continue: continueToken({ revision, after: storageKey(last) }),
      // With a selector, the number of remaining items is unknown.
      ...(selection.everything && { remainingItemCount: objects.length - limit }),
    },
  };
}

/** Returns the revision that the first page shows: the newest, unless the client asks for an exact one. */
function exactRevision({ exact, revision, limit }: RequestedList, current: number): number {
  // As etcd: a limited list at a revision, without a match, means exactly that revision.
  const insists = exact || (limit > 0 && revision !== undefined && revision > 0);
  return insists && revision !== undefined ? revision : current;
}

/** The 410 of an expired token has an inconsistent continue token. */
function expiredToken(error: unknown, after: string): unknown {
  if (!(error instanceof StatusError) || error.status.code !== 410) return error;
  const inconsistent = expired(
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
  );
  inconsistent.status.metadata['continue'] = continueToken({ revision: undefined, after });
  return inconsistent;
}

/** @throws {StatusError} 504 if the revision is not reached in time */
async function untilReached(call: Call, revision: number = 0): Promise<void> {
  const { store } = call.backend;
  await whenReached(call, revision);
  if (revision > store.revision) throw tooLargeResourceVersion(revision, store.revision);
}

/** Waits until the revision is reached, for a limited time. */
async function whenReached({ backend, request }: Call, revision: number = 0): Promise<void> {
  const { store, clock } = backend;
  if (revision <= store.revision) return;
  const waiting = new AbortController();
  const stop = store.whenReached(revision, () => waiting.abort());
  const signal = request.signal
    ? AbortSignal.any([request.signal, waiting.signal])
    : waiting.signal;
  await clock.sleep(FRESHNESS_WAIT_MS, signal);
  stop();
  request.signal?.throwIfAborted();
}
