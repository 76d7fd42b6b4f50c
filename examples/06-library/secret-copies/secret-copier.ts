import { Controller, done, isApiError, keyOf, requeueAfter } from 'crd-controller';
import { SECRETS } from 'crd-controller/kinds';
import { equalJson } from 'crd-controller/objects';
import type { Client, ControllerKit, DeepReadonly } from 'crd-controller';
import type { Secret } from 'crd-controller/kinds';

/** Field manager, source of events and value of the label of copies. */
const COMPONENT = 'secret-copier';
const MANAGED_BY = 'app.kubernetes.io/managed-by';

/** Label of the Secrets of the hub that are copied. */
const COPY = { 'example.com/copy': 'yes' };

/** Period after which a Secret that cannot be copied is tried again, because no event reports that it can be. */
const RETRY_MS = 60_000;

/** Returns a controller for each member cluster. */
export function secretCopiers(
  hub: ControllerKit,
  members: ReadonlyMap<string, Client>,
): Controller[] {
  return Array.from(members, ([name, client]) => secretCopier(hub, hub.forCluster(name, client)));
}

/**
 * Copies the labelled Secrets of the hub to a member cluster, and deletes copies whose Secret is deleted or no longer
 * labelled. It needs no finalizer: the copies are found by their label, also after a stop.
 */
function secretCopier(hub: ControllerKit, member: ControllerKit): Controller {
  const secrets = hub.informers.for(SECRETS, { labelSelector: { matchLabels: COPY } });
  const copies = member.informers.for(SECRETS, {
    labelSelector: { matchLabels: { [MANAGED_BY]: COMPONENT } },
  });
  const recorder = hub.events.recorder(COMPONENT);

  // The kit of the member: the client of a sync writes there.
  return new Controller(member, {
    name: 'secret-copier',
    kind: SECRETS.kind,
    sync: async (key, { client, signal }) => {
      const secret = secrets.lister.get(key);
      const copy = copies.lister.get(key);
      const remove = async ({ metadata }: DeepReadonly<Secret>) => {
        const { uid } = metadata;
        await client.delete(SECRETS, metadata, { uid, signal });
      };
      if (!secret) {
        if (copy) await remove(copy);
        return done();
      }
      const desired = copyOf(secret);
      if (!copy) {
        try {
          await client.create(SECRETS, desired, { fieldManager: COMPONENT, signal });
          recorder.normal(secret, 'Copied', `Copied to the cluster ${member.cluster}`);
          return done();
        } catch (error) {
          // The name is taken by a Secret of the member, or the namespace does not exist.
          if (!isApiError(error, 'alreadyExists', 'notFound')) throw error;
          const message = `Not copied to the cluster ${member.cluster}: ${error.message}`;
          recorder.warning(secret, 'NotCopied', message);
          return requeueAfter(RETRY_MS, 'the member may accept it later', { jitter: 0.1 });
        }
      }
      if (equalJson(contentOf(copy), contentOf(desired))) return done();
      if (copy.immutable || copy.type !== secret.type) {
        // The server rejects the update. The event of the deletion starts a sync, which creates the copy.
        await remove(copy);
        return done();
      }
      const { uid, resourceVersion } = copy.metadata;
      const metadata = { ...desired.metadata, uid, resourceVersion };
      await client.update(SECRETS, { ...desired, metadata }, { fieldManager: COMPONENT, signal });
      return done();
    },
  })
    .watches(secrets, keyOf)
    .watches(copies, keyOf);
}

/** Returns the desired copy of a Secret. */
function copyOf({ metadata, ...secret }: DeepReadonly<Secret>) {
  const { name, namespace = '' } = metadata;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, labels: { [MANAGED_BY]: COMPONENT } },
    ...contentOf(secret),
  };
}

function contentOf({
  type,
  immutable,
  data,
}: Pick<DeepReadonly<Secret>, 'type' | 'immutable' | 'data'>) {
  return {
    ...(type !== undefined && { type }),
    ...(immutable !== undefined && { immutable }),
    ...(data && { data: { ...data } }),
  };
}
