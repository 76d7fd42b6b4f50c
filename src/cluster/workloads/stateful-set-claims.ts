import { isApiError } from '../../api/api-error.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '../../api/builtin.ts';
import type { PersistentVolumeClaim, StatefulSet } from '../../api/builtin.ts';
import { equalJson } from '../../api/equal.ts';
import { controllerReference } from '../../api/metadata.ts';
import { objectKey } from '../../api/object-key.ts';
import type { DeepReadonly, Draft, KubernetesObject, OwnerReference } from '../../api/object.ts';
import type { SharedInformer } from '../../cache/shared-informer.ts';
import type { OwnedObjectContext } from '../../manager/owned-object.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import { messageOf } from '../../util/values.ts';
import { claimName } from './stateful-set-pod.ts';
import type { Member } from './stateful-set-pod.ts';
import { forEachObject } from '../../manager/rejections.ts';

type Claim = DeepReadonly<PersistentVolumeClaim>;

/** Creates the PersistentVolumeClaims of a StatefulSet, and owns them as its retention policy says. */
export class StatefulSetClaims {
  readonly #set: DeepReadonly<StatefulSet>;
  readonly #cache: SharedInformer<PersistentVolumeClaim>;
  readonly #context: OwnedObjectContext;
  readonly #recorder: EventRecorder;

  constructor(
    set: DeepReadonly<StatefulSet>,
    cache: SharedInformer<PersistentVolumeClaim>,
    context: OwnedObjectContext,
    recorder: EventRecorder,
  ) {
    this.#set = set;
    this.#cache = cache;
    this.#context = context;
    this.#recorder = recorder;
  }

  /** Whether a claim belongs to a previous Pod of the same name and will be deleted with it. */
  isStale(owner: Member): boolean {
    if (this.#set.spec?.persistentVolumeClaimRetentionPolicy?.whenScaled !== 'Delete') return false;
    return this.#existing(owner).some(({ metadata }) =>
      metadata.ownerReferences?.some(
        (reference) => isPod(reference, owner.name) && reference.uid !== owner.pod?.metadata.uid,
      ),
    );
  }

  /** @throws {Error} if a claim is being deleted or cannot be created */
  async createMissing({ name: podName, ordinal }: Member): Promise<void> {
    const { client, signal } = this.#context;
    const { metadata, spec } = this.#set;
    const templates = (spec?.volumeClaimTemplates ?? []).map((template) => {
      const name = claimName(template.metadata?.name ?? '', metadata.name, ordinal);
      return { kind: PERSISTENT_VOLUME_CLAIMS.kind, metadata: { name }, template };
    });
    await forEachObject(templates, async ({ metadata: { name }, template }) => {
      const existing = this.#cache.lister.get(objectKey(metadata.namespace, name));
      if (existing?.metadata.deletionTimestamp !== undefined) {
        throw new Error(`pvc ${name} is being deleted`);
      }
      if (existing) return;
      const draft = structuredClone(template) as Draft<PersistentVolumeClaim>;
      delete draft.status;
      const labels = { ...draft.metadata.labels, ...spec?.selector.matchLabels };
      draft.metadata = { ...draft.metadata, name, namespace: metadata.namespace ?? '', labels };
      const body = { ...draft, apiVersion: 'v1', kind: 'PersistentVolumeClaim' };
      const subject = `Pod ${podName} in StatefulSet ${metadata.name}`;
      try {
        await client.create(PERSISTENT_VOLUME_CLAIMS, body, { signal });
        const message = `Create Claim ${name} ${subject} success`;
        this.#recorder.normal(this.#set, 'SuccessfulCreate', message);
      } catch (error) {
        if (!isApiError(error, 'alreadyExists')) {
          const message = `Create Claim ${name} for ${subject} failed error: ${messageOf(error)}`;
          this.#recorder.warning(this.#set, 'FailedCreate', message);
        }
        throw error;
      }
    });
  }

  /** Sets the owner references of the claims. Returns whether one was changed. */
  async updateOwners(owner: Member): Promise<boolean> {
    const { client, signal } = this.#context;
    let isChanged = false;
    await forEachObject(this.#existing(owner), async ({ metadata }) => {
      const { name, uid, resourceVersion, ownerReferences = [] } = metadata;
      const { wanted, hasOtherController } = this.#ownersOf(ownerReferences, owner);
      if (hasOtherController) {
        const message = `PersistentVolumeClaim ${name} has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim`;
        this.#recorder.warning(this.#set, 'ConflictingController', message);
      }
      if (equalJson(wanted, ownerReferences)) return;
      const body = { metadata: { uid, resourceVersion, ownerReferences: wanted } };
      await client.patch(PERSISTENT_VOLUME_CLAIMS, metadata, { type: 'merge', body }, { signal });
      isChanged = true;
    });
    return isChanged;
  }

  #existing({ ordinal }: Member): Claim[] {
    const { metadata, spec } = this.#set;
    return (spec?.volumeClaimTemplates ?? []).flatMap((template) => {
      const name = claimName(template.metadata?.name ?? '', metadata.name, ordinal);
      return this.#cache.lister.get(objectKey(metadata.namespace, name)) ?? [];
    });
  }

  #ownersOf(
    references: readonly DeepReadonly<OwnerReference>[],
    { name, pod, isCondemned }: Member,
  ): {
    readonly wanted: readonly DeepReadonly<OwnerReference>[];
    readonly hasOtherController: boolean;
  } {
    const { whenScaled, whenDeleted } = this.#set.spec?.persistentVolumeClaimRetentionPolicy ?? {};
    const isSet = (reference: DeepReadonly<OwnerReference>) =>
      reference.kind === 'StatefulSet' &&
      reference.apiVersion === 'apps/v1' &&
      reference.name === this.#set.metadata.name;
    const isStale = references.some(
      (reference) =>
        (isSet(reference) && reference.uid !== this.#set.metadata.uid) ||
        (isPod(reference, name) && reference.uid !== pod?.metadata.uid),
    );
    // The garbage collector deletes it.
    if (isStale) return { wanted: references, hasOtherController: false };
    const others = references.filter((reference) => !isSet(reference) && !isPod(reference, name));
    const hasPolicy = whenScaled === 'Delete' || whenDeleted === 'Delete';
    const hasOtherController = hasPolicy && others.some(({ controller }) => controller === true);
    if (hasOtherController) return { wanted: others, hasOtherController };
    let controller: DeepReadonly<KubernetesObject> | undefined;
    if (isCondemned && whenScaled === 'Delete') controller = pod;
    else if (whenDeleted === 'Delete') controller = this.#set;
    const present = references.find(({ uid }) => uid === controller?.metadata.uid);
    if (!controller) return { wanted: others, hasOtherController };
    if (present?.controller === true && others.length === references.length - 1) {
      return { wanted: references, hasOtherController };
    }
    return { wanted: [...others, controllerReference(controller)], hasOtherController };
  }
}

function isPod({ apiVersion, kind, name }: DeepReadonly<OwnerReference>, podName: string): boolean {
  return apiVersion === 'v1' && kind === 'Pod' && name === podName;
}
