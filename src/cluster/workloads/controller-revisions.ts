import { isApiError } from '../../api/api-error.ts';
import { CONTROLLER_REVISIONS } from '../../api/builtin.ts';
import type { ControllerRevision, DaemonSet, StatefulSet } from '../../api/builtin.ts';
import { equalJson } from '../../api/equal.ts';
import { controllerReference, isControlledBy } from '../../api/metadata.ts';
import type { DeepReadonly, Draft } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import type { SharedInformer } from '../../cache/shared-informer.ts';
import { deleteOwnedObject } from '../../manager/owned-object.ts';
import type { OwnedObjectContext } from '../../manager/owned-object.ts';
import { claim } from '../support/claim.ts';
import { withSortedKeys } from '../../util/go-format.ts';
import type { PodTemplateSpec } from './template-hash.ts';
import { templateHash } from './template-hash.ts';
import { byAge } from '../support/pod-control.ts';
import { forEachObject } from '../../manager/rejections.ts';

type Revision = DeepReadonly<ControllerRevision>;
type Owner = DeepReadonly<StatefulSet> | DeepReadonly<DaemonSet>;

/** Label of Pods that names their revision. */
export const REVISION_LABEL = 'controller-revision-hash';

/** Arguments of `recordRevision`. */
export interface RevisionOptions {
  readonly owner: Owner;
  readonly ownerResource: Resource;
  /** From `claimable`. */
  readonly revisions: SharedInformer<ControllerRevision>;
  /** Label of the revisions with their hash. */
  readonly hashLabel: string;
}

/** The ControllerRevisions of a StatefulSet or DaemonSet, which `kubectl rollout` reads. */
export interface RevisionHistory {
  /** Revision of the current Pod template. */
  readonly update: Revision;
  /** Oldest first. */
  readonly others: readonly Revision[];
  readonly collisions: number;
}

/**
 * Creates the ControllerRevision of the current Pod template. A template that was used before gets its
 * revision back, with the next number.
 */
export async function recordRevision(
  context: OwnedObjectContext,
  { owner, ownerResource, revisions, hashLabel }: RevisionOptions,
): Promise<RevisionHistory> {
  const { client, signal } = context;
  const claimed = await claim(context, { owner, ownerResource, owned: revisions });
  const all = claimed.toSorted((a, b) => a.revision - b.revision || byAge(a, b));
  // kubectl compares its text with that of Go.
  const data = withSortedKeys({
    spec: { template: { ...owner.spec?.template, $patch: 'replace' } },
  }) as Record<string, unknown>;
  let collisions = owner.status?.collisionCount ?? 0;
  const current = revisionName(owner, collisions);
  // Admission may have changed the data.
  const equal =
    all.findLast((revision) => equalJson(revision.data, data)) ??
    all.find(({ metadata }) => metadata.name === current.name);
  const others = all.filter((revision) => revision !== equal);
  const next = (others.at(-1)?.revision ?? 0) + 1;
  if (equal) {
    if (equal.revision >= next) return { update: equal, others, collisions };
    const { uid, resourceVersion } = equal.metadata;
    const body = { metadata: { uid, resourceVersion }, revision: next };
    await client.patch(CONTROLLER_REVISIONS, equal.metadata, { type: 'merge', body }, { signal });
    return { update: equal, others, collisions };
  }
  for (; ; collisions++) {
    const draft = buildRevision(owner, { hashLabel, collisions, data, revision: next });
    try {
      const update = await client.create(CONTROLLER_REVISIONS, draft, { signal });
      return { update, others, collisions };
    } catch (error) {
      if (!isApiError(error, 'alreadyExists')) throw error;
      const existing = await client.get(CONTROLLER_REVISIONS, draft.metadata, { signal });
      // As upstream, the data decides: admission may have removed the labels or changed the owner.
      const isOwn = isControlledBy(existing, owner) || equalJson(existing.data, data);
      if (isOwn) return { update: existing, others, collisions };
    }
  }
}

/** Deletes the first `count` revisions. */
export async function deleteRevisions(
  context: OwnedObjectContext,
  revisions: readonly Revision[],
  count: number,
): Promise<void> {
  await forEachObject(revisions.slice(0, Math.max(0, count)), (revision) =>
    deleteOwnedObject(context, CONTROLLER_REVISIONS, revision),
  );
}

export function templateOf({ data }: Revision): PodTemplateSpec | undefined {
  return (data as { spec?: { template?: PodTemplateSpec } } | undefined)?.spec?.template;
}

function revisionName({ metadata, spec }: Owner, collisions: number) {
  const hash = templateHash(spec?.template ?? {}, collisions);
  return { name: `${metadata.name.slice(0, 223)}-${hash}`, hash };
}

function buildRevision(
  owner: Owner,
  {
    hashLabel,
    collisions,
    data,
    revision,
  }: {
    readonly hashLabel: string;
    readonly collisions: number;
    readonly data: Record<string, unknown>;
    readonly revision: number;
  },
): Draft<ControllerRevision> & { metadata: { name: string; namespace: string } } {
  const { namespace = '', annotations } = owner.metadata;
  const { name, hash } = revisionName(owner, collisions);
  const template = owner.spec?.template ?? {};
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name,
      namespace,
      labels: { ...template.metadata?.labels, [hashLabel]: hash },
      ...(annotations && { annotations }),
      ownerReferences: [controllerReference(owner)],
    },
    data,
    revision,
  };
}
