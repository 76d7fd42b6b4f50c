import { labelValue, objectController, OwnedObjects } from 'crd-controller';
import { DEPLOYMENTS } from 'crd-controller/kinds';
import type {
  Controller,
  ControllerKit,
  DeepReadonly,
  OwnedDraft,
  Readiness,
} from 'crd-controller';
import type { Deployment } from 'crd-controller/kinds';
import { STATIC_SITES } from '../generated/static-site.ts';
import type { StaticSite } from '../generated/static-site.ts';

/** Field manager, source of events, and value of the label `app.kubernetes.io/managed-by`. */
const COMPONENT = 'static-site-controller';

/** Reconciles each StaticSite into a Deployment with `spec.replicas` Pods that run `spec.image`. */
export function staticSiteController(kit: ControllerKit): Controller {
  const owners = kit.informers.for(STATIC_SITES);
  const deployments = kit.informers.for(DEPLOYMENTS);
  const owned = new OwnedObjects(STATIC_SITES, COMPONENT).add(deployments);

  return objectController(kit, owners, {
    name: 'static-site',
    fieldManager: COMPONENT,
    reconcile: async (owner, context) => {
      const [ensured] = await owned.ensure<Deployment>(context, owner, [deploymentOf(owner)]);
      const deployment = ensured?.object;
      return {
        ...readinessOf(owner, deployment),
        status: { availableReplicas: deployment?.status?.availableReplicas ?? 0 },
      };
    },
  }).owns(owned);
}

/** Returns the desired Deployment. `OwnedObjects` sets its namespace and its owner reference. */
function deploymentOf({ metadata, spec }: DeepReadonly<StaticSite>): OwnedDraft<Deployment> {
  const labels = {
    'app.kubernetes.io/instance': labelValue(metadata.name),
    'app.kubernetes.io/managed-by': COMPONENT,
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: metadata.name, labels },
    spec: {
      replicas: spec.replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'app', image: spec.image }] },
      },
    },
  };
}

function readinessOf(
  { spec }: DeepReadonly<StaticSite>,
  deployment?: DeepReadonly<Deployment>,
): Readiness {
  const { observedGeneration, ...status } = deployment?.status ?? {};
  const { replicas, updatedReplicas, availableReplicas } = status;
  const message = `${availableReplicas ?? 0} of ${spec.replicas} replicas are available`;
  const isRolledOut =
    observedGeneration === deployment?.metadata.generation &&
    [replicas, updatedReplicas, availableReplicas].every((is = 0) => is === spec.replicas);
  return isRolledOut
    ? { kind: 'ready', reason: 'ReplicasAvailable', message }
    : { kind: 'reconciling', reason: 'ReplicasNotAvailable', message };
}
