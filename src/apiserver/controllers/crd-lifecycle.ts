import { shallowCopy } from '../objects/resource-definition.ts';
import { setCondition } from '../../api/conditions.ts';
import { equalJson } from '../../api/equal.ts';
import { withoutFinalizer } from '../../api/metadata.ts';
import { ApiServices, registeredGroup } from './api-services.ts';
import type { Backend } from '../operations/call.ts';
import { nameStatus } from '../crd/crd-names.ts';
import type { Crd } from '../crd/custom-resource.ts';
import { definitionsOf, schemaOf } from '../crd/custom-resource.ts';
import { startDeletion } from '../operations/deletion.ts';
import { linkedSchema } from '../schema/builtin-schemas.ts';
import { trackUpdateOfVersion } from '../managedfields/track-update.ts';
import { removeObject } from '../operations/guaranteed-update.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
  WriteObserver,
} from '../objects/resource-definition.ts';
import { applyDefaults } from '../schema/defaulting.ts';
import { approvalCondition, checkCrd, checkCrdStatus } from '../crd/crd-validation.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import { prune } from '../schema/pruning.ts';

const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';
const SCHEMA = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition';
const CRDS = { group: 'apiextensions.k8s.io', plural: 'customresourcedefinitions' } as const;

type StoredCrd = StoredObject & Crd;

const AT_ONCE = {
  uid: undefined,
  resourceVersion: undefined,
  gracePeriodSeconds: undefined,
  propagationPolicy: undefined,
  dryRun: false,
} as const;

/** The resources from which the served ones follow. */
const RESTORED_WITH = [
  'apiextensions.k8s.io/customresourcedefinitions',
  'apiregistration.k8s.io/apiservices',
];

/**
 * Handles writes to CRDs: accepts names, serves, updates and removes resources, and deletes the objects
 * of a deleted CRD.
 *
 *   created ── names accepted ──► established, served ── deleted ──► terminating ── empty ──► gone
 *                  │                                                     ▲
 *                  └─ a name is taken: waits for it                      └─ objects with finalizers
 *
 * All steps run synchronously after the write, before any other request. As upstream, the status is a
 * separate write.
 */
export class CrdLifecycle implements WriteObserver {
  readonly #backend: Omit<Backend, 'observer'>;
  readonly #apiServices: ApiServices;
  /** Served definitions by the name of the CRD. */
  readonly #served = new Map<string, readonly ResourceDefinition[]>();
  /** Objects as they were written, by the object that a later schema made of them. */
  readonly #written = new WeakMap<StoredObject, StoredObject>();

  constructor(backend: Omit<Backend, 'observer'>) {
    this.#backend = backend;
    this.#apiServices = new ApiServices(backend);
  }

  written(definition: ResourceDefinition, object: StoredObject): void {
    if (isCrd(definition)) this.#changed(object as StoredCrd);
    else this.#register(registeredGroup(definition, object));
  }

  removed(definition: ResourceDefinition, object: StoredObject): void {
    if (isCrd(definition)) this.#gone(object as StoredCrd);
    else if (definition.custom && definition.terminating) this.#finish(definition);
    else this.#register(registeredGroup(definition, object));
  }

  /** @param resources group and plural of each */
  dependsOn(resources: ReadonlySet<string>): boolean {
    return RESTORED_WITH.some((resource) => resources.has(resource));
  }

  /**
   * Serves exactly the resources of the stored CRDs, after a restore. Completes what a crash interrupted, and
   * reads the stored objects with the current schemas.
   */
  restored(): void {
    const { registry } = this.#backend;
    for (const definition of [...this.#served.values()].flat()) registry.remove(definition);
    this.#served.clear();
    for (const crd of this.#all()) {
      const { conditions = [] } = crd.status ?? {};
      if (conditions.some(({ type, status }) => type === 'Established' && status === 'True')) {
        this.#serve(crd, true);
        this.#reread(crd);
      }
    }
    for (const crd of this.#all()) this.#changed(crd);
  }

  #register(group: string | undefined): void {
    if (group !== undefined) this.#apiServices.sync(group, this.#all());
  }

  #changed(crd: StoredCrd): void {
    this.#register(crd.spec.group);
    if (crd.metadata.deletionTimestamp !== undefined) {
      this.#terminate(crd);
      return;
    }
    const settled = this.#withStatus(crd);
    if (settled.established) this.#serve(settled.crd);
    // Another CRD may wait for a name that this CRD has released.
    if (settled.crd !== crd) this.#reconsiderOthers(crd);
  }

  #gone(crd: StoredCrd): void {
    const { store, registry } = this.#backend;
    for (const definition of this.#served.get(crd.metadata.name) ?? []) registry.remove(definition);
    this.#served.delete(crd.metadata.name);
    store.collection(resourceOf(crd)).history.endFollowers();
    this.#register(crd.spec.group);
    this.#reconsiderOthers(crd);
  }

  /** Writes the status of the names if it has changed. */
  #withStatus(crd: StoredCrd): { crd: StoredCrd; established: boolean } {
    const { store, clock } = this.#backend;
    const others = this.#all();
    const {
      acceptedNames,
      conditions: ofNames,
      established,
    } = nameStatus(crd, others, clock.now());
    const approval = approvalCondition(crd);
    const conditions = approval ? setCondition(ofNames, approval, clock.now()) : ofNames;
    const storedVersions = new Set([
      ...(crd.status?.storedVersions ?? []),
      ...crd.spec.versions.filter(({ storage }) => storage).map(({ name }) => name),
    ]);
    const status = { conditions, acceptedNames, storedVersions: [...storedVersions] };
    if (equalJson(status, crd.status)) return { crd, established };
    const next = trackUpdateOfVersion({
      manager: 'kube-apiserver',
      apiVersion: crd.apiVersion,
      subresource: 'status',
      schema: linkedSchema(SCHEMA),
      now: clock.now(),
      before: crd,
      after: { ...shallowCopy(crd), status },
    });
    return { crd: store.collection(CRDS).put(next as ApiObject) as StoredCrd, established };
  }

  #serve(crd: StoredCrd, isRestored: boolean = false): void {
    const { store, registry } = this.#backend;
    const { name } = crd.metadata;
    const before = this.#served.get(name) ?? [];
    const next = definitionsOf(crd);
    if (before.length > 0 && equalJson(comparable(before), comparable(next))) return;
    for (const definition of before) registry.remove(definition);
    for (const definition of next) registry.add(definition);
    this.#served.set(name, next);
    const { history } = store.collection(resourceOf(crd));
    if (before.length > 0) {
      // Stored objects are read with the new schema, and watches are restarted.
      this.#reread(crd);
      history.endFollowers();
    } else if (!isRestored) {
      // As upstream, whose watch cache starts when the CRD is served.
      history.compact(store.revision);
    }
  }

  #reread(crd: StoredCrd): void {
    const { group, versions } = crd.spec;
    const schemas = new Map(
      versions.map((version) => [`${group}/${version.name}`, schemaOf(version)]),
    );
    this.#backend.store.collection(resourceOf(crd)).reinterpret((object) => {
      const written = this.#written.get(object) ?? object;
      const schema = schemas.get(written.apiVersion);
      const next = schema ? reread(written, schema) : written;
      if (next !== written) this.#written.set(next, written);
      return next;
    });
  }

  /** Rejects creates, deletes all objects, and deletes the CRD after the last object. */
  #terminate(crd: StoredCrd): void {
    const { store, registry } = this.#backend;
    const definitions = definitionsOf(crd);
    if (this.#served.has(crd.metadata.name)) {
      for (const definition of definitions) registry.add(definition);
      this.#served.set(crd.metadata.name, definitions);
    }
    const [definition] = definitions;
    const collection = store.collection(resourceOf(crd));
    if (definition) {
      // The CRD is deleted once, after its last object, independent of the client that deletes that.
      const quiet = { written: () => undefined, removed: () => undefined };
      const backend = { ...this.#backend, observer: quiet };
      for (const object of collection.list())
        startDeletion({ backend, definition }, object, AT_ONCE);
    }
    if (collection.size === 0) this.#release(crd);
  }

  #finish({ group, plural }: ResourceDefinition): void {
    const { store } = this.#backend;
    if (store.collection({ group, plural }).size > 0) return;
    const crd = store.collection(CRDS).get(undefined, `${plural}.${group}`);
    if (crd?.metadata.deletionTimestamp !== undefined) this.#release(crd as StoredCrd);
  }

  #release(crd: StoredCrd): void {
    const { store } = this.#backend;
    const finalizers = withoutFinalizer(crd, CLEANUP_FINALIZER);
    if (finalizers.length === 0) {
      removeObject({ store, observer: this }, this.#crdDefinition(), crd);
    } else if (finalizers.length !== crd.metadata.finalizers?.length) {
      const next = shallowCopy(crd);
      next.metadata.finalizers = finalizers;
      store.collection(CRDS).put(next);
    }
  }

  #reconsiderOthers(crd: StoredCrd): void {
    for (const other of this.#all()) {
      if (other.spec.group !== crd.spec.group || other.metadata.name === crd.metadata.name)
        continue;
      if (other.metadata.deletionTimestamp !== undefined) continue;
      const settled = this.#withStatus(other);
      if (settled.established) this.#serve(settled.crd);
    }
  }

  #all(): StoredCrd[] {
    return this.#backend.store.collection(CRDS).list() as StoredCrd[];
  }

  #crdDefinition(): ResourceDefinition {
    const definition = this.#backend.registry.find(CRDS.group, 'v1', CRDS.plural);
    if (!definition) throw new Error('The registry does not serve CustomResourceDefinitions');
    return definition;
  }
}

/** Returns the definition of CRDs with validation and deletion. */
export function withCrdRules(
  definition: ResourceDefinition,
  now: () => number,
): ResourceDefinition {
  if (!isCrd(definition)) return definition;
  return {
    ...definition,
    get schema() {
      return definition.schema;
    },
    hooks: {
      ...definition.hooks,
      *validateInSteps(crd, previous, subresource) {
        if (subresource === 'status') return checkCrdStatus(crd);
        return yield* checkCrd(crd, previous);
      },
      // A CRD is never deleted immediately: its objects are deleted first.
      blocksRemoval: ({ metadata }) => metadata.deletionTimestamp === undefined,
      markDeleted: (crd) => {
        crd.metadata.finalizers = [...(crd.metadata.finalizers ?? []), CLEANUP_FINALIZER];
        const { status } = crd as StoredObject as StoredCrd;
        crd['status'] = {
          ...status,
          conditions: setCondition(
            status?.conditions as Parameters<typeof setCondition>[0],
            {
              type: 'Terminating',
              status: 'True',
              reason: 'InstanceDeletionInProgress',
              message: 'CustomResource deletion is in progress',
            },
            now(),
          ),
        };
      },
    },
  };
}

function isCrd({ group, plural }: ResourceDefinition): boolean {
  return group === CRDS.group && plural === CRDS.plural;
}

function resourceOf(crd: StoredCrd): { group: string; plural: string } {
  return { group: crd.spec.group, plural: crd.spec.names.plural };
}

/** Returns the data of definitions without functions, for comparison. */
function comparable(definitions: readonly ResourceDefinition[]): object[] {
  return definitions.map(({ columns, selectableFields, conversion, ...data }) => ({
    ...data,
    conversion: conversion?.webhook,
    columns: columns.map(({ value, ...column }) => ({
      ...column,
      path: typeof value === 'string' ? value : '',
    })),
    selectable: Object.keys(selectableFields ?? {}),
  }));
}

/** Returns a stored object read with the current schema of its version. */
function reread(object: StoredObject, schema: JsonSchema): StoredObject {
  const copy = { ...object };
  prune(copy, schema);
  const next = applyDefaults(copy, schema);
  const names = Object.keys(next);
  const isSame = names.length === Object.keys(object).length;
  return isSame && names.every((name) => next[name] === object[name]) ? object : next;
}
