import { isNamespaceTerminating } from '../../api/api-error.ts';
import { ENDPOINT_SLICES, NODES, PODS, SERVICES } from '../../api/builtin.ts';
import type { EndpointSlice, Endpoints, Pod, Service } from '../../api/builtin.ts';
import { equalJson } from '../../api/equal.ts';
import { controllerReference } from '../../api/metadata.ts';
import { objectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { isPodReady } from '../../api/workloads.ts';
import { deleteOwnedObject } from '../../manager/owned-object.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext } from '../../manager/controller-options.ts';
import type { MapFunction } from '../../manager/enqueue.ts';
import { done } from '../../workqueue/outcome.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';
import {
  addressesOf,
  addressTypesOf,
  changesEndpoints,
  endpointLabels,
  mapToServices,
  podFields,
  portsOf,
  selectorOf,
} from './service-endpoints.ts';
import type { AddressType, EndpointPort } from './service-endpoints.ts';
import { Rejections, forEachObject } from '../../manager/rejections.ts';

export const SERVICE_NAME = 'kubernetes.io/service-name';
export const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
const MANAGER = 'endpointslice-controller.k8s.io';
const ZONE = 'topology.kubernetes.io/zone';

/** Maximum number of endpoints of a slice, the default of kube-controller-manager. */
const MAX_ENDPOINTS = 100;

type Slice = DeepReadonly<EndpointSlice>;
export type Endpoint = NonNullable<EndpointSlice['endpoints']>[number];

export interface ServedEndpoint {
  readonly endpoint: Endpoint;
  readonly ports: EndpointPort[];
}

/** The desired content of one slice. */
interface Plan {
  /** The slice that gets the content; undefined for a new one. */
  readonly slice: Slice | undefined;
  readonly ports: EndpointPort[];
  readonly endpoints: Endpoint[];
}

/**
 * EndpointSlice controller: maintains slices of at most 100 endpoints for each Service with a selector. It sets
 * no topology hints.
 */
export function endpointSlices(deps: ClusterDeps): Controller {
  const services = deps.informers.for(SERVICES);
  const pods = deps.informers.for(PODS);
  const nodes = deps.informers.for(NODES);
  const slices = deps.informers.for(ENDPOINT_SLICES);
  return new Controller(deps, {
    name: 'endpointslice',
    kind: SERVICES.kind,
    concurrency: 5,
    sync: async (key, context) => {
      const service = services.lister.get(key);
      const selector = service && selectorOf(service);
      if (!selector) return done();
      const { namespace, name, uid } = service.metadata;
      const labels = { [SERVICE_NAME]: name, [MANAGED_BY]: MANAGER };
      const existing = slices.lister
        .list({ namespace, selector: { matchLabels: labels } })
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined);
      const selected = pods.lister.list({ namespace, selector });
      const { publishNotReadyAddresses = false } = service.spec ?? {};
      const withoutNode: string[] = [];
      const plans = addressTypesOf(service).flatMap((addressType) => {
        const desired = selected.flatMap((pod) => {
          const addresses = addressesOf(pod, addressType);
          if (addresses.length === 0) return [];
          const node = nodes.lister.get(objectKey(undefined, pod.spec?.nodeName ?? ''));
          if (!node && !publishNotReadyAddresses) {
            withoutNode.push(pod.metadata.name);
            return [];
          }
          const zone = node?.metadata.labels?.[ZONE];
          return {
            endpoint: endpointOf(pod, service, { addresses, zone }),
            ports: portsOf(service, pod),
          };
        });
        const own = existing.filter(
          (slice) =>
            slice.addressType === addressType &&
            slice.metadata.ownerReferences?.some((owner) => owner.uid === uid),
        );
        return planSlices(desired, own).map((plan) => ({ plan, addressType }));
      });
      const all = endpointLabels(service, labels);
      await writeSlices(context, service, plans, { labels: all }, existing);
      if (withoutNode.length > 0) {
        throw new Error(`Skipped Pods whose node does not exist: ${withoutNode.join(', ')}`);
      }
      return done();
    },
  })
    .for(services)
    .watches(slices, mapToService(MANAGER))
    .watches(nodes, () => undefined)
    .watches(pods, mapToServices(services.lister), { predicates: [changesEndpoints] });
}

/** Maps a slice of a controller to its Service. */
export function mapToService(manager: string): MapFunction<EndpointSlice> {
  return ({ metadata: { namespace, labels = {} } }) =>
    labels[MANAGED_BY] === manager ? objectKey(namespace, labels[SERVICE_NAME] ?? '') : undefined;
}

function endpointOf(
  pod: DeepReadonly<Pod>,
  service: DeepReadonly<Service>,
  { addresses, zone }: { readonly addresses: string[]; readonly zone: string | undefined },
): Endpoint {
  const serving = isPodReady(pod);
  const terminating = pod.metadata.deletionTimestamp !== undefined;
  const ready = service.spec?.publishNotReadyAddresses === true || (serving && !terminating);
  const conditions = { ready, serving, terminating };
  return { addresses, conditions, ...podFields(pod, service), ...(zone && { zone }) };
}

/**
 * Distributes endpoints of one address type to slices, one group of slices for each list of ports. Endpoints
 * stay in their slice. New ones fill slices that change anyway, then a slice with room for all, then new slices.
 * There is always one slice.
 *
 * @param existing slices of this address type
 * @param maxEndpoints maximum number of endpoints of a slice
 */
export function planSlices(
  desired: readonly ServedEndpoint[],
  existing: readonly Slice[],
  maxEndpoints: number = MAX_ENDPOINTS,
): Plan[] {
  const groups = Map.groupBy(desired, ({ ports }) => portsKey(ports));
  const byPorts = Map.groupBy(existing, ({ ports }) => portsKey(ports));
  const plans = Array.from(groups, ([key, group]) => {
    const left = new Map(group.map(({ endpoint }) => [endpointId(endpoint), endpoint]));
    const ports = group[0]?.ports ?? [];
    const own = (byPorts.get(key) ?? [])
      .map((slice): Plan => {
        const ids = (slice.endpoints ?? []).map(endpointId);
        const endpoints = ids.flatMap((id) => left.get(id) ?? []);
        for (const id of ids) left.delete(id);
        return { slice, ports, endpoints };
      })
      .filter(({ endpoints }) => endpoints.length > 0)
      .toSorted((a, b) => b.endpoints.length - a.endpoints.length);
    const fill = ({ endpoints }: Plan) => {
      for (const [id, endpoint] of left) {
        if (endpoints.length === maxEndpoints) return;
        endpoints.push(endpoint);
        left.delete(id);
      }
    };
    const [changed, unchanged] = [false, true].map((same) =>
      own.filter(({ slice, endpoints }) => equalJson(slice?.endpoints, endpoints) === same),
    );
    changed?.forEach(fill);
    const roomy = unchanged?.find(({ endpoints }) => endpoints.length + left.size <= maxEndpoints);
    if (roomy && left.size < maxEndpoints) fill(roomy);
    while (left.size > 0) {
      const plan: Plan = { slice: undefined, ports, endpoints: [] };
      fill(plan);
      own.push(plan);
    }
    return own;
  }).flat();
  if (plans.length === 0) plans.push({ slice: undefined, ports: [], endpoints: [] });
  // A slice that would be deleted gets the content of a new one.
  const planned = new Set(plans.map(({ slice }) => slice));
  const spare = existing.filter((slice) => !planned.has(slice));
  return plans.map(({ slice = spare.pop(), ports, endpoints }) => ({ slice, ports, endpoints }));
}

function portsKey(ports: DeepReadonly<EndpointSlice>['ports']): string {
  const fields = (ports ?? []).map(({ name = '', port, protocol = 'TCP', appProtocol = '' }) =>
    JSON.stringify([name, port, protocol, appProtocol]),
  );
  return fields.toSorted().join();
}

/** Endpoints of the same Pod are the same, also if their conditions differ. */
function endpointId({ addresses, targetRef }: DeepReadonly<Endpoint>): string {
  return `${targetRef?.uid} ${addresses.join()}`;
}

/** A plan, and the type of its addresses. */
interface TypedPlan {
  readonly plan: Plan;
  readonly addressType: AddressType;
}

/** Labels and annotations of slices. Annotations that are not given do not change. */
interface SliceMetadata {
  readonly labels: Record<string, string>;
  readonly annotations?: Record<string, string>;
}

/**
 * Creates and updates the planned slices, and deletes other existing ones.
 *
 * @param owner Service or Endpoints
 */
export async function writeSlices(
  context: SyncContext,
  owner: DeepReadonly<Service | Endpoints>,
  plans: readonly TypedPlan[],
  metadata: SliceMetadata,
  existing: readonly Slice[],
): Promise<void> {
  const rejections = new Rejections();
  for (const plan of plans) {
    const { slice } = plan.plan;
    const { kind } = ENDPOINT_SLICES;
    // A new slice has no name yet.
    const named = { kind, metadata: slice?.metadata ?? { name: `${owner.metadata.name}-` } };
    await rejections.catch(named, () => write(context, owner, plan, metadata));
  }
  rejections.throw();
  const kept = new Set(plans.map(({ plan }) => plan.slice));
  await deleteSlices(
    context,
    existing.filter((slice) => !kept.has(slice)),
  );
}

export function deleteSlices(context: SyncContext, slices: readonly Slice[]): Promise<void> {
  return forEachObject(slices, (slice) => deleteOwnedObject(context, ENDPOINT_SLICES, slice));
}

/** Creates or updates a slice, if it differs from the plan. */
async function write(
  { client, signal }: SyncContext,
  owner: DeepReadonly<Service | Endpoints>,
  { plan: { slice, ports, endpoints }, addressType }: TypedPlan,
  changed: SliceMetadata,
): Promise<void> {
  const { name, namespace = '', deletionTimestamp } = owner.metadata;
  const content = { addressType, ports, endpoints };
  if (slice) {
    const isCurrent =
      portsKey(slice.ports) === portsKey(ports) &&
      equalJson(slice.endpoints ?? [], endpoints) &&
      equalJson(slice.metadata.labels, changed.labels) &&
      (!changed.annotations || equalJson(slice.metadata.annotations ?? {}, changed.annotations));
    if (isCurrent) return;
    const { metadata, ...rest } = structuredClone(slice) as EndpointSlice;
    const next = { ...rest, ...content, metadata: { ...metadata, ...changed } };
    await client.update(ENDPOINT_SLICES, next, { signal });
    return;
  }
  // The garbage collector would delete a slice whose owner is being deleted.
  if (deletionTimestamp !== undefined) return;
  const metadata = {
    generateName: `${name}-`,
    namespace,
    ...changed,
    ownerReferences: [controllerReference(owner)],
  };
  const draft = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata, ...content };
  try {
    await client.create(ENDPOINT_SLICES, draft, { signal });
  } catch (error) {
    if (!isNamespaceTerminating(error)) throw error;
  }
}
