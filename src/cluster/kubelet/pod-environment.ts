import { textFromBase64 } from '../../util/bytes.ts';
import { isApiError } from '../../api/api-error.ts';
import { CONFIG_MAPS, SECRETS } from '../../api/builtin.ts';
import type { ConfigMap, Pod, Secret } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import type { OwnedObjectContext } from '../../manager/owned-object.ts';
import { expandReferences } from './simulated-program.ts';
import type { WorkBudget } from '../shell/work-budget.ts';

type DataObject = ConfigMap | Secret;

type Container = NonNullable<DeepReadonly<Pod>['spec']>['containers'][number];

/** Why a Pod cannot start. */
export type StartProblem =
  /** A container refers to data that does not exist. */
  | { readonly kind: 'container'; readonly container: string; readonly message: string }
  /** A volume needs an object that does not exist. */
  | { readonly kind: 'volume'; readonly message: string };

/** Environment variables by container; or why the Pod cannot start. */
export interface PodEnvironment {
  readonly variables: ReadonlyMap<string, ReadonlyMap<string, string>>;
  readonly problems: readonly StartProblem[];
}

/**
 * Reads the ConfigMaps and Secrets of a Pod. Error messages are those of kubelets.
 *
 * @throws {ApiError} if an object cannot be read
 * @throws {OverBudget} if the Pod needs too much work
 */
export async function podEnvironment(
  pod: DeepReadonly<Pod>,
  context: OwnedObjectContext,
  budget: WorkBudget,
): Promise<PodEnvironment> {
  const reader = new Reader(pod, context, budget);
  const problems: StartProblem[] = [];
  for (const volume of pod.spec?.volumes ?? []) {
    const sources = [
      volume,
      ...(volume.projected?.sources ?? []).map(({ configMap, secret }) => ({
        configMap,
        secret: secret && { secretName: secret.name, optional: secret.optional },
      })),
    ];
    for (const { configMap, secret } of sources) {
      const missing =
        (await reader.missing(CONFIG_MAPS, configMap?.name, configMap?.optional)) ??
        (await reader.missing(SECRETS, secret?.secretName, secret?.optional));
      if (!missing) continue;
      const message = `MountVolume.SetUp failed for volume "${volume.name}" : ${missing}`;
      problems.push({ kind: 'volume', message });
    }
  }
  const variables = new Map<string, ReadonlyMap<string, string>>();
  for (const container of [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])]) {
    try {
      variables.set(container.name, await reader.variables(container));
    } catch (error) {
      if (!(error instanceof MissingData)) throw error;
      const { message } = error;
      problems.push({ kind: 'container', container: container.name, message });
    }
  }
  return { variables, problems };
}

class MissingData extends Error {}

/** Number of operations for the request of an object. */
const READ = 1000;

class Reader {
  readonly #pod: DeepReadonly<Pod>;
  readonly #context: OwnedObjectContext;
  readonly #budget: WorkBudget;
  readonly #read = new Map<string, Promise<DataObject | undefined>>();

  constructor(pod: DeepReadonly<Pod>, context: OwnedObjectContext, budget: WorkBudget) {
    this.#pod = pod;
    this.#context = context;
    this.#budget = budget;
  }

  /** Returns the message for a missing object. */
  async missing(
    resource: Resource<DataObject>,
    name: string | undefined,
    optional = false,
  ): Promise<string | undefined> {
    if (!name || optional || (await this.#get(resource, name))) return undefined;
    return `${resource.kind.toLowerCase()} "${name}" not found`;
  }

  /** @throws {MissingData} */
  async variables({ env = [], envFrom = [] }: Container): Promise<ReadonlyMap<string, string>> {
    const variables = new Map<string, string>();
    for (const { prefix = '', configMapRef, secretRef } of envFrom) {
      for (const [resource, reference] of [
        [CONFIG_MAPS, configMapRef],
        [SECRETS, secretRef],
      ] as const) {
        const data = await this.#dataOf(resource, reference);
        for (const [key, value] of Object.entries(data ?? {})) {
          this.#budget.spend(prefix.length + key.length);
          variables.set(prefix + key, this.#textOf(resource, value));
        }
      }
    }
    for (const { name, value, valueFrom } of env) {
      this.#budget.spend(name.length);
      if (value !== undefined) {
        variables.set(name, expandReferences(value, variables, this.#budget));
      }
      const { configMapKeyRef, secretKeyRef, fieldRef } = valueFrom ?? {};
      for (const [resource, reference] of [
        [CONFIG_MAPS, configMapKeyRef],
        [SECRETS, secretKeyRef],
      ] as const) {
        if (!reference) continue;
        const data = (await this.#dataOf(resource, reference)) ?? {};
        const found = Object.hasOwn(data, reference.key) ? data[reference.key] : undefined;
        if (found !== undefined) variables.set(name, this.#textOf(resource, found));
        else if (!reference.optional) {
          const object = `${resource.kind} ${this.#pod.metadata.namespace}/${reference.name}`;
          throw new MissingData(`couldn't find key ${reference.key} in ${object}`);
        }
      }
      if (fieldRef) variables.set(name, fieldOf(this.#pod, fieldRef.fieldPath));
    }
    return variables;
  }

  async #dataOf(
    resource: Resource<DataObject>,
    reference: { readonly name?: string; readonly optional?: boolean } | undefined,
  ): Promise<Readonly<Record<string, string>> | undefined> {
    if (!reference?.name) return undefined;
    const missing = await this.missing(resource, reference.name, reference.optional);
    if (missing) throw new MissingData(missing);
    return (await this.#get(resource, reference.name))?.data;
  }

  #textOf(resource: Resource<DataObject>, value: string): string {
    this.#budget.spend(value.length);
    return resource === SECRETS ? textFromBase64(value) : value;
  }

  #get(resource: Resource<DataObject>, name: string): Promise<DataObject | undefined> {
    this.#budget.spend(0);
    const id = `${resource.plural}/${name}`;
    const read = this.#read.get(id) ?? this.#fetch(resource, name);
    this.#read.set(id, read);
    return read;
  }

  async #fetch(resource: Resource<DataObject>, name: string): Promise<DataObject | undefined> {
    this.#budget.spend(0, READ);
    const { client, signal } = this.#context;
    const { namespace } = this.#pod.metadata;
    try {
      return await client.get(resource, { namespace, name }, { signal });
    } catch (error) {
      if (isApiError(error, 'notFound')) return undefined;
      throw error;
    }
  }
}

/** Returns a field of the downward API, or an empty text. */
function fieldOf({ metadata, spec, status }: DeepReadonly<Pod>, path: string): string {
  const [, map, key = ''] = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path) ?? [];
  if (map === 'labels' || map === 'annotations') {
    const values = metadata[map] ?? {};
    return (Object.hasOwn(values, key) && values[key]) || '';
  }
  switch (path) {
    case 'metadata.name':
      return metadata.name;
    case 'metadata.namespace':
      return metadata.namespace ?? '';
    case 'metadata.uid':
      return metadata.uid;
    case 'spec.nodeName':
      return spec?.nodeName ?? '';
    case 'spec.serviceAccountName':
      return spec?.serviceAccountName ?? '';
    case 'status.podIP':
      return status?.podIP ?? '';
    case 'status.hostIP':
      return status?.hostIP ?? '';
    default:
      return '';
  }
}
