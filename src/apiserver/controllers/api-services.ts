import { localCondition } from '../builtin/apiregistration/api-service.ts';
import { shallowCopy } from '../objects/resource-definition.ts';
import { timestamp } from '../../api/conditions.ts';
import { equalJson } from '../../api/equal.ts';
import type { Backend } from '../operations/call.ts';
import type { Crd } from '../crd/custom-resource.ts';
import { linkedSchema } from '../schema/builtin-schemas.ts';
import { removeObject } from '../operations/guaranteed-update.ts';
import { trackUpdateOfVersion } from '../managedfields/track-update.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';

/** Label of APIServices that the server writes: `true`, or `onstart` for those that it only creates when it starts. */
const AUTOMANAGED = 'kube-aggregator.kubernetes.io/automanaged';
const LABELS = { [AUTOMANAGED]: 'true' };

const SCHEMA = 'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService';
const RESOURCE = { group: 'apiregistration.k8s.io', plural: 'apiservices' } as const;

/**
 * Keeps an APIService for each served version of a CRD, as the aggregation layer of kube-apiserver does. Those of
 * built-in groups are bootstrap objects.
 */
export class ApiServices {
  readonly #backend: Omit<Backend, 'observer'>;

  constructor(backend: Omit<Backend, 'observer'>) {
    this.#backend = backend;
  }

  /** Creates, restores and removes the APIServices of a group after a change of them or of a CRD. */
  sync(group: string, crds: readonly Crd[]): void {
    const { store, registry } = this.#backend;
    const definition = registry.find(RESOURCE.group, 'v1', RESOURCE.plural);
    if (!definition) return;
    const wanted = new Set(
      crds
        .filter(({ spec }) => spec.group === group)
        .flatMap(({ spec }) => spec.versions.filter(({ served }) => served))
        .map(({ name }) => name),
    );
    const collection = store.collection(RESOURCE);
    for (const version of wanted) {
      this.#put(group, version, collection.get(undefined, `${version}.${group}`));
    }
    for (const found of collection.list()) {
      const { group: of, version = '' } = specOf(found);
      if (of !== group || wanted.has(version) || !isAutomanaged(found)) continue;
      // Nothing waits for the end of an APIService.
      const observer = { written: () => undefined, removed: () => undefined };
      removeObject({ store, observer }, definition, found);
    }
  }

  #put(group: string, version: string, found: StoredObject | undefined): void {
    const { store, clock, uid } = this.#backend;
    const spec = { group, version, groupPriorityMinimum: 1000, versionPriority: 100 };
    if (found && (!isAutomanaged(found) || equalJson(found['spec'], spec))) return;
    const apiVersion = `${RESOURCE.group}/v1`;
    const creationTimestamp = timestamp(clock.now());
    const metadata = { name: `${version}.${group}`, labels: LABELS };
    const created = { apiVersion, kind: 'APIService', metadata, spec };
    const after = found ? { ...shallowCopy(found), spec } : created;
    const tracked = trackUpdateOfVersion({
      manager: 'kube-apiserver',
      apiVersion,
      schema: linkedSchema(SCHEMA),
      now: clock.now(),
      before: found,
      after,
    }) as ApiObject;
    if (found) {
      store.collection(RESOURCE).put(tracked);
      return;
    }
    store.collection(RESOURCE).put({
      ...tracked,
      metadata: { ...tracked.metadata, uid: uid(), resourceVersion: '', creationTimestamp },
      status: { conditions: [localCondition(creationTimestamp)] },
    });
  }
}

function isAutomanaged({ metadata }: StoredObject): boolean {
  return metadata.labels?.[AUTOMANAGED] === 'true';
}

/** Returns the group of an APIService; undefined for another object. */
export function registeredGroup(
  { group, plural }: ResourceDefinition,
  object: StoredObject,
): string | undefined {
  return group === RESOURCE.group && plural === RESOURCE.plural ? specOf(object).group : undefined;
}

function specOf(service: StoredObject): { readonly group?: string; readonly version?: string } {
  return service['spec'] ?? {};
}
