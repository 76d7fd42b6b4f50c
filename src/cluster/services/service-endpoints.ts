import type { Pod, Service } from '../../api/builtin.ts';
import { equalJson } from '../../api/equal.ts';
import { matchesLabels } from '../../api/label-selector.ts';
import type { Requirement } from '../../api/label-selector.ts';
import { keyOf } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { isFinished, isPodReady } from '../../api/workloads.ts';
import type { Lister } from '../../cache/lister.ts';
import type { MapFunction } from '../../manager/enqueue.ts';
import type { Predicate } from '../../manager/predicate.ts';

const HEADLESS = 'service.kubernetes.io/headless';

export type AddressType = 'IPv4' | 'IPv6';

/** Port of an endpoint, in the form that Endpoints and EndpointSlices share. */
export interface EndpointPort {
  name?: string;
  port: number;
  protocol: 'SCTP' | 'TCP' | 'UDP';
  appProtocol?: string;
}

/** The selectors of Services, which are compared with each change of a Pod. */
const selectors = new WeakMap<DeepReadonly<Service>, readonly Requirement[]>();

/** Returns the selector of a Service whose endpoints are Pods; undefined for other Services. */
export function selectorOf(service: DeepReadonly<Service>): readonly Requirement[] | undefined {
  const { spec } = service;
  if (spec?.type === 'ExternalName') return undefined;
  let selector = selectors.get(service);
  if (!selector) {
    selector = Object.entries(spec?.selector ?? {}).map(([key, value]) => ({
      operator: 'in',
      key,
      values: [value],
    }));
    selectors.set(service, selector);
  }
  return selector.length === 0 ? undefined : selector;
}

export function mapToServices(services: Lister<Service>): MapFunction<Pod> {
  const selects = (service: DeepReadonly<Service>, labels: Pod['metadata']['labels']) => {
    const selector = selectorOf(service);
    return selector !== undefined && matchesLabels(selector, labels);
  };
  return ({ metadata: { namespace, labels } }) =>
    services
      .list({ namespace })
      .filter((service) => selects(service, labels))
      .map(keyOf);
}

/** Accepts changes of Pods that can change endpoints. */
export const changesEndpoints: Predicate<Pod> = {
  update: (old, pod) => !equalJson(endpointFields(old), endpointFields(pod)),
};

function endpointFields(pod: DeepReadonly<Pod>): unknown {
  const { metadata, spec, status } = pod;
  return [
    metadata.labels ?? null,
    metadata.deletionTimestamp !== undefined,
    [spec?.nodeName, spec?.hostname, spec?.subdomain].map((text) => text ?? ''),
    status?.podIPs ?? null,
    isPodReady(pod),
    isFinished(pod),
  ];
}

/** Returns the addresses of a Pod that runs, of one type. */
export function addressesOf(pod: DeepReadonly<Pod>, type: AddressType): string[] {
  if (isFinished(pod)) return [];
  const addresses = (pod.status?.podIPs ?? []).flatMap(({ ip }) => ip ?? []);
  return addresses.filter((address) => address.includes(':') === (type === 'IPv6'));
}

/** Returns the address types of a Service, the first of which is that of its Endpoints. */
export function addressTypesOf({ spec }: DeepReadonly<Service>): AddressType[] {
  const { ipFamilies = [], clusterIP = '' } = spec ?? {};
  if (ipFamilies.length === 0) return [clusterIP.includes(':') ? 'IPv6' : 'IPv4'];
  return ipFamilies.map((family) => (family === 'IPv6' ? 'IPv6' : 'IPv4'));
}

/** Returns the fields of an endpoint that refer to its Pod. */
export function podFields(
  { metadata, spec }: DeepReadonly<Pod>,
  service: DeepReadonly<Service>,
): {
  readonly targetRef: object;
  readonly nodeName?: string;
  readonly hostname?: string;
} {
  const { namespace, name, uid } = metadata;
  const { nodeName, hostname, subdomain } = spec ?? {};
  return {
    targetRef: { kind: 'Pod', namespace, name, uid },
    ...(nodeName && { nodeName }),
    ...(hostname && subdomain === service.metadata.name && { hostname }),
  };
}

/** Returns the ports of a Service at a Pod, without named ports that the Pod does not have. */
export function portsOf(service: DeepReadonly<Service>, pod: DeepReadonly<Pod>): EndpointPort[] {
  const named = namedPorts(pod);
  return (service.spec?.ports ?? []).flatMap((servicePort) => {
    const { name = '', protocol = 'TCP', appProtocol, targetPort = servicePort.port } = servicePort;
    const port =
      typeof targetPort === 'number' ? targetPort : named.get(`${protocol}/${targetPort}`);
    if (port === undefined) return [];
    return appProtocol ? { name, port, protocol, appProtocol } : { name, port, protocol };
  });
}

/** Returns the numbers of the named ports of a Pod by protocol and name: `TCP/http`. */
function namedPorts({ spec }: DeepReadonly<Pod>): ReadonlyMap<string, number> {
  const sidecars = (spec?.initContainers ?? []).filter(
    ({ restartPolicy }) => restartPolicy === 'Always',
  );
  const named = new Map<string, number>();
  for (const { ports = [] } of [...(spec?.containers ?? []), ...sidecars]) {
    for (const { name, protocol = 'TCP', containerPort } of ports) {
      const key = `${protocol}/${name}`;
      if (name && !named.has(key)) named.set(key, containerPort);
    }
  }
  return named;
}

/** Returns the labels of a Service's endpoints: those of the Service, and the controller's own. */
export function endpointLabels(
  { metadata, spec }: DeepReadonly<Service>,
  own: Readonly<Record<string, string>>,
): Record<string, string> {
  const { [HEADLESS]: _headless, ...labels } = metadata.labels ?? {};
  const isHeadless = ['', 'None'].includes(spec?.clusterIP ?? '');
  return { ...labels, ...(isHeadless && { [HEADLESS]: '' }), ...own };
}
