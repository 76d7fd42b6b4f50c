import { ENDPOINT_SLICES, ENDPOINTS, SERVICES } from '../../api/builtin.ts';
import type { Endpoints } from '../../api/builtin.ts';
import { keyOf, splitKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { Controller } from '../../manager/controller.ts';
import { done } from '../../workqueue/outcome.ts';
import {
  deleteSlices,
  MANAGED_BY,
  mapToService,
  planSlices,
  SERVICE_NAME,
  writeSlices,
} from './endpoint-slice.ts';
import type { ServedEndpoint } from './endpoint-slice.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';

const MANAGER = 'endpointslicemirroring-controller.k8s.io';
const SKIP_MIRROR = 'endpointslice.kubernetes.io/skip-mirror'; // words-ok
/** Annotation of an Endpoints object that is the lock of a leader election. */
const LEADER = 'control-plane.alpha.kubernetes.io/leader';

/** Annotations that slices do not get. */
const OWN_ANNOTATIONS: ReadonlySet<string> = new Set([
  'endpoints.kubernetes.io/last-change-trigger-time',
  'kubectl.kubernetes.io/last-applied-configuration',
]);

/** Maximum number of addresses of a subset, the default of kube-controller-manager. */
const MAX_ENDPOINTS = 1000;

/** EndpointSlice mirroring controller: copies Endpoints of Services without a selector to EndpointSlices. */
export function endpointSliceMirroring(deps: ClusterDeps): Controller {
  const services = deps.informers.for(SERVICES);
  const all = deps.informers.for(ENDPOINTS);
  const slices = deps.informers.for(ENDPOINT_SLICES);
  return new Controller(deps, {
    name: 'endpointslice-mirroring',
    kind: ENDPOINTS.kind,
    concurrency: 5,
    sync: async (key, context) => {
      const { namespace, name } = splitKey(key);
      const own = { [SERVICE_NAME]: name, [MANAGED_BY]: MANAGER };
      const existing = slices.lister
        .list({ namespace, selector: { matchLabels: own } })
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined);
      const endpoints = all.lister.get(key);
      const service = services.lister.get(key);
      if (!endpoints || !service || service.spec?.selector || !isCopied(endpoints)) {
        await deleteSlices(context, existing);
        return done();
      }
      const served = servedBy(endpoints);
      const plans = (['IPv4', 'IPv6'] as const).flatMap((addressType) => {
        const desired = served.filter(({ endpoint }) => typeOf(endpoint) === addressType);
        if (desired.length === 0) return [];
        const typed = existing.filter((slice) => slice.addressType === addressType);
        return planSlices(desired, typed, MAX_ENDPOINTS).map((plan) => ({ plan, addressType }));
      });
      const { labels, annotations = {} } = endpoints.metadata;
      const copied = Object.entries(annotations).filter(([each]) => !OWN_ANNOTATIONS.has(each));
      const metadata = { labels: { ...labels, ...own }, annotations: Object.fromEntries(copied) };
      await writeSlices(context, endpoints, plans, metadata, existing);
      return done();
    },
  })
    .for(all)
    .watches(services, keyOf)
    .watches(slices, mapToService(MANAGER));
}

function isCopied({ metadata }: DeepReadonly<Endpoints>): boolean {
  return metadata.labels?.[SKIP_MIRROR] !== 'true' && metadata.annotations?.[LEADER] === undefined;
}

function typeOf({ addresses: [address = ''] }: ServedEndpoint['endpoint']): 'IPv4' | 'IPv6' {
  return address.includes(':') ? 'IPv6' : 'IPv4';
}

function servedBy({ subsets = [] }: DeepReadonly<Endpoints>): ServedEndpoint[] {
  return structuredClone(subsets).flatMap(({ addresses, notReadyAddresses, ports = [] }) => {
    const slicePorts = ports.map((port) => ({ name: '', protocol: 'TCP' as const, ...port }));
    const endpointsOf = (all: typeof addresses, ready: boolean) =>
      (all ?? []).map(({ ip, ...rest }) => ({
        endpoint: { addresses: [ip], conditions: { ready }, ...rest },
        ports: slicePorts,
      }));
    return [...endpointsOf(addresses, true), ...endpointsOf(notReadyAddresses, false)].slice(
      0,
      MAX_ENDPOINTS,
    );
  });
}
