import { ApiError, isApiError } from '../../api/api-error.ts';
import { equalJson } from '../../api/equal.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { ObjectName } from '../../api/object-key.ts';
import { apiVersionOf, groupResourceOf } from '../../api/resource.ts';
import type { Clock } from '../../util/clock.ts';
import { systemClock } from '../../util/clock.ts';
import { AppliedCrds } from './applied-crds.ts';
import { isFatal, rejectionOf } from './apply-result.ts';
import type { ApplyChange, ApplyResult, Rejection } from './apply-result.ts';
import { ApplyWindow } from './apply-window.ts';
import type { ApplyFailure } from './apply-window.ts';
import type { Client, WriteOptions } from '../client.ts';
import type { DiscoveredResource } from '../discovery.ts';
import { RestMapper } from '../rest-mapper.ts';
import type { RestMapping } from '../rest-mapper.ts';
import type { Manifest, ManifestObject } from './manifest.ts';

/** Options of `applyManifests`. */
export interface ApplyOptions {
  /**
   * Name of the field manager. Fields that it applied before and that a manifest no longer has are removed.
   * @default 'crd-controller-apply'
   */
  readonly fieldManager?: string | undefined;
  /**
   * Takes over fields of other managers. Otherwise different values are a conflict.
   * @default false
   */
  readonly force?: boolean | undefined;
  /**
   * Sends server-side dry runs. Objects whose namespace or definition is only in the batch are rejected, because
   * the dry run does not create these.
   * @default false
   */
  readonly dryRun?: boolean | undefined;
  /**
   * With `Strict`, a field that the kind does not have is an error.
   * @default 'Strict'
   */
  readonly fieldValidation?: WriteOptions['fieldValidation'] | undefined;
  /**
   * Namespace of objects that name none.
   * @default 'default'
   */
  readonly namespace?: string | undefined;
  /**
   * Rejects objects that name another namespace.
   * @default false
   */
  readonly enforceNamespace?: boolean | undefined;
  /**
   * Timeout until the objects of a new CustomResourceDefinition can be applied, in milliseconds.
   * @default 60000
   */
  readonly servedTimeoutMs?: number | undefined;
  /**
   * Maximum number of objects that are applied at the same time.
   * @default 16
   */
  readonly concurrency?: number | undefined;
  /** @default the machine's clock */
  readonly clock?: Pick<Clock, 'monotonic' | 'sleep'> | undefined;
  readonly signal?: AbortSignal | undefined;
}

const FIELD_MANAGER = 'crd-controller-apply';
const SERVED_TIMEOUT_MS = 60_000;
const CONCURRENCY = 16;

/**
 * Applies manifests to a cluster by server-side apply and yields the result of each. It applies Namespaces first,
 * then CustomResourceDefinitions, then all others in their order. It waits until kinds that the batch defines are
 * served. An object that is rejected does not stop the others.
 *
 * Objects of a kind are applied concurrently. The first object of each kind is applied alone: after all objects before
 * it, and before all objects after it. Results have the order of the manifests. An object that is rejected while objects
 * before it are being applied is applied again after them, because it can depend on them.
 *
 * @throws {ApiError} if the server cannot be reached or rejects the credentials
 */
export async function* applyManifests(
  client: Client,
  manifests: readonly Manifest[],
  options: ApplyOptions = {},
): AsyncGenerator<ApplyResult, void, undefined> {
  const { concurrency = CONCURRENCY, signal } = options;
  if (!(concurrency >= 1)) {
    throw new RangeError(`concurrency must be at least 1, got ${concurrency}`);
  }
  const batch = new Batch(client, manifests, options);
  const window = new ApplyWindow({
    size: concurrency,
    apply: (manifest) => batch.apply(manifest).catch((error) => ({ kind: 'failed', error })),
  });
  const waiting = inOrder(manifests).toReversed();
  let failure: ApplyFailure | undefined;
  try {
    for (;;) {
      if (signal?.aborted) failure ??= { kind: 'failed', error: signal.reason };
      const next = waiting.at(-1);
      if (next && !failure && window.hasRoomFor(next)) {
        waiting.pop();
        window.start(next);
        continue;
      }
      const outcome = await window.next();
      if (!outcome) break;
      if (outcome.kind === 'failed') failure ??= outcome;
      else yield outcome;
    }
  } finally {
    // The caller may have stopped reading.
    await window.settled();
  }
  if (failure) throw failure.error;
}

/** Sorts Namespaces and definitions before objects that need them; keeps the order otherwise. */
function inOrder(manifests: readonly Manifest[]): readonly Manifest[] {
  const rank = ({ object }: Manifest) => (isNamespace(object) ? 0 : isDefinition(object) ? 1 : 2);
  return manifests.toSorted((a, b) => rank(a) - rank(b));
}

function isNamespace({ apiVersion, kind }: ManifestObject): boolean {
  return kind === 'Namespace' && apiVersion === 'v1';
}

function isDefinition({ apiVersion, kind }: ManifestObject): boolean {
  return kind === 'CustomResourceDefinition' && apiVersion === 'apiextensions.k8s.io/v1';
}

/** The object before it was applied; `unreadable` if the user is not permitted to read it. */
type Before = KubernetesObject | 'absent' | 'unreadable';

class Batch {
  readonly #client: Client;
  readonly #manifests: readonly Manifest[];
  readonly #options: ApplyOptions;
  readonly #finder: RestMapper;
  readonly #definitions: AppliedCrds;

  constructor(client: Client, manifests: readonly Manifest[], options: ApplyOptions) {
    const { clock = systemClock, servedTimeoutMs = SERVED_TIMEOUT_MS, signal } = options;
    const finder = new RestMapper(client);
    this.#client = client;
    this.#manifests = manifests;
    this.#options = options;
    this.#finder = finder;
    this.#definitions = new AppliedCrds({
      client,
      finder,
      clock,
      timeoutMs: servedTimeoutMs,
      signal,
    });
  }

  async apply(manifest: Manifest): Promise<ApplyResult> {
    const { apiVersion, kind } = manifest.object;
    const notServed = await this.#definitions.served(apiVersion, kind);
    if (notServed !== undefined) {
      return rejected(manifest, { reason: 'notServed', message: notServed });
    }
    const found = await this.#finder.find(apiVersion, kind, this.#options.signal);
    if (found.kind === 'unknown') return rejected(manifest, this.#unknown(manifest.object, found));
    const { resource } = found;
    const rejection = this.#misplaced(manifest.object, resource);
    if (rejection) return rejected(manifest, rejection, resource);
    try {
      return await this.#applyTo(resource, manifest);
    } catch (error) {
      if (!(error instanceof ApiError) || isFatal(error)) throw error;
      return rejected(manifest, this.#explained(error, manifest.object, resource), resource);
    }
  }

  async #applyTo(resource: DiscoveredResource, manifest: Manifest): Promise<ApplyResult> {
    const { fieldManager = FIELD_MANAGER, fieldValidation = 'Strict' } = this.#options;
    const { force = false, dryRun = false, signal } = this.#options;
    const at = this.#addressOf(manifest.object, resource);
    const body = {
      ...manifest.object,
      metadata: { ...manifest.object.metadata, ...at },
    };
    const before = await this.#before(resource, at);
    const object = await this.#client.patch(
      resource,
      at,
      { type: 'apply', body, force },
      { fieldManager, fieldValidation, dryRun, signal },
    );
    if (isDefinition(manifest.object) && !dryRun) this.#definitions.add(object);
    return {
      kind: 'applied',
      manifest,
      resource,
      change: changeOf(before, object, dryRun),
      object,
    };
  }

  #addressOf({ metadata }: ManifestObject, { namespaced }: DiscoveredResource): ObjectName {
    const { namespace = this.#options.namespace ?? 'default', name } = metadata;
    return namespaced ? { namespace, name } : { name };
  }

  async #before(resource: DiscoveredResource, at: ObjectName): Promise<Before> {
    for (;;) {
      try {
        return await this.#client.get(resource, at, { signal: this.#options.signal });
      } catch (error) {
        if (isApiError(error, 'forbidden')) return 'unreadable';
        if (!isApiError(error, 'notFound')) throw error;
        // With a Status, the object does not exist. A 404 without one means that the path does not exist.
        const isPath = error.reason === undefined;
        if (!isPath || !(await this.#definitions.retry(apiVersionOf(resource), resource.kind))) {
          return 'absent';
        }
      }
    }
  }

  #misplaced({ metadata }: ManifestObject, resource: DiscoveredResource): Rejection | undefined {
    const { namespace, enforceNamespace = false } = this.#options;
    if (!resource.verbs.includes('patch')) {
      const message = `${groupResourceOf(resource)} cannot be applied: the server supports only ${resource.verbs.join(', ')}`;
      return { reason: 'notApplicable', message };
    }
    const { namespace: own } = metadata;
    if (enforceNamespace && resource.namespaced && own !== undefined && own !== namespace) {
      const message = `its namespace is ${own}, expected ${namespace ?? 'default'}`;
      return { reason: 'otherNamespace', message };
    }
    return undefined;
  }

  #unknown(
    { apiVersion, kind }: ManifestObject,
    { suggestions, isDown }: RestMapping & { readonly kind: 'unknown' },
  ): Rejection {
    const isDefinedHere = this.#manifests.some(
      ({ object }) => isDefinition(object) && defines(object, apiVersion, kind),
    );
    const why = isDown
      ? `${apiVersion} is listed but not available; check its APIService`
      : isDefinedHere && this.#options.dryRun
        ? 'its definition is in this batch, and a dry run does not create it'
        : isDefinedHere
          ? 'its definition, in this batch, was rejected'
          : suggestions.length > 0
            ? `did you mean ${suggestions.join(', or ')}?`
            : 'is its CustomResourceDefinition missing?';
    const message = `the server has no kind ${kind} in ${apiVersion}: ${why}`;
    return { reason: 'unknownKind', message, suggestions };
  }

  #explained(error: ApiError, object: ManifestObject, resource: DiscoveredResource): Rejection {
    const rejection = rejectionOf(error, object);
    const { namespace } = this.#addressOf(object, resource);
    const isMissingNamespace =
      rejection.reason === 'server' &&
      error.kind === 'notFound' &&
      this.#options.dryRun === true &&
      this.#manifests.some(
        ({ object: other }) => isNamespace(other) && other.metadata.name === namespace,
      );
    if (!isMissingNamespace) return rejection;
    const message = `${rejection.message}: the namespace is in this batch, and a dry run does not create it`;
    return { ...rejection, message };
  }
}

function rejected(
  manifest: Manifest,
  rejection: Rejection,
  resource?: DiscoveredResource,
): ApplyResult {
  return { kind: 'rejected', manifest, rejection, ...(resource && { resource }) };
}

/** Reports whether the CustomResourceDefinition defines the kind. */
function defines({ spec }: ManifestObject, apiVersion: string, kind: string): boolean {
  const { group, names } = Object(spec) as { group?: unknown; names?: unknown };
  const { kind: defined } = Object(names) as { kind?: unknown };
  return defined === kind && apiVersion.startsWith(`${String(group)}/`);
}

/**
 * Returns the effect of an apply. A write changes the resourceVersion. A dry run does not, so the objects are
 * compared without versions and times.
 */
function changeOf(before: Before, after: KubernetesObject, dryRun: boolean): ApplyChange {
  if (before === 'absent') return 'created';
  if (before === 'unreadable') return 'unknown';
  const isSame = dryRun
    ? equalJson(withoutVersions(before), withoutVersions(after))
    : before.metadata.resourceVersion === after.metadata.resourceVersion;
  return isSame ? 'unchanged' : 'configured';
}

function withoutVersions(object: KubernetesObject): unknown {
  const { resourceVersion: _, managedFields = [], ...metadata } = object.metadata;
  return {
    ...object,
    metadata: { ...metadata, managedFields: managedFields.map(({ time: __, ...entry }) => entry) },
  };
}
