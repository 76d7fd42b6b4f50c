import { isApiError } from '../../api/api-error.ts';
import { NAMESPACES, PODS } from '../../api/builtin.ts';
import type { Namespace } from '../../api/builtin.ts';
import { setCondition } from '../../api/conditions.ts';
import type { Condition } from '../../api/conditions.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import { groupResourceOf } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import { discover } from '../../client/discovery.ts';
import type { DiscoveredResource } from '../../client/discovery.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext } from '../../manager/controller-options.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import { messageOf } from '../../util/values.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';
import { forEachObject } from '../../manager/rejections.ts';

/** Interval of checks whether the content of a namespace is deleted, in milliseconds. */
const RECHECK_MS = 100;

/** Finalizer that the API server waits for before it deletes a namespace. */
const FINALIZER = 'kubernetes';

/**
 * Deletes the content of namespaces that are being deleted, Pods first, and then removes the finalizer.
 * The conditions of the namespace report failures and what remains, with kube-controller-manager's
 * reasons and messages.
 */
export function namespaceDeletion(deps: ClusterDeps): Controller {
  const namespaces = deps.informers.for(NAMESPACES);
  const statuses = new StatusWriter(NAMESPACES, 'namespace-controller');
  return new Controller(deps, {
    name: 'namespace-deletion',
    kind: NAMESPACES.kind,
    sync: async (key, context) => {
      const namespace = namespaces.lister.get(key);
      if (!namespace?.metadata.deletionTimestamp) return done();
      if (!namespace.spec?.finalizers?.includes(FINALIZER)) return done();
      const content = await deleteContent(namespace.metadata.name, context);
      const status = statusOf(namespace, content, deps.clock.now());
      if (statuses.differs(namespace, status)) await statuses.write(context, namespace, status);
      const [failure] = content.failures;
      if (failure !== undefined) throw failure;
      if (content.remains) return requeueAfter(RECHECK_MS);
      await finalize(namespace, context);
      return done();
    },
  }).for(namespaces);
}

/** Result of an attempt to delete the content of a namespace. */
interface Content {
  readonly failures: readonly unknown[];
  /** Whether any object remains, or may remain because an attempt failed. */
  readonly remains: boolean;
  /** Number of remaining objects by resource, as messages name it: `pods.` and `deployments.apps`. */
  readonly resources: ReadonlyMap<string, number>;
  /** Number of remaining objects by finalizer. */
  readonly finalizers: ReadonlyMap<string, number>;
}

async function deleteContent(namespace: string, context: SyncContext): Promise<Content> {
  const { client, signal } = context;
  const resources = (await discover(client, signal)).resources.filter(isContent);
  // Other objects, such as a NetworkPolicy, protect Pods until these have ended.
  const pods = resources.filter((resource) => groupResourceOf(resource) === groupResourceOf(PODS));
  const first = await deleteAll(pods, namespace, context);
  // Like kube-controller-manager, do not report Pods that have their grace period to end.
  if (first.remains) return { ...first, resources: new Map(), finalizers: new Map() };
  const others = resources.filter((resource) => !pods.includes(resource));
  return deleteAll(others, namespace, context);
}

async function deleteAll(
  all: readonly Resource[],
  namespace: string,
  context: SyncContext,
): Promise<Content> {
  const failures: unknown[] = [];
  const resources = new Map<string, number>();
  const finalizers = new Map<string, number>();
  await Promise.all(
    all.map(async (resource) => {
      try {
        const items = await deleteAllOf(resource, namespace, context);
        if (items.length > 0) resources.set(`${resource.plural}.${resource.group}`, items.length);
        for (const finalizer of items.flatMap(({ metadata }) => metadata.finalizers ?? [])) {
          finalizers.set(finalizer, (finalizers.get(finalizer) ?? 0) + 1);
        }
      } catch (error) {
        failures.push(error);
      }
    }),
  );
  const remains = failures.length > 0 || resources.size > 0;
  return { failures, remains, resources, finalizers };
}

/** Deletes all objects of a resource. Returns those that remain. */
async function deleteAllOf(
  resource: Resource,
  namespace: string,
  { client, signal }: SyncContext,
): Promise<readonly KubernetesObject[]> {
  const { items } = await client.list(resource, { namespace, signal });
  const present = items.filter(({ metadata }) => !metadata.deletionTimestamp);
  await forEachObject(present, async ({ metadata }) => {
    try {
      await client.delete(resource, metadata, { uid: metadata.uid, signal });
    } catch (error) {
      // After a conflict, the next list still contains the object.
      if (!isApiError(error, 'notFound', 'conflict')) throw error;
    }
  });
  if (present.length === 0) return items;
  return (await client.list(resource, { namespace, signal })).items;
}

function isContent({ namespaced, verbs }: DiscoveredResource): boolean {
  return namespaced && verbs.includes('list') && verbs.includes('delete');
}

function statusOf(
  { status }: DeepReadonly<Namespace>,
  { failures, resources, finalizers }: Content,
  nowMs: number,
): NonNullable<Namespace['status']> {
  const failed = failures.map(messageOf).toSorted().join(', ');
  const drafts = [
    draft('NamespaceDeletionDiscoveryFailure', false, [
      'ResourcesDiscovered',
      'All resources successfully discovered',
    ]),
    draft('NamespaceDeletionGroupVersionParsingFailure', false, [
      'ParsedGroupVersions',
      'All legacy kube types successfully parsed',
    ]),
    draft(
      'NamespaceDeletionContentFailure',
      failures.length > 0 && [
        'ContentDeletionFailed',
        `Failed to delete all resource types, ${failures.length} remaining: ${failed}`,
      ],
      ['ContentDeleted', 'All content successfully deleted, may be waiting on finalization'],
    ),
    draft(
      'NamespaceContentRemaining',
      resources.size > 0 && [
        'SomeResourcesRemain',
        `Some resources are remaining: ${listed(resources, 'has', 'resource instances')}`,
      ],
      ['ContentRemoved', 'All content successfully removed'],
    ),
    draft(
      'NamespaceFinalizersRemaining',
      finalizers.size > 0 && [
        'SomeFinalizersRemain',
        `Some content in the namespace has finalizers remaining: ${listed(finalizers, 'in', 'resource instances')}`,
      ],
      ['ContentHasNoFinalizers', 'All content-preserving finalizers finished'],
    ),
  ];
  const current = (status?.conditions ?? []) as readonly Condition[];
  const conditions = drafts.reduce(
    (conditions, next) => setCondition(conditions, next, nowMs),
    [...current],
  );
  return { ...(status as Namespace['status']), conditions };
}

type ReasonAndMessage = readonly [reason: string, message: string];

/** Returns a condition that is true if there is a `problem`. */
function draft(type: string, problem: ReasonAndMessage | false, ok: ReasonAndMessage) {
  const [reason, message] = problem || ok;
  return { type, status: problem ? 'True' : 'False', reason, message } as const;
}

function listed(counts: ReadonlyMap<string, number>, verb: string, unit: string): string {
  const parts = Array.from(counts, ([name, count]) => `${name} ${verb} ${count} ${unit}`);
  return parts.toSorted().join(', ');
}

async function finalize(
  namespace: DeepReadonly<Namespace>,
  { client, signal }: SyncContext,
): Promise<void> {
  try {
    const live = await client.get(NAMESPACES, namespace.metadata, { signal });
    if (live.metadata.uid !== namespace.metadata.uid) return;
    const finalizers = live.spec?.finalizers?.filter((finalizer) => finalizer !== FINALIZER) ?? [];
    await client.update(
      NAMESPACES,
      { ...live, spec: { ...live.spec, finalizers } },
      { subresource: 'finalize', signal },
    );
  } catch (error) {
    if (!isApiError(error, 'notFound')) throw error;
  }
}
