import { isSet, listIn, objectIn, objectsIn, textIn } from '../../util/json-value.ts';
import type { Clock } from '../../util/clock.ts';
import { goQuote } from '../../util/go-quote.ts';
import { copyJson } from '../json/copy-json.ts';
import { generatedName } from '../../api/object-names.ts';
import type { Collection } from '../storage/object-store.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { forbiddenError } from '../objects/status-error.ts';
import type { Attributes } from './attributes.ts';
import { shownName } from './policies.ts';

const DEFAULT = 'default';
const VOLUME_PREFIX = 'kube-api-access-';
const MOUNT_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';
/** Annotation of the copy of a Pod that a kubelet runs from a file. */
const STATIC_POD = 'kubernetes.io/config.mirror'; // words-ok

/** A controller creates the ServiceAccount `default` soon after its namespace, so it is looked up repeatedly. */
const ATTEMPTS = 10;
const RETRY_MS = 150;

/** Lifetime of the token, with which kube-apiserver recognizes tokens that it mounts. */
const TOKEN_SECONDS = 3607;

export interface ServiceAccountDeps {
  readonly accounts: Collection;
  readonly clock: Pick<Clock, 'sleep'>;
  /** Numbers in [0, 1), for the name of the volume. */
  readonly random: () => number;
}

/** Whether the admission plugin ServiceAccount changes objects of a resource. */
export function isOfServiceAccounts({
  group,
  plural,
}: Pick<ResourceDefinition, 'group' | 'plural'>): boolean {
  return group === '' && plural === 'pods';
}

/**
 * The admission plugin ServiceAccount. Returns a new Pod with its ServiceAccount, the token volume of the account
 * and its image pull secrets; other objects unchanged.
 *
 * @throws {StatusError} 403 if the ServiceAccount does not exist
 */
export async function withServiceAccount(
  attributes: Attributes,
  deps: ServiceAccountDeps,
): Promise<StoredObject | undefined> {
  const { object, definition, operation, subresource, namespace, signal } = attributes;
  if (!object || !isOfServiceAccounts(definition)) return object;
  if (operation !== 'CREATE' || subresource !== '') return object;
  if (object.metadata.annotations?.[STATIC_POD] !== undefined) return object;
  const name = textIn(objectIn(object, 'spec'), 'serviceAccountName') || DEFAULT;
  const account = await findAccount(deps, { namespace, name, signal });
  if (account) return prepare(object, account, deps.random);
  throw forbiddenError(
    definition,
    shownName(attributes),
    `error looking up service account ${namespace}/${name}: serviceaccount ${goQuote(name)} not found`,
  );
}

async function findAccount(
  { accounts, clock }: ServiceAccountDeps,
  at: Pick<Attributes, 'namespace' | 'name' | 'signal'>,
): Promise<StoredObject | undefined> {
  const account = accounts.get(at.namespace, at.name);
  if (account || at.name !== DEFAULT) return account;
  for (let attempt = 1; attempt < ATTEMPTS; attempt++) {
    await clock.sleep(RETRY_MS, at.signal);
    at.signal?.throwIfAborted();
    const created = accounts.get(at.namespace, at.name);
    if (created) return created;
  }
  return undefined;
}

function prepare(object: StoredObject, account: StoredObject, random: () => number): ApiObject {
  const pod = copyJson(object) as ApiObject;
  const spec = objectIn(pod, 'spec') ?? {};
  const { name } = account.metadata;
  pod['spec'] = spec;
  spec['serviceAccountName'] = name;
  spec['serviceAccount'] = name;
  const mounts = [spec, account].find((each) => isSet(each, 'automountServiceAccountToken'));
  if (!mounts || mounts['automountServiceAccountToken'] === true) mountToken(spec, random);
  const secrets = listIn(account, 'imagePullSecrets');
  if (listIn(spec, 'imagePullSecrets').length === 0 && secrets.length > 0) {
    spec['imagePullSecrets'] = copyJson(secrets);
  }
  return pod;
}

/** Mounts the token volume in all containers that mount nothing else at its path. */
function mountToken(spec: JsonObject, random: () => number): void {
  const volumes = objectsIn(spec, 'volumes');
  const present = volumes
    .map((volume) => textIn(volume, 'name'))
    .find((volume) => volume.startsWith(VOLUME_PREFIX));
  const name = present ?? generatedName(VOLUME_PREFIX, random);
  let isNeeded = false;
  for (const field of ['initContainers', 'containers'] as const) {
    for (const container of objectsIn(spec, field)) {
      const mounts = objectsIn(container, 'volumeMounts');
      if (mounts.some((mount) => textIn(mount, 'mountPath') === MOUNT_PATH)) continue;
      container['volumeMounts'] = [...mounts, { name, readOnly: true, mountPath: MOUNT_PATH }];
      isNeeded = true;
    }
  }
  if (present === undefined && isNeeded) spec['volumes'] = [...volumes, tokenVolume(name)];
}

function tokenVolume(name: string): object {
  const namespace = { apiVersion: 'v1', fieldPath: 'metadata.namespace' };
  return {
    name,
    projected: {
      defaultMode: 0o644,
      sources: [
        { serviceAccountToken: { path: 'token', expirationSeconds: TOKEN_SECONDS } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        { downwardAPI: { items: [{ path: 'namespace', fieldRef: namespace }] } },
      ],
    },
  };
}
