import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../../api/builtin.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/builtin.ts';
import { selects } from '../../api/label-selector.ts';
import { hasFinalizer, withFinalizer, withoutFinalizer } from '../../api/metadata.ts';
import { keyOf, objectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { compareQuantities } from '../../api/quantity.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext } from '../../manager/controller-options.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import { done } from '../../workqueue/outcome.ts';
import { FIELD_MANAGER } from '../support/field-manager.ts';
import { byAge } from '../support/pod-control.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';

type Volume = DeepReadonly<PersistentVolume>;
type VolumeStatus = NonNullable<PersistentVolume['status']>;
type Claim = DeepReadonly<PersistentVolumeClaim>;

const PROTECTION = 'kubernetes.io/pv-protection';
const BOUND_BY_CONTROLLER = { 'pv.kubernetes.io/bound-by-controller': 'yes' };
const BIND_COMPLETED = { 'pv.kubernetes.io/bind-completed': 'yes' };

/**
 * PersistentVolume controllers: bind each claim to the smallest volume that fits, keep the phases, and delete a
 * bound volume only after its claim.
 */
export function persistentVolumes(deps: ClusterDeps): Controller {
  const volumes = deps.informers.for(PERSISTENT_VOLUMES);
  const claims = deps.informers.for(PERSISTENT_VOLUME_CLAIMS);
  const statuses = new StatusWriter(PERSISTENT_VOLUMES, FIELD_MANAGER);

  /** Returns the claim that a volume has, or is to be bound to. */
  const claimFor = (volume: Volume): Claim | undefined => {
    const { claimRef } = volume.spec ?? {};
    if (!claimRef) return claims.lister.list().toSorted(byAge).find(isBestVolume(volume));
    const claim = claims.lister.get(objectKey(claimRef.namespace, claimRef.name ?? ''));
    const { volumeName = volume.metadata.name } = claim?.spec ?? {};
    const isSame = claimRef.uid === undefined || claimRef.uid === claim?.metadata.uid;
    return isSame && volumeName === volume.metadata.name ? claim : undefined;
  };
  const isBestVolume = (volume: Volume) => (claim: Claim) => {
    if (claim.metadata.deletionTimestamp !== undefined || isReserved(claim)) return false;
    const { volumeName } = claim.spec ?? {};
    if (volumeName !== undefined) return volumeName === volume.metadata.name;
    const [best] = volumes.lister
      .list()
      .filter((each) => !each.spec?.claimRef && fits(each, claim))
      .toSorted((one, other) => compareQuantities(sizeOf(one), sizeOf(other)));
    return best === volume;
  };
  const isReserved = ({ metadata: { namespace, name } }: Claim) =>
    volumes.lister.list().some(({ spec }) => {
      const { claimRef } = spec ?? {};
      return claimRef?.namespace === namespace && claimRef?.name === name;
    });

  return new Controller(deps, {
    name: 'persistentvolume-binder',
    kind: PERSISTENT_VOLUMES.kind,
    sync: async (key, context) => {
      const volume = volumes.lister.get(key);
      if (!volume) return done();
      const isDeleting = volume.metadata.deletionTimestamp !== undefined;
      if (!isDeleting && !hasFinalizer(volume, PROTECTION)) {
        await patchVolume(context, volume, {
          metadata: { finalizers: withFinalizer(volume, PROTECTION) },
        });
        return done();
      }
      const claim = claimFor(volume);
      const isOwn = claim !== undefined && volume.spec?.claimRef?.uid === claim.metadata.uid;
      const released = volume.spec?.claimRef?.uid ? 'Released' : 'Available';
      const phase = isOwn ? 'Bound' : released;
      const status: VolumeStatus = { ...volume.status, phase };
      if (statuses.differs(volume, status)) await statuses.write(context, volume, status);
      if (isOwn) await completeClaim(context, volume, claim);
      else if (isDeleting && hasFinalizer(volume, PROTECTION)) {
        const finalizers = withoutFinalizer(volume, PROTECTION);
        await patchVolume(context, volume, { metadata: { finalizers } });
      } else if (claim && phase === 'Available') await reserve(context, volume, claim);
      return done();
    },
  })
    .for(volumes)
    .watches(claims, ({ spec }) => {
      const unbound = volumes.lister.list().filter((volume) => volume.status?.phase !== 'Bound');
      const own = spec?.volumeName === undefined ? [] : [objectKey(undefined, spec.volumeName)];
      return [...own, ...unbound.map(keyOf)];
    });
}

function fits({ metadata, spec, status }: Volume, { spec: wanted }: Claim): boolean {
  const { accessModes = [], capacity, storageClassName = '', volumeMode } = spec ?? {};
  const { volumeAttributesClassName = '' } = spec ?? {};
  return (
    metadata.deletionTimestamp === undefined &&
    status?.phase === 'Available' &&
    storageClassName === (wanted?.storageClassName ?? '') &&
    volumeMode === wanted?.volumeMode &&
    volumeAttributesClassName === (wanted?.volumeAttributesClassName ?? '') &&
    (wanted?.accessModes ?? []).every((mode) => accessModes.includes(mode)) &&
    (!wanted?.selector || selects(wanted.selector, metadata.labels)) &&
    compareQuantities(
      capacity?.['storage'] ?? '0',
      wanted?.resources?.requests?.['storage'] ?? '0',
    ) >= 0
  );
}

function sizeOf({ spec }: Volume): string {
  return spec?.capacity?.['storage'] ?? '0';
}

/** Reserves a volume for a claim: the first step of binding. */
async function reserve(context: SyncContext, volume: Volume, claim: Claim): Promise<void> {
  const { namespace, name, uid, resourceVersion } = claim.metadata;
  const kind = 'PersistentVolumeClaim';
  await patchVolume(context, volume, {
    ...(!volume.spec?.claimRef && { metadata: { annotations: BOUND_BY_CONTROLLER } }),
    spec: { claimRef: { apiVersion: 'v1', kind, namespace, name, uid, resourceVersion } },
  });
}

/** Binds a claim to the volume that is reserved for it: the last step of binding. */
async function completeClaim(
  { client, signal }: SyncContext,
  { metadata: { name }, spec = {} }: Volume,
  claim: Claim,
): Promise<void> {
  const { metadata, status } = claim;
  if (claim.spec?.volumeName === undefined) {
    const annotations = { ...BIND_COMPLETED, ...BOUND_BY_CONTROLLER };
    const body = { metadata: { uid: metadata.uid, annotations }, spec: { volumeName: name } };
    await client.patch(PERSISTENT_VOLUME_CLAIMS, metadata, { type: 'merge', body }, { signal });
  }
  if (status?.phase === 'Bound') return;
  const { accessModes, capacity, volumeAttributesClassName: attributes } = spec;
  const bound = {
    phase: 'Bound' as const,
    ...(accessModes && { accessModes }),
    ...(capacity && { capacity }),
    ...(attributes && { currentVolumeAttributesClassName: attributes }),
  };
  const body = { metadata: { uid: metadata.uid }, status: bound };
  const options = { subresource: 'status', signal } as const;
  await client.patch(PERSISTENT_VOLUME_CLAIMS, metadata, { type: 'merge', body }, options);
}

async function patchVolume(
  { client, signal }: SyncContext,
  { metadata: { name, uid, resourceVersion } }: Volume,
  { metadata, ...rest }: { readonly metadata?: object; readonly spec?: object },
): Promise<void> {
  const body = { metadata: { ...metadata, uid, resourceVersion }, ...rest };
  await client.patch(PERSISTENT_VOLUMES, { name }, { type: 'merge', body }, { signal });
}
