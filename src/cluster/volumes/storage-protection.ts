import { PERSISTENT_VOLUME_CLAIMS, PODS } from '../../api/builtin.ts';
import type { Pod } from '../../api/builtin.ts';
import { hasFinalizer, withFinalizer, withoutFinalizer } from '../../api/metadata.ts';
import { objectKey } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { Controller } from '../../manager/controller.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';

const CLAIM_INDEX = 'volumeClaims';
const PROTECTION = 'kubernetes.io/pvc-protection';

/** Time until Pods that the cache does not show are read again; their events usually come earlier. */
const RECHECK_MS = 60_000;

/** Keeps a PersistentVolumeClaim that is being deleted until no scheduled Pod uses it. */
export function volumeClaimProtection(deps: ClusterDeps): Controller {
  const pods = deps.informers.for(PODS);
  pods.addIndexers({ [CLAIM_INDEX]: claimsOf });
  const claims = deps.informers.for(PERSISTENT_VOLUME_CLAIMS);
  return new Controller(deps, {
    name: 'pvc-protection',
    kind: PERSISTENT_VOLUME_CLAIMS.kind,
    sync: async (key, { client, signal }) => {
      const claim = claims.lister.get(key);
      if (!claim) return done();
      const isDeleted = claim.metadata.deletionTimestamp !== undefined;
      const isUsed = pods.lister.byIndex(CLAIM_INDEX, key).length > 0;
      if (hasFinalizer(claim, PROTECTION) !== isDeleted || (isDeleted && isUsed)) return done();
      const { uid, resourceVersion, namespace } = claim.metadata;
      if (isDeleted) {
        // As upstream: the cache may not show a Pod that was scheduled meanwhile.
        const { items } = await client.list(PODS, { ...(namespace && { namespace }), signal });
        if (items.some((pod) => claimsOf(pod).includes(key))) return requeueAfter(RECHECK_MS);
      }
      const finalizers = (isDeleted ? withoutFinalizer : withFinalizer)(claim, PROTECTION);
      const body = { metadata: { uid, resourceVersion, finalizers } };
      const patch = { type: 'merge', body } as const;
      await client.patch(PERSISTENT_VOLUME_CLAIMS, claim.metadata, patch, { signal });
      return done();
    },
  })
    .for(claims)
    .watches(pods, claimsOf);
}

/** Returns the keys of the claims of the volumes of a scheduled Pod. */
function claimsOf({ metadata, spec }: DeepReadonly<Pod>): readonly ObjectKey[] {
  if (!spec?.nodeName) return [];
  const isShutDown =
    metadata.deletionTimestamp !== undefined && metadata.deletionGracePeriodSeconds === 0;
  return (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    const ofPod = ephemeral && !isShutDown ? `${metadata.name}-${name}` : undefined;
    const claim = persistentVolumeClaim?.claimName ?? ofPod;
    return claim === undefined ? [] : [objectKey(metadata.namespace, claim)];
  });
}
