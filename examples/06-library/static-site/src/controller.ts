import {
  Controller,
  controllerReference,
  done,
  ensureChild,
  labelValue,
  requeueAfter,
  StatusWriter,
  withReadiness,
} from 'crd-controller';
import { DEPLOYMENTS } from 'crd-controller/kinds';
import type {
  ChildOutcome,
  ControllerKit,
  DeepReadonly,
  Draft,
  Readiness,
  SyncHandler,
} from 'crd-controller';
import type { Deployment } from 'crd-controller/kinds';
import { STATIC_SITES } from './generated/static-site.ts';
import type { StaticSite } from './generated/static-site.ts';

/** Field manager, and value of the label `app.kubernetes.io/managed-by`. */
const COMPONENT = 'static-site-controller';

/** Reconciles each StaticSite into a Deployment with `spec.replicas` Pods that run `spec.image`. */
export function staticSiteController(kit: ControllerKit): Controller {
  const owners = kit.informers.for(STATIC_SITES);
  const deployments = kit.informers.for(DEPLOYMENTS);
  const statuses = new StatusWriter(STATIC_SITES, COMPONENT);

  const sync: SyncHandler = async (key, context) => {
    const owner = owners.lister.get(key);
    // The garbage collector deletes the Deployment because of its owner reference.
    if (!owner || owner.metadata.deletionTimestamp) return done();
    const child = await ensureChild(context, {
      resource: DEPLOYMENTS,
      owner,
      desired: deploymentOf(owner),
      cached: deployments.lister.get(key),
      fieldManager: COMPONENT,
    });
    const isForeign = child.kind === 'foreign';
    const { generation = 0 } = owner.metadata;
    const { conditions } = owner.status ?? {};
    const status = {
      observedGeneration: generation,
      availableReplicas: isForeign ? 0 : (child.object.status?.availableReplicas ?? 0),
      conditions: withReadiness(conditions, readinessOf(owner, child), generation, kit.clock.now()),
    };
    if (statuses.differs(owner, status)) await statuses.write(context, owner, status);
    // No event reports the deletion of a Deployment without our owner reference.
    return isForeign ? requeueAfter(60_000) : done();
  };

  return new Controller(kit, { name: 'static-site', kind: STATIC_SITES.kind, sync })
    .for(owners)
    .owns(deployments, STATIC_SITES);
}

function deploymentOf({ metadata, spec, ...owner }: DeepReadonly<StaticSite>) {
  const labels = {
    'app.kubernetes.io/instance': labelValue(metadata.name),
    'app.kubernetes.io/managed-by': COMPONENT,
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name: metadata.name,
      ...(metadata.namespace && { namespace: metadata.namespace }),
      labels,
      ownerReferences: [controllerReference({ ...owner, metadata })],
    },
    spec: {
      replicas: spec.replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'app', image: spec.image }] },
      },
    },
  } satisfies Draft<Deployment>;
}

function readinessOf(
  { spec }: DeepReadonly<StaticSite>,
  { kind, object }: ChildOutcome<Deployment>,
): Readiness {
  if (kind === 'foreign') {
    const message = `Deployment "${object.metadata.name}" already exists and is not managed by StaticSite`;
    return { kind: 'stalled', reason: 'DeploymentExists', message };
  }
  const { observedGeneration, replicas, updatedReplicas, availableReplicas } = object.status ?? {};
  const message = `${availableReplicas ?? 0} of ${spec.replicas} replicas are available`;
  const isRolledOut =
    observedGeneration === object.metadata.generation &&
    [replicas, updatedReplicas, availableReplicas].every((is = 0) => is === spec.replicas);
  return isRolledOut
    ? { kind: 'ready', reason: 'ReplicasAvailable', message }
    : { kind: 'reconciling', reason: 'ReplicasNotAvailable', message };
}
