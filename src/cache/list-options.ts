import { parseFieldSelector } from '../api/field-selector.ts';
import { labelSelectorText, parseLabelSelector } from '../api/label-selector.ts';
import type { KubernetesObject } from '../api/object.ts';
import { apiVersionOf, groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import { requireShardRange } from '../api/shard-range.ts';
import type { ShardRange } from '../api/shard-range.ts';
import type { Selection } from '../client/client.ts';
import type { Transform } from './delta-queue.ts';

/** Selectors of a list or watch. */
export type Selectors = Pick<Selection, 'labelSelector' | 'fieldSelector'>;

/**
 * Changes the selectors of every list and watch of `resource`.
 *
 * It is called once per informer, not per request: a watch with another selection than the list before
 * it would send objects that are not in the list. The other list options belong to the reflector, whose
 * guarantees depend on them.
 */
export type TweakListOptions = (options: Selectors, resource: Resource) => Selectors;

/** A selection whose label selector has the form of URLs. */
export type TextSelection = Omit<Selection, 'labelSelector'> & {
  readonly labelSelector?: string | undefined;
};

/** Selects the objects of an informer. */
export interface InformerScope extends Selectors {
  /**
   * Namespace; ignored for cluster-scoped resources.
   * @default all namespaces
   */
  readonly namespace?: string | undefined;
  /**
   * Several namespaces, each with its own list and watch. For users who may read in each of them but not
   * in all. Handlers, listers and indexes see one informer.
   * @default all namespaces
   */
  readonly namespaces?: readonly string[] | undefined;
  /**
   * One of several equal parts of the objects, for programs that divide a kind whose objects are
   * independent. Servers that support shards do not send other objects; from other servers they are
   * dropped. If owned objects must be in the shard of their owner, divide keys instead
   * (`LeaderElectionOptions.shards`).
   * @default all objects
   */
  readonly shard?: ShardRange | undefined;
  /**
   * Changes the selectors, after the function of the set.
   * @default none
   */
  readonly tweakListOptions?: TweakListOptions | undefined;
}

interface CommonRequest extends InformerScope {
  /**
   * Number of objects on a page, as in `ReflectorOptions`. The first request for the informer sets it.
   * @default the page size of the set
   */
  readonly pageSize?: number | undefined;
}

/** Request for an informer of whole objects. */
export interface InformerRequest<T extends KubernetesObject> extends CommonRequest {
  readonly metadataOnly?: false | undefined;
  /** Applied once to each object before it is cached. Must be idempotent. */
  readonly transform?: Transform<T> | undefined;
}

/** Request for an informer of `apiVersion`, `kind` and `metadata`; servers send only those. */
export interface MetadataRequest extends CommonRequest {
  readonly metadataOnly: true;
  /** Applied once to each object before it is cached. Must be idempotent. */
  readonly transform?: Transform<PartialObjectMetadata> | undefined;
}

/** Fields that all kinds have. `kind` is the kind of the object. */
export type PartialObjectMetadata = Pick<KubernetesObject, 'apiVersion' | 'kind' | 'metadata'>;

/**
 * Returns one selection per requested namespace, or a single one for all namespaces and for
 * cluster-scoped resources.
 *
 * @throws {SyntaxError} if a selector is malformed
 * @throws {TypeError} if both `namespace` and `namespaces` are set, or a namespace is empty
 * @throws {RangeError} if the shard is out of range
 */
export function selectionsOf(
  resource: Resource,
  scope: InformerScope,
  tweak: TweakListOptions = (options) => options,
): readonly TextSelection[] {
  const given = { labelSelector: scope.labelSelector, fieldSelector: scope.fieldSelector };
  const tweaked = tweak(given, resource);
  const selectors = scope.tweakListOptions?.(tweaked, resource) ?? tweaked;
  const { fieldSelector } = selectors;
  if (scope.shard) requireShardRange(scope.shard);
  const labelSelector = checked(resource, 'labelSelector', () => {
    const text = labelSelectorText(selectors.labelSelector);
    parseLabelSelector(text ?? '');
    return text;
  });
  checked(resource, 'fieldSelector', () => parseFieldSelector(fieldSelector ?? ''));
  return namespacesOf(resource, scope).map((namespace) => ({
    namespace,
    labelSelector,
    fieldSelector,
  }));
}

/** Form of the selected objects. */
export interface SelectionForm {
  readonly metadataOnly?: boolean | undefined;
  readonly shard?: ShardRange | undefined;
}

/** Returns a name for log lines: `pods`, or `pods in demo with labels app=web`. */
export function describeSelection(
  resource: Resource,
  { namespace, labelSelector, fieldSelector }: TextSelection,
  { metadataOnly = false, shard }: SelectionForm = {},
): string {
  return [
    groupResourceOf(resource),
    ...(namespace ? [`in ${namespace}`] : []),
    ...(labelSelector ? [`with labels ${labelSelector}`] : []),
    ...(fieldSelector ? [`with fields ${fieldSelector}`] : []),
    ...(shard ? [`in shard ${shard.index} of ${shard.count} by ${shard.by ?? 'uid'}`] : []),
    ...(metadataOnly ? ['as metadata'] : []),
  ].join(' ');
}

/** Returns an id that is equal for equal sets of objects. */
export function identifySelection(
  resource: Resource,
  selection: TextSelection,
  form: SelectionForm = {},
): string {
  return `${apiVersionOf(resource)} ${describeSelection(resource, selection, form)}`;
}

/** Returns the namespaces; undefined stands for all. */
function namespacesOf(
  resource: Resource,
  { namespace, namespaces = [] }: InformerScope,
): readonly (string | undefined)[] {
  if (namespace && namespaces.length > 0) {
    throw new TypeError(
      `${groupResourceOf(resource)}: expected either namespace or namespaces, got both`,
    );
  }
  if (namespaces.includes('')) {
    throw new TypeError(
      `${groupResourceOf(resource)}: expected names of namespaces, got an empty one; for all namespaces, set none`,
    );
  }
  if (!resource.namespaced) return [undefined];
  if (namespaces.length > 0) return [...new Set(namespaces)];
  return [namespace || undefined];
}

/** Names the resource and the field if a selector is malformed. */
function checked<R>(resource: Resource, field: keyof Selectors, parse: () => R): R {
  try {
    return parse();
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new SyntaxError(`${groupResourceOf(resource)}: ${field}: ${cause.message}`, { cause });
  }
}
