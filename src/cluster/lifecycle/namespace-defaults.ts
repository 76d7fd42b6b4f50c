import { isApiError, isNamespaceTerminating } from '../../api/api-error.ts';
import { CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS } from '../../api/builtin.ts';
import type { ConfigMap } from '../../api/builtin.ts';
import { equalJson } from '../../api/equal.ts';
import { objectKey } from '../../api/object-key.ts';
import type { ObjectKey, ObjectName } from '../../api/object-key.ts';
import type { Draft, KubernetesObject } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext } from '../../manager/controller-options.ts';
import { done } from '../../workqueue/outcome.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';

const ROOT_CA = 'kube-root-ca.crt';
const DESCRIPTION = 'kubernetes.io/description';

/** Creates the ServiceAccount `default` of each namespace, again when it is deleted. */
export function serviceAccounts(deps: ClusterDeps): Controller {
  const namespaces = deps.informers.for(NAMESPACES);
  const accounts = deps.informers.for(SERVICE_ACCOUNTS);
  return new Controller(deps, {
    name: 'serviceaccount',
    kind: NAMESPACES.kind,
    sync: async (key, context) => {
      const isActive = namespaces.lister.get(key)?.status?.phase === 'Active';
      if (isActive && !accounts.lister.get(objectKey(key, 'default'))) {
        const metadata = { namespace: key, name: 'default' };
        const draft = { apiVersion: 'v1', kind: 'ServiceAccount', metadata };
        await create(context, SERVICE_ACCOUNTS, draft);
      }
      return done();
    },
  })
    .for(namespaces)
    .watches(accounts, ({ metadata }) =>
      metadata.name === 'default' ? toNamespace(metadata) : undefined,
    );
}

/**
 * Publishes the CA certificate of the server as ConfigMap `kube-root-ca.crt` of each namespace, and restores
 * it when it is changed or deleted.
 */
export function rootCaPublisher(deps: ClusterDeps, caPem: string): Controller {
  const namespaces = deps.informers.for(NAMESPACES);
  const configMaps = deps.informers.for(CONFIG_MAPS, {
    fieldSelector: `metadata.name=${ROOT_CA}`,
  });
  const data = { 'ca.crt': caPem };
  const annotations = {
    [DESCRIPTION]:
      'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.',
  };
  return new Controller(deps, {
    name: 'root-ca-publisher',
    kind: NAMESPACES.kind,
    sync: async (key, context) => {
      const namespace = namespaces.lister.get(key);
      if (!namespace || namespace.metadata.deletionTimestamp !== undefined) return done();
      const current = configMaps.lister.get(objectKey(key, ROOT_CA));
      if (!current) {
        const metadata = { namespace: key, name: ROOT_CA, annotations };
        await create(context, CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
      } else if (!equalJson(current.data, data) || !current.metadata.annotations?.[DESCRIPTION]) {
        const { client, signal } = context;
        const { metadata, ...rest } = structuredClone(current) as ConfigMap;
        const merged = { ...metadata, annotations: { ...metadata.annotations, ...annotations } };
        await client.update(CONFIG_MAPS, { ...rest, data, metadata: merged }, { signal });
      }
      return done();
    },
  })
    .for(namespaces)
    .watches(configMaps, ({ metadata }) => toNamespace(metadata));
}

function toNamespace({ namespace = '' }: ObjectName): ObjectKey {
  return objectKey(undefined, namespace);
}

/** Creates an object, unless it exists or its namespace is being deleted. */
async function create<T extends KubernetesObject>(
  { client, signal }: SyncContext,
  resource: Resource<T>,
  draft: Draft<T>,
): Promise<void> {
  try {
    await client.create(resource, draft, { signal });
  } catch (error) {
    if (!isApiError(error, 'alreadyExists', 'notFound') && !isNamespaceTerminating(error)) {
      throw error;
    }
  }
}
