import { parseFieldSelector } from '../api/field-selector.ts';
import { parseLabelSelector } from '../api/label-selector.ts';
import type { KubernetesObject } from '../api/object.ts';
import { apiVersionOf, groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import { requireShardRange } from '../api/shard-range.ts';
import type { ShardRange } from '../api/shard-range.ts';
import type { Selection } from '../client/client.ts';
import { messageOf } from '../util/values.ts';
import type { Transform } from './transform.ts';

/** What a list or watch asks for, as far as it is not the reflector's to say. */
export type Selectors = Pick<Selection, 'labelSelector' | 'fieldSelector'>;

/**
 * Changes which objects of `resource` are asked for, whoever asks.
 *
 * It is called once for each informer and not for each request: a watch that selects otherwise than
 * the list before it would report what the list has not counted. Where in time to begin, how many
 * to ask for at once and for how long are the reflector's: it could not keep its promises otherwise.
 */
export type TweakListOptions = (options: Selectors, resource: Resource) => Selectors;

/** Which objects of a resource an informer is over. */
export interface InformerScope extends Selectors {
  /** The only namespace, of resources that have any. Absent: all. */
  readonly namespace?: string | undefined;
  /**
   * Several namespaces, each with a list and a watch of its own: for those who may read in each of
   * them and not in all. To handlers, listers and indexes it is one informer. Empty: all.
   */
  readonly namespaces?: readonly string[] | undefined;
  /**
   * One of several equal parts of the objects, for programs that share out a kind whose objects stand
   * alone: what is in other parts is not sent by servers that know how, and dropped otherwise. Where
   * children must go with their owner, split keys instead (`LeaderElectionOptions.shards`).
   * @default the whole
   */
  readonly shard?: ShardRange | undefined;
  /**
   * Changes the selectors, after the set's own hook.
   * @default none
   */
  readonly tweakListOptions?: TweakListOptions | undefined;
}

interface CommonRequest extends InformerScope {
  /**
   * Objects on a page, as in `ReflectorOptions`. The first to ask for the informer determines it.
   * @default that of the set
   */
  readonly pageSize?: number | undefined;
}

/** What of a resource an informer keeps. */
export interface InformerRequest<T extends KubernetesObject> extends CommonRequest {
  readonly metadataOnly?: false;
  /** Run once on each object before anyone sees it. */
  readonly transform?: Transform<T>;
}

/** Keep `apiVersion`, `kind` and `metadata`, and have nothing else sent by servers that know how. */
export interface MetadataRequest extends CommonRequest {
  readonly metadataOnly: true;
  /** Run once on each object before anyone sees it. */
  readonly transform?: Transform<PartialObjectMetadata>;
}

/** As much of an object as all kinds have. `kind` is that of the object. */
export type PartialObjectMetadata = Pick<KubernetesObject, 'apiVersion' | 'kind' | 'metadata'>;

/**
 * One selection for each namespace that is asked for; a single one if none is. Cluster-scoped
 * resources are in no namespace, so that none is asked for.
 *
 * @throws {SyntaxError} naming a selector that no server would accept
 * @throws {TypeError} if what the namespaces are is contradictory, or one of them has no name
 * @throws {RangeError} if there is no such shard
 */
export function selectionsOf(
  resource: Resource,
  scope: InformerScope,
  tweak: TweakListOptions = (options) => options,
): readonly Selection[] {
  const given = { labelSelector: scope.labelSelector, fieldSelector: scope.fieldSelector };
  const tweaked = tweak(given, resource);
  const { labelSelector, fieldSelector } = scope.tweakListOptions?.(tweaked, resource) ?? tweaked;
  if (scope.shard) requireShardRange(scope.shard);
  requireSelector(resource, 'labelSelector', labelSelector, parseLabelSelector);
  requireSelector(resource, 'fieldSelector', fieldSelector, parseFieldSelector);
  return namespacesOf(resource, scope).map((namespace) => ({
    namespace,
    labelSelector,
    fieldSelector,
  }));
}

/** How much of what is selected. */
export interface SelectionForm {
  readonly metadataOnly?: boolean | undefined;
  readonly shard?: ShardRange | undefined;
}

/** `pods`, or `pods in demo with labels app=web`: legible in a log line. */
export function describeSelection(
  resource: Resource,
  { namespace, labelSelector, fieldSelector }: Selection,
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

/** The same for the same objects, and for no others. */
export function identifySelection(
  resource: Resource,
  selection: Selection,
  form: SelectionForm = {},
): string {
  return `${apiVersionOf(resource)} ${describeSelection(resource, selection, form)}`;
}

/** Undefined stands for all. */
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
      `${groupResourceOf(resource)}: expected names of namespaces, got an empty one; for all of them, name none`,
    );
  }
  if (!resource.namespaced) return [undefined];
  if (namespaces.length > 0) return [...new Set(namespaces)];
  return [namespace || undefined];
}

function requireSelector(
  resource: Resource,
  field: keyof Selectors,
  selector: string | undefined,
  parse: (text: string) => unknown,
): void {
  try {
    parse(selector ?? '');
  } catch (cause) {
    throw new SyntaxError(`${groupResourceOf(resource)}: ${field}: ${messageOf(cause)}`, { cause });
  }
}
