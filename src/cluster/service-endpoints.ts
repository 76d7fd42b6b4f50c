import type { Pod, Service } from '../api/builtin.ts';
import { equalJson } from '../api/equal.ts';
import { matchesLabels } from '../api/label-selector.ts';
import type { Requirement } from '../api/label-selector.ts';
import { keyOf } from '../api/object-key.ts';
import type { DeepReadonly } from '../api/object.ts';
import { isFinished, isReady } from '../api/workloads.ts';
import type { Lister } from '../cache/lister.ts';
import type { MapFunction } from '../manager/enqueue.ts';
import type { Predicate } from '../manager/predicate.ts';

const HEADLESS = 'service.kubernetes.io/headless';

export type AddressType = 'IPv4' | 'IPv6';

type ServicePort = DeepReadonly<NonNullable<NonNullable<Service['spec']>['ports']>[number]>;

/** Port of an endpoint, in the form that Endpoints and EndpointSlices share. */
export interface EndpointPort {
  name?: string;
  port: number;
  protocol: 'SCTP' | 'TCP' | 'UDP';
  appProtocol?: string;
}

/** Returns the selector of a Service whose endpoints are Pods; undefined for other Services. */
export function selectorOf({ spec }: DeepReadonly<Service>): Requirement[] | undefined {
  const labels = Object.entries(spec?.selector ?? {});
  if (spec?.type === 'ExternalName' || labels.length === 0) return undefined;
  return labels.map(([key, value]) => ({ operator: 'in', key, values: [value] }));
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
    isReady(pod),
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
  return (service.spec?.ports ?? []).flatMap((servicePort) => {
    const port = findPort(pod, servicePort);
    const { name = '', protocol = 'TCP', appProtocol } = servicePort;
    if (port === undefined) return [];
    return appProtocol ? { name, port, protocol, appProtocol } : { name, port, protocol };
  });
}

function findPort(
  { spec }: DeepReadonly<Pod>,
  { port, targetPort = port, protocol = 'TCP' }: ServicePort,
): number | undefined {
  if (typeof targetPort === 'number') return targetPort;
  const sidecars = (spec?.initContainers ?? []).filter(
    ({ restartPolicy }) => restartPolicy === 'Always',
  );
  return [...(spec?.containers ?? []), ...sidecars]
    .flatMap(({ ports = [] }) => ports)
    .find((each) => each.name === targetPort && (each.protocol ?? 'TCP') === protocol)
    ?.containerPort;
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
