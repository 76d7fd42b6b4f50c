import { isApiError, isNamespaceTerminating } from '../../api/api-error.ts';
import { ENDPOINTS, PODS, SERVICES } from '../../api/builtin.ts';
import type { Endpoints } from '../../api/builtin.ts';
import { equalJson } from '../../api/equal.ts';
import { keyOf } from '../../api/object-key.ts';
import { isPodReady } from '../../api/workloads.ts';
import { deleteOwnedObject } from '../../manager/owned-object.ts';
import { Controller } from '../../manager/controller.ts';
import { compareText } from '../../util/values.ts';
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
import type { EndpointPort } from './service-endpoints.ts';

const OWN_LABELS = { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' };

type Subset = NonNullable<Endpoints['subsets']>[number];
type Address = NonNullable<Subset['addresses']>[number];

/** A Pod as an address of one port. */
interface Served {
  readonly address: Address;
  readonly ready: boolean;
  /** Undefined for a headless Service without ports. */
  readonly port: EndpointPort | undefined;
}

/** Endpoints controller: maintains the Endpoints object of each Service with a selector. */
export function endpointsController(deps: ClusterDeps): Controller {
  const services = deps.informers.for(SERVICES);
  const pods = deps.informers.for(PODS);
  const all = deps.informers.for(ENDPOINTS);
  return new Controller(deps, {
    name: 'endpoints',
    kind: SERVICES.kind,
    concurrency: 5,
    sync: async (key, context) => {
      const { client, signal } = context;
      const service = services.lister.get(key);
      const current = all.lister.get(key);
      try {
        if (!service) {
          if (current) await deleteOwnedObject(context, ENDPOINTS, current);
          return done();
        }
        const selector = selectorOf(service);
        if (!selector) return done();
        const { name, namespace = '' } = service.metadata;
        const { publishNotReadyAddresses = false, clusterIP, ports = [] } = service.spec ?? {};
        const [type = 'IPv4'] = addressTypesOf(service);
        const served = pods.lister.list({ namespace, selector }).flatMap((pod): Served[] => {
          const [ip] = addressesOf(pod, type);
          const isTerminating = pod.metadata.deletionTimestamp !== undefined;
          if (!ip || (isTerminating && !publishNotReadyAddresses)) return [];
          const address = { ip, ...podFields(pod, service) };
          const ready = publishNotReadyAddresses || isPodReady(pod);
          if (ports.length === 0) {
            return clusterIP === 'None' ? [{ address, ready, port: undefined }] : [];
          }
          return portsOf(service, pod).map((port) => ({ address, ready, port }));
        });
        const subsets = subsetsOf(served);
        const labels = endpointLabels(service, OWN_LABELS);
        const draft = { apiVersion: 'v1', kind: 'Endpoints', subsets };
        if (!current) {
          const metadata = { name, namespace, labels };
          await client.create(ENDPOINTS, { ...draft, metadata }, { signal });
        } else if (
          !equalJson(current.subsets ?? [], subsets) ||
          !equalJson(current.metadata.labels, labels)
        ) {
          const { metadata } = structuredClone(current) as Endpoints;
          const next = { ...draft, metadata: { ...metadata, labels } };
          await client.update(ENDPOINTS, next, { signal });
        }
      } catch (error) {
        if (!isNamespaceTerminating(error) && !isApiError(error, 'notFound')) throw error;
      }
      return done();
    },
  })
    .for(services)
    .watches(all, keyOf, { predicates: [{ create: () => false, update: () => false }] })
    .watches(pods, mapToServices(services.lister), { predicates: [changesEndpoints] });
}

/** Groups addresses that serve the same ports, in the canonical order. */
function subsetsOf(served: readonly Served[]): Subset[] {
  const byPort = Map.groupBy(served, ({ port }) => JSON.stringify(port ?? null));
  const subsets = Map.groupBy(byPort.values(), (group) =>
    JSON.stringify(group.map(({ address, ready }) => [address.ip, address.targetRef?.uid, ready])),
  );
  const list = Array.from(subsets.values(), (groups): Subset => {
    const group = (groups[0] ?? []).toSorted((a, b) => compareText(a.address.ip, b.address.ip));
    const [addresses, notReadyAddresses] = [true, false].map((wanted) =>
      group.filter(({ ready }) => ready === wanted).map(({ address }) => address),
    );
    const ports = groups.flatMap(([first]) => nameless(first?.port) ?? []);
    return {
      ...(addresses?.length && { addresses }),
      ...(notReadyAddresses?.length && { notReadyAddresses }),
      ...(ports.length > 0 && { ports }),
    };
  });
  return list.toSorted((a, b) => compareText(JSON.stringify(a), JSON.stringify(b)));
}

/** Endpoints omit an empty name. */
function nameless(port: EndpointPort | undefined): EndpointPort | undefined {
  if (!port || port.name) return port;
  const { name: _name, ...rest } = port;
  return rest;
}
