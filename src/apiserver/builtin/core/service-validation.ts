import { Verbatim, plainText } from '../../../api/field-error.ts';
import { goJson } from '../../../util/go-format.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { listIn, objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import { nameProblems, qualifiedNameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { validatePortNumberOrName } from '../pods/container-validation.ts';
import { cidrProblem, ipProblem } from '../shared/addresses.ts';
import { requireUsableIp } from '../shared/endpoint-addresses.ts';
import { validateLabels } from '../shared/label-selector-validation.ts';
import { validateIngressPoint } from '../shared/status-validation.ts';
import {
  hasHealthCheckPort,
  isHeadless,
  takesNodePorts,
  validateClusterIps,
} from './service-allocation.ts';

const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'] as const;

export function isExternallyAccessible(spec: Readonly<JsonObject>): boolean {
  return (
    takesNodePorts(spec) ||
    (textIn(spec, 'type') === 'ClusterIP' && listIn(spec, 'externalIPs').length > 0)
  );
}

/** Reports what is wrong with a Service, in upstream's order. */
export function validateService(service: CheckedObject, previous: StoredObject | undefined): void {
  const spec = service.in('spec');
  const before = objectIn(previous, 'spec');
  const type = spec.text('type');
  const ports = spec.items('ports');
  if (type === 'ExternalName') validateExternalName(spec);
  else if (ports.length === 0 && !isHeadless(spec.value)) spec.required('ports');
  if (takesNodePorts(spec.value) && isHeadless(spec.value)) {
    spec.invalid('clusterIPs[0]', `may not be set to 'None' for ${type} services`, 'None');
  }
  validatePorts(ports, type);
  if (type !== 'ExternalName') validateClusterIps(spec, before);
  validateExternalPolicy(spec);
  validateExternal(spec, before);
  validateAnnotations(service, previous);
  validateIngress(service, previous);
  validateLabels(spec, 'selector');
  validateAffinity(spec);
  validateBalancer(spec, before);
  if (isExternallyAccessible(spec.value)) {
    spec.requireOneOf('externalTrafficPolicy', ['Cluster', 'Local']);
  }
  spec.requireSupported('internalTrafficPolicy', ['Cluster', 'Local']);
  const distribution = spec.text('trafficDistribution');
  if (spec.has('trafficDistribution') && !DISTRIBUTIONS.includes(distribution)) {
    spec.notSupported('trafficDistribution', DISTRIBUTIONS, plainText(distribution));
  }
  spec.requireOneOf('type', TYPES);
}

const DISTRIBUTIONS = ['PreferClose', 'PreferSameZone', 'PreferSameNode'];

function validateExternalName(spec: CheckedObject): void {
  const present = {
    clusterIPs: spec.list('clusterIPs').length > 0,
    ipFamilies: spec.list('ipFamilies').length > 0,
    ipFamilyPolicy: spec.has('ipFamilyPolicy'),
  };
  for (const [field, isPresent] of Object.entries(present)) {
    if (isPresent) spec.forbidden(field, 'may not be set for ExternalName services');
  }
  // A final dot marks a name as complete.
  const externalName = spec.text('externalName').replace(/\.$/, '');
  if (externalName === '') spec.required('externalName');
  else spec.problems('externalName', nameProblems(externalName, 'dns1123Subdomain'), externalName);
}

/** Validates the traffic policy of external clients, and the port of the health checks that it needs. */
function validateExternalPolicy(spec: CheckedObject): void {
  if (spec.text('externalTrafficPolicy') !== '' && !isExternallyAccessible(spec.value)) {
    const why = 'may only be set for externally-accessible services';
    spec.invalid('externalTrafficPolicy', why);
  }
  if ((spec.number('healthCheckNodePort') ?? 0) === 0) return;
  if (hasHealthCheckPort(spec.value)) spec.requirePort('healthCheckNodePort');
  else {
    const why =
      "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
    spec.invalid('healthCheckNodePort', why);
  }
}

/** Validates the addresses of the load balancer in the status. Those that it has may stay. */
function validateIngress(service: CheckedObject, previous: StoredObject | undefined): void {
  const balancer = service.in('status').in('loadBalancer');
  const points = balancer.items('ingress');
  if (points.length > 0 && service.in('spec').text('type') !== 'LoadBalancer') {
    balancer.forbidden('ingress', "may only be used when `spec.type` is 'LoadBalancer'");
    return;
  }
  const former = new Set(ingressOf(previous).map((point) => textIn(point, 'ip')));
  for (const point of points) {
    validateIngressPoint(point, former);
    if (point.text('ip') !== '') {
      if (!point.has('ipMode')) point.required('ipMode', 'must be specified when `ip` is set');
      point.requireSupported('ipMode', ['Proxy', 'VIP']);
    } else if (point.has('ipMode')) {
      point.forbidden('ipMode', 'may not be specified when `ip` is not set');
    }
  }
}

/** Returns the addresses of the load balancer of a Service. */
export function ingressOf(service: StoredObject | undefined): readonly JsonObject[] {
  return objectsIn(objectIn(objectIn(service, 'status'), 'loadBalancer'), 'ingress');
}

function validateAffinity(spec: CheckedObject): void {
  spec.requireOneOf('sessionAffinity', ['ClientIP', 'None']);
  const client = spec.in('sessionAffinityConfig').in('clientIP');
  const seconds = client.number('timeoutSeconds') ?? 1;
  if (spec.text('sessionAffinity') === 'ClientIP' && (seconds <= 0 || seconds > 86_400)) {
    client.invalid('timeoutSeconds', 'must be greater than 0 and less than 86400');
  }
}

/** Validates the fields that only a Service with a load balancer has. */
function validateBalancer(spec: CheckedObject, previous: JsonObject | undefined): void {
  const isBalanced = spec.text('type') === 'LoadBalancer';
  const fields = ['allocateLoadBalancerNodePorts', 'loadBalancerClass'];
  for (const field of isBalanced ? [] : fields) {
    if (spec.has(field)) spec.forbidden(field, "may only be used when `type` is 'LoadBalancer'");
  }
  if (!isBalanced) return;
  const name = spec.text('loadBalancerClass');
  const wasBalanced = textIn(previous, 'type') === 'LoadBalancer';
  if (wasBalanced && previous?.['loadBalancerClass'] !== spec.value['loadBalancerClass']) {
    spec.invalid('loadBalancerClass', 'may not change once set');
  }
  if (spec.has('loadBalancerClass')) {
    spec.problems('loadBalancerClass', qualifiedNameProblems(name));
  }
}

/** Validates external addresses and the networks of clients. Those that a Service has may stay. */
function validateExternal(spec: CheckedObject, previous: JsonObject | undefined): void {
  const former = new Set(listIn(previous, 'externalIPs'));
  for (const [index, address] of spec.list('externalIPs').map(String).entries()) {
    const problem = former.has(address) ? undefined : ipProblem(address);
    if (problem !== undefined) spec.invalid(`externalIPs[${index}]`, problem, address);
    else requireUsableIp(spec, `externalIPs[${index}]`, address);
  }
  const formerRanges = new Set(listIn(previous, 'loadBalancerSourceRanges'));
  const ranges = spec.list('loadBalancerSourceRanges').map(String);
  // A server calls the field so.
  const field = 'LoadBalancerSourceRanges';
  if (ranges.length > 0 && spec.text('type') !== 'LoadBalancer') {
    spec.forbidden(field, "may only be used when `type` is 'LoadBalancer'");
  }
  for (const [index, range] of ranges.entries()) {
    const problem = formerRanges.has(range) ? undefined : cidrProblem(range.trim());
    if (problem !== undefined) spec.invalid(`${field}[${index}]`, problem, range.trim());
  }
}

const TOPOLOGY_MODE = 'service.kubernetes.io/topology-mode';

export const TOPOLOGY_HINTS = 'service.kubernetes.io/topology-aware-hints';

const SOURCE_RANGES = 'service.beta.kubernetes.io/load-balancer-source-ranges';

function validateAnnotations(service: CheckedObject, previous: StoredObject | undefined): void {
  const annotations = service.in('metadata').in('annotations');
  const [mode, hints] = [annotations.value[TOPOLOGY_MODE], annotations.value[TOPOLOGY_HINTS]];
  if (mode !== undefined && hints !== undefined && mode !== hints) {
    const why = `must match annotations[${TOPOLOGY_HINTS}] when both are specified`;
    annotations.invalid(`[${TOPOLOGY_MODE}]`, why, mode);
  }
  const spec = service.in('spec');
  const ranges = annotations.value[SOURCE_RANGES];
  if (typeof ranges !== 'string' || spec.list('loadBalancerSourceRanges').length > 0) return;
  if (spec.text('type') !== 'LoadBalancer') {
    const why = "may only be used when `type` is 'LoadBalancer'";
    annotations.forbidden(`[${SOURCE_RANGES}]`, why);
  }
  if (ranges.trim() === '' || previous?.metadata.annotations?.[SOURCE_RANGES] === ranges) return;
  for (const range of ranges.split(',').map((each) => each.trim())) {
    const problem = cidrProblem(range);
    if (problem !== undefined) annotations.invalid(`[${SOURCE_RANGES}]`, problem, range);
  }
}

function validatePorts(ports: readonly CheckedObject[], type: string): void {
  const names = new Set<string>();
  const places = new Set<string>();
  for (const port of ports) {
    if (ports.length > 1) port.requireText('name');
    port.requireFormat('name', 'dns1123Label');
    port.requireUnique('name', names);
    port.requirePort('port');
    port.requireOneOf('protocol', ['SCTP', 'TCP', 'UDP']);
    validatePortNumberOrName(port, 'targetPort');
    if (port.has('appProtocol')) {
      port.problems('appProtocol', qualifiedNameProblems(port.text('appProtocol')));
    }
    const [number, protocol] = [port.number('port') ?? 0, port.text('protocol')];
    const nodePort = port.number('nodePort') ?? 0;
    if (nodePort !== 0 && type === 'ClusterIP') {
      port.forbidden('nodePort', "may not be used when `type` is 'ClusterIP'");
    }
    const nodePlace = `node ${protocol}/${nodePort}`;
    if (nodePort !== 0 && places.has(nodePlace)) port.duplicate('nodePort');
    const place = `${protocol}/${number}`;
    if (places.has(place)) port.duplicate('', new Verbatim(portText(protocol, number)));
    places.add(place).add(nodePlace);
  }
}

/** A port with the names of Go's fields, which upstream shows. */
function portText(protocol: string, port: number): string {
  return `{"Name":"","Protocol":${goJson(protocol)},"AppProtocol":null,"Port":${port},"TargetPort":0,"NodePort":0}`;
}

/** Reports the addresses, families and ports of a Service that cannot change. */
export function validateServiceUpdate(service: CheckedObject, previous: StoredObject): void {
  const spec = service.in('spec');
  const before = objectIn(previous, 'spec') ?? {};
  const isKept = spec.value['healthCheckNodePort'] === before['healthCheckNodePort'];
  if (!isKept && hasHealthCheckPort(before) && hasHealthCheckPort(spec.value)) {
    spec.forbidden('healthCheckNodePort', 'field is immutable');
  }
  const isExternal = [before, spec.value].some((each) => textIn(each, 'type') === 'ExternalName');
  const [isNone, wasNone] = [isHeadless(spec.value), isHeadless(before)];
  if (isExternal || (isNone && wasNone)) return;
  const changed = (field: string, at: number = 0) =>
    spec.invalid(`${field}[${at}]`, 'may not change once set', spec.list(field));
  for (const field of isNone === wasNone ? ['clusterIPs', 'ipFamilies'] : ['clusterIPs']) {
    const [is, was] = [spec.list(field), listIn(before, field)];
    if (is.length !== was.length) {
      if (was.length > 0 && is[0] !== was[0]) changed(field);
      continue;
    }
    for (const [index, value] of was.entries()) {
      if (value !== is[index]) changed(field, field === 'clusterIPs' ? index : 0);
    }
  }
}
