import { apiGroupOf } from '../api/resource.ts';
import { controllerOf } from '../api/metadata.ts';
import type { Condition } from '../api/conditions.ts';
import { keyOf, objectKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { DeepReadonly, KubernetesObject, OwnerReference } from '../api/object.ts';
import type { InformerView } from '../cache/shared-informer.ts';
import { isSecretName, MASK, redactText } from '../util/redact.ts';
import { isRecord } from '../util/values.ts';
import { reconciledBy } from './attention.ts';
import { objectCondition, objectProblem } from './object-condition.ts';
import type { ObjectCondition } from './object-condition.ts';
import type { ControllerView } from './controller-view.ts';
import { compactJsonPage } from './routes.ts';
import type { Pages } from './routes.ts';

/** Resource whose cached objects are shown. */
export type CachedObjects = Pick<InformerView, 'name' | 'resource'> & {
  readonly lister: Pick<InformerView['lister'], 'get' | 'list'>;
};

/** Event as shown with an object. */
export interface ShownEvent {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly count?: number;
  readonly lastTimestamp?: string | undefined;
  readonly involvedObject: {
    readonly kind?: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly uid?: string;
  };
}

/** Dependencies of {@link objectPage}. */
export interface ObjectPageDeps {
  /** Returns the informers. Called for each request. */
  readonly informers: () => readonly CachedObjects[];
  /** Returns the last events, oldest first. Called for each request. */
  readonly events: () => readonly ShownEvent[];
  /**
   * Returns the controllers, whose keys the pages name. Called for each request.
   * @default none
   */
  readonly controllers?: (() => readonly ControllerView[]) | undefined;
  /**
   * Path of the page about one object.
   * @default '/debug/object'
   */
  readonly path?: string | undefined;
}

/** Key of a controller. */
export interface ControllerKey {
  readonly controller: string;
  readonly key: string;
}

/** Response of `/debug/objects`. */
export interface ObjectsReport {
  /** Number of all objects that match; the list may have fewer. */
  readonly count: number;
  readonly objects: readonly FoundObject[];
}

/** Object that matches a search. */
export interface FoundObject extends ObjectCondition {
  readonly resource: string;
  readonly kind: string;
  readonly key: string;
  /** Key of the controller that reconciles the object or one of its owners. */
  readonly owner?: ControllerKey | undefined;
}

/** Response of `/debug/object`. */
export interface ObjectReport {
  readonly resource: string;
  readonly key: string;
  /** The object without managed fields, with masked secrets; absent if it is too large. */
  readonly object?: unknown;
  readonly condition: ObjectCondition;
  /** Problems that owned objects report, each with the first object: `Pod default/web-0 and 2 more: Back-off pulling image`. */
  readonly ownedProblems: readonly string[];
  /** Key of the controller that reconciles the object or one of its owners. */
  readonly owner?: ControllerKey;
  /** The owner at the top of the object, with all owned objects. */
  readonly tree: ObjectNode;
  /** Number of objects that the tree omits. */
  readonly omitted: number;
  /** Events of the objects in the tree, newest first. */
  readonly events: readonly ShownEvent[];
}

/** Object in a tree of owners and owned objects. */
export interface ObjectNode {
  /** Name of the informer; absent for an owner that is not cached. */
  readonly resource?: string;
  readonly kind: string;
  readonly key: string;
  readonly uid: string;
  readonly isSelected: boolean;
  readonly isDeleting: boolean;
  readonly phase?: string;
  /** Problem that the object reports. */
  readonly problem?: string;
  readonly conditions: readonly Partial<Condition>[];
  readonly owned: readonly ObjectNode[];
}

type Cached = DeepReadonly<KubernetesObject>;

/** Limits of a response: depth and size of the tree, events, problems, and characters of the object as JSON. */
const MAX_OWNERS = 8;
const MAX_NODES = 200;
const MAX_EVENTS = 50;
const MAX_PROBLEMS = 5;
const MAX_OBJECT_LENGTH = 200_000;

/** Maximum number of objects in a search. */
const MAX_FOUND = 500;

/**
 * Pages about cached objects. The content of Secrets and values that look like credentials are masked.
 *
 * - `/debug/object?resource=NAME&key=NAMESPACE/NAME`, or `controller=NAME` for the reconciled resource: an object with its
 *   owners, owned objects, conditions and the events that this program recorded. Costs time proportional to the cached objects of
 *   the namespace.
 * - `/debug/objects?resource=NAME&text=TEXT`: the objects of a resource, or of all, whose key contains a text.
 */
export function objectPage(deps: ObjectPageDeps): Pages {
  const { informers, path = '/debug/object' } = deps;
  return new Map([
    [
      path,
      (query: URLSearchParams) => {
        const key = (query.get('key') ?? '') as ObjectKey;
        const controller = deps
          .controllers?.()
          .find(({ name }) => name === query.get('controller'));
        const reconciled = controller && reconciledBy(controller);
        const resource = reconciled?.name ?? query.get('resource') ?? '';
        if (!resource || !key) {
          const error = `Parameters resource and key are required: ${path}?resource=pods&key=NAMESPACE/NAME`;
          return compactJsonPage(400, { error });
        }
        const all = informers();
        const object = reconciled ? reconciled.lister.get(key) : objectOf(all, resource, key);
        if (!object) {
          return compactJsonPage(404, { error: `${resource} ${key} is not in the cache` });
        }
        return compactJsonPage(200, objectReport(resource, object, all, deps));
      },
    ],
    [`${path}s`, (query: URLSearchParams) => compactJsonPage(200, objectsReport(query, deps))],
  ]);
}

/** An informer of several namespaces has the names of their informers after that of the resource. */
function objectOf(informers: readonly CachedObjects[], resource: string, key: ObjectKey) {
  for (const { name, lister } of informers) {
    if (name !== resource) continue;
    const object = lister.get(key);
    if (object) return object;
  }
  return undefined;
}

function objectsReport(
  query: URLSearchParams,
  { informers, controllers }: ObjectPageDeps,
): ObjectsReport {
  const resource = query.get('resource') ?? '';
  const text = (query.get('text') ?? '').toLowerCase();
  const all = informers();
  const found = all
    .filter(({ name }) => resource === '' || name === resource)
    .flatMap(({ name, lister }) =>
      lister.list().flatMap((object) => {
        const key = keyOf(object);
        return key.toLowerCase().includes(text) ? [{ resource: name, key, object }] : [];
      }),
    )
    .toSorted((a, b) => a.key.length - b.key.length || (a.key < b.key ? -1 : 1));
  return {
    count: found.length,
    objects: found.slice(0, MAX_FOUND).map(({ resource, key, object }) => {
      const { state, message, since } = objectCondition(object);
      const { owner } = ownerOf(object, all, controllers?.() ?? []);
      return { resource, key, kind: object.kind, state, message, since, owner };
    }),
  };
}

/** Returns the key of the controller that reconciles an object or one of its owners. */
function ownerOf(
  object: Cached,
  informers: readonly CachedObjects[],
  controllers: readonly ControllerView[],
): { readonly owner?: ControllerKey } {
  let shown: Cached | undefined = object;
  for (let depth = 0; shown && depth < MAX_OWNERS; depth++) {
    const key = keyOf(shown);
    const controller = controllers.find(
      (one) => reconciledBy(one)?.lister.get(key)?.metadata.uid === shown?.metadata.uid,
    );
    if (controller) return { owner: { controller: controller.name, key } };
    const owner = controllerOf(shown);
    shown = owner && cachedOwner(owner, shown.metadata.namespace, informers).object;
  }
  return {};
}

function objectReport(
  resource: string,
  object: Cached,
  informers: readonly CachedObjects[],
  { events, controllers }: ObjectPageDeps,
): ObjectReport {
  const shown = maskSecret(object);
  const isSmall = JSON.stringify(shown).length <= MAX_OBJECT_LENGTH;
  const { tree, uids, omitted } = treeOf(object, resource, informers);
  return {
    resource,
    key: keyOf(object),
    ...(isSmall && { object: shown }),
    condition: objectCondition(object),
    ...ownerOf(object, informers, controllers?.() ?? []),
    tree,
    ownedProblems: ownedProblemsOf(tree),
    omitted,
    events: events()
      .filter(({ involvedObject: { uid } }) => uid !== undefined && uids.has(uid))
      .slice(-MAX_EVENTS)
      .toReversed()
      .map(maskedEvent),
  };
}

/** Returns the problems below the selected object. Equal ones are counted. */
function ownedProblemsOf(tree: ObjectNode): string[] {
  const all = (node: ObjectNode): ObjectNode[] => [node, ...node.owned.flatMap(all)];
  const selected = all(tree).find(({ isSelected }) => isSelected);
  const broken = (selected?.owned ?? []).flatMap(all).filter(({ problem }) => problem);
  return Array.from(
    Map.groupBy(broken, ({ problem }) => problem),
    ([problem, [first, ...others]]) =>
      `${first?.kind} ${first?.key}${others.length > 0 ? ` and ${others.length} more` : ''}: ${problem}`,
  ).slice(0, MAX_PROBLEMS);
}

function maskedEvent(event: ShownEvent): ShownEvent {
  return { ...event, message: redactText(event.message ?? '') };
}

/** An owner that may not be cached. */
interface Ancestor {
  readonly resource: string | undefined;
  readonly object: Cached | undefined;
  readonly reference: Pick<OwnerReference, 'kind' | 'name' | 'uid'>;
}

function treeOf(object: Cached, resource: string, informers: readonly CachedObjects[]) {
  const { metadata, kind } = object;
  let top: Ancestor = {
    resource,
    object,
    reference: { kind, name: metadata.name, uid: metadata.uid },
  };
  const path: Ancestor[] = [];
  for (let owner = controllerOf(object); owner && path.length < MAX_OWNERS;) {
    path.push(top);
    top = cachedOwner(owner, metadata.namespace, informers);
    owner = top.object && controllerOf(top.object);
  }
  const owned = ownedByOwner(
    informers,
    top.object ? top.object.metadata.namespace : metadata.namespace,
  );
  const uids = new Set<string>();
  let omitted = 0;
  const nodeOf = ({ resource, object: shown, reference }: Ancestor): ObjectNode => {
    uids.add(reference.uid);
    const below = (owned.get(reference.uid) ?? []).filter((node) => {
      if (uids.has(node.reference.uid)) return false;
      // The selected object and its owners are never omitted.
      const isKept =
        uids.size < MAX_NODES || path.some(({ reference }) => reference.uid === node.reference.uid);
      if (!isKept) omitted++;
      else uids.add(node.reference.uid);
      return isKept;
    });
    const status: unknown = shown && Reflect.get(shown, 'status');
    const { conditions, phase } = isRecord(status) ? status : {};
    const problem = shown && objectProblem(shown);
    return {
      ...(resource !== undefined && { resource }),
      kind: reference.kind,
      key: shown ? keyOf(shown) : reference.name,
      uid: reference.uid,
      isSelected: reference.uid === metadata.uid,
      isDeleting: shown?.metadata.deletionTimestamp !== undefined,
      ...(typeof phase === 'string' && { phase }),
      ...(problem !== undefined && { problem }),
      conditions: Array.isArray(conditions) ? conditions.filter(isRecord).map(shownCondition) : [],
      owned: below.map(nodeOf),
    };
  };
  return { tree: nodeOf(top), uids, omitted };
}

function shownCondition(condition: Readonly<Record<string, unknown>>): Partial<Condition> {
  const members = ['type', 'status', 'reason', 'message', 'lastTransitionTime'].flatMap((name) => {
    const value = condition[name];
    return typeof value === 'string' ? [[name, redactText(value)]] : [];
  });
  return Object.fromEntries(members);
}

function cachedOwner(
  { kind, name, uid, apiVersion }: DeepReadonly<OwnerReference>,
  namespace: string | undefined,
  informers: readonly CachedObjects[],
): Ancestor {
  const group = apiGroupOf(apiVersion);
  for (const { name: informer, resource, lister } of informers) {
    if (resource.kind !== kind || resource.group !== group) continue;
    const object = lister.get(objectKey(resource.namespaced ? namespace : undefined, name));
    if (object?.metadata.uid === uid)
      return { resource: informer, object, reference: { kind, name, uid } };
  }
  return { resource: undefined, object: undefined, reference: { kind, name, uid } };
}

function ownedByOwner(
  informers: readonly CachedObjects[],
  namespace: string | undefined,
): ReadonlyMap<string, readonly Ancestor[]> {
  const byOwner = new Map<string, Ancestor[]>();
  for (const { name: resource, lister } of informers) {
    for (const object of lister.list(namespace === undefined ? {} : { namespace })) {
      const { name, uid, ownerReferences = [] } = object.metadata;
      for (const owner of ownerReferences) {
        const ofOwner = { resource, object, reference: { kind: object.kind, name, uid } };
        const known = byOwner.get(owner.uid);
        if (known) known.push(ofOwner);
        else byOwner.set(owner.uid, [ofOwner]);
      }
    }
  }
  for (const all of byOwner.values()) {
    all.sort((a, b) => (a.reference.name < b.reference.name ? -1 : 1));
  }
  return byOwner;
}

/** Returns a copy without managed fields, in which secrets are masked. */
export function maskSecret(object: Cached): unknown {
  const copy = maskedValue(object);
  if (!isRecord(copy)) return copy;
  const { managedFields: _, ...metadata } = isRecord(copy['metadata']) ? copy['metadata'] : {};
  const whole: Record<string, unknown> = { ...copy, metadata };
  if (object.kind !== 'Secret') return whole;
  for (const name of ['data', 'stringData']) {
    if (isRecord(whole[name])) whole[name] = maskedMembers(whole[name]);
  }
  return whole;
}

function maskedMembers(members: object): object {
  return Object.fromEntries(Object.keys(members).map((name) => [name, MASK]));
}

function maskedValue(value: unknown): unknown {
  if (typeof value === 'string') return redactText(value);
  if (Array.isArray(value)) return value.map(maskedValue);
  if (!isRecord(value)) return value;
  // An environment variable and its like: the secret name is a value.
  const { name } = value;
  const isSecret =
    typeof name === 'string' && isSecretName(name) && typeof value['value'] === 'string';
  return Object.fromEntries(
    Object.entries(value).map(([member, content]) => {
      if (isSecret && member === 'value') return [member, MASK];
      if (isSecretName(member) && typeof content === 'string') return [member, MASK];
      return [member, maskedValue(content)];
    }),
  );
}
