import {
  Controller,
  controllerReference,
  done,
  ensureChild,
  keyOf,
  labelValue,
  StatusWriter,
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
import { STATIC_SITES } from '../generated/static-site.ts';
import type { StaticSite } from '../generated/static-site.ts';

/** Field manager, source of events, and value of the label `app.kubernetes.io/managed-by`. */
const COMPONENT = 'static-site-controller';

/** The settings of the command line that the controller uses. */
export interface StaticSiteControllerOptions {
  /** @default all namespaces */
  readonly namespaces?: readonly string[] | undefined;
  readonly concurrency?: number | undefined;
}

/** Reconciles each StaticSite into a Deployment with `spec.replicas` Pods that run `spec.image`. */
export function staticSiteController(
  kit: ControllerKit,
  { namespaces, concurrency }: StaticSiteControllerOptions = {},
): Controller {
  const owners = kit.informers.for(STATIC_SITES, { namespaces });
  const deployments = kit.informers.for(DEPLOYMENTS, { namespaces });
  const statuses = new StatusWriter(STATIC_SITES, COMPONENT, kit);

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
    const readiness = readinessOf(owner, child);
    const { availableReplicas = 0 } =
      child.kind === 'nameCollision' ? {} : (child.object.status ?? {});
    await statuses.report(context, {
      object: owner,
      readiness,
      status: { availableReplicas },
      event: readiness.kind === 'stalled' ? { type: 'Warning' } : undefined,
    });
    return done();
  };

  return (
    new Controller(kit, { name: 'static-site', kind: STATIC_SITES.kind, concurrency, sync })
      .for(owners)
      // An unowned Deployment of the same name enqueues the owner too, when it is deleted.
      .owns(deployments, STATIC_SITES, { orNamed: keyOf })
  );
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
  if (kind === 'nameCollision') {
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
