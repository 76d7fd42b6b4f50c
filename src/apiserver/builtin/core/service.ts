import type { JsonObject } from '../../../util/json-value.ts';
import {
  isSet,
  listIn,
  numberIn,
  objectIn,
  objectsIn,
  setDefault,
  textIn,
} from '../../../util/json-value.ts';
import type { Service as MutableService } from '../../../api/builtin.ts';
import { equalJson } from '../../../api/equal.ts';
import { nameProblems, qualifiedNameProblems } from '../../../api/object-names.ts';
import type { DeepReadonly } from '../../../api/object.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { fieldsAt } from '../../objects/field-path.ts';
import type { ApiObject, HookContext, StoredObject } from '../../objects/resource-definition.ts';
import { column, columns, field, wide } from '../../table/column.ts';
import { validatePortNumberOrName } from '../pods/container-validation.ts';
import { cidrProblem, cidrWarnings, ipProblem, ipWarnings } from '../shared/addresses.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { validateEndpointAddress } from '../shared/endpoint-addresses.ts';
import { validateLabels } from '../shared/label-selector-validation.ts';
import { labelsText } from '../shared/cells.ts';
import { addressWarnings, loadBalancerWarnings } from '../shared/warnings.ts';
import {
  allocateForService,
  hasHealthCheckPort,
  isHeadless,
  takesNodePorts,
  validateClusterIps,
} from './service-allocation.ts';

export const SERVICE: BuiltinKind = {
  resource: 'services',
  nameFormat: 'dns1123Label',
  createOnUpdate: true,
  returnsDeleted: true,
  selectableFields: fieldsAt('spec.clusterIP', 'spec.type'),
  hooks: { applyDefaults, prepareForCreate, prepareForUpdate },
  validate,
  validateUpdate,
  columns: [
    ...columns(
      field('Type', 'spec.type'),
      column<MutableService>(
        'Cluster-IP',
        'Address inside the cluster.',
        ({ spec }) => spec?.clusterIPs?.[0] ?? '<none>',
      ),
      column('External-IP', 'Addresses outside the cluster.', externalAddress),
      column<MutableService>(
        'Port(s)',
        'Ports, each with its node port if it has one.',
        ({ spec }) => (spec?.ports ?? []).map(portText).join(',') || '<none>',
      ),
    ),
    wide('Selector', 'Labels of the Pods that the service selects.', (service) =>
      labelsText(service, ['spec', 'selector']),
    ),
  ],
  warnings: serviceWarnings,
  statusWarnings: loadBalancerWarnings,
};

const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'] as const;

function applyDefaults(service: ApiObject): void {
  const spec = objectIn(service, 'spec');
  if (!spec) return;
  setDefault(spec, 'sessionAffinity', 'None');
  if (spec['sessionAffinity'] === 'ClientIP') {
    setDefault(spec, 'sessionAffinityConfig', { clientIP: { timeoutSeconds: 10_800 } });
  } else delete spec['sessionAffinityConfig'];
  setDefault(spec, 'type', 'ClusterIP');
  for (const port of objectsIn(spec, 'ports')) {
    setDefault(port, 'protocol', 'TCP');
    if (!isSet(port, 'targetPort') || port['targetPort'] === 0 || port['targetPort'] === '') {
      port['targetPort'] = port['port'];
    }
  }
  const type = textIn(spec, 'type');
  if (type === 'NodePort' || type === 'LoadBalancer') {
    setDefault(spec, 'externalTrafficPolicy', 'Cluster');
  }
  if (type !== 'ExternalName') setDefault(spec, 'internalTrafficPolicy', 'Cluster');
  if (type !== 'LoadBalancer') return;
  setDefault(spec, 'allocateLoadBalancerNodePorts', true);
  for (const point of ingressOf(service)) {
    if (textIn(point, 'ip') !== '') setDefault(point, 'ipMode', 'VIP');
  }
}

function ingressOf(service: StoredObject): readonly JsonObject[] {
  return objectsIn(objectIn(objectIn(service, 'status'), 'loadBalancer'), 'ingress');
}

/** As upstream, a write of the status creates a missing Service without status and addresses. */
function prepareForCreate(service: ApiObject, context: HookContext): void {
  if (context.subresource === 'status') service['status'] = { loadBalancer: {} };
  const spec = objectIn(service, 'spec');
  if (!spec || context.subresource !== undefined) return;
  if (textIn(spec, 'clusterIP') !== '') setDefault(spec, 'clusterIPs', [spec['clusterIP']]);
  allocateForService(service, spec, context);
}

/** What was allocated stays with the service, also when the client leaves it out. */
function prepareForUpdate(service: ApiObject, previous: StoredObject, context: HookContext): void {
  if (context.subresource !== undefined) return;
  const spec = objectIn(service, 'spec');
  const before = objectIn(previous, 'spec');
  if (!spec || !before) return;
  for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'] as const) {
    if (textIn(spec, 'type') !== 'ExternalName' && isSet(before, field)) {
      setDefault(spec, field, before[field]);
    }
  }
  const isSame = textIn(spec, 'clusterIP') === textIn(before, 'clusterIP');
  // As upstream, clients may know only the first address.
  if (isSame && isSet(before, 'clusterIPs')) setDefault(spec, 'clusterIPs', before['clusterIPs']);
  else if (isSet(spec, 'clusterIP') && equalJson(spec['clusterIPs'], before['clusterIPs'])) {
    spec['clusterIPs'] = [spec['clusterIP']];
  }
  if (hasHealthCheckPort(before) && hasHealthCheckPort(spec)) {
    setDefault(spec, 'healthCheckNodePort', before['healthCheckNodePort']);
  }
  const known = new Map(
    objectsIn(before, 'ports')
      .toReversed()
      .map((port) => [textIn(port, 'name'), port]),
  );
  for (const port of objectsIn(spec, 'ports')) {
    const same = known.get(textIn(port, 'name'));
    if (same && isSet(same, 'nodePort') && takesNodePorts(spec)) {
      setDefault(port, 'nodePort', same['nodePort']);
    }
  }
  dropFieldsOfType(service, spec, before);
  allocateForService(service, spec, context, before);
}

/** Removes fields that the previous type needed and the new one does not, unless the client changed them. */
function dropFieldsOfType(service: ApiObject, spec: JsonObject, before: JsonObject): void {
  const drop = (has: (spec: JsonObject) => boolean, ...fields: readonly string[]) => {
    if (!has(before) || has(spec)) return;
    for (const field of fields) {
      if (equalJson(spec[field], before[field])) delete spec[field];
    }
  };
  const isOf = (spec: JsonObject, type: string) => textIn(spec, 'type') === type;
  if (equalJson(spec['clusterIPs'], before['clusterIPs'])) {
    drop((each) => !isOf(each, 'ExternalName'), 'clusterIP', 'clusterIPs');
  }
  drop(
    (each) => !isOf(each, 'ExternalName'),
    'ipFamilies',
    'ipFamilyPolicy',
    'internalTrafficPolicy',
  );
  drop(hasHealthCheckPort, 'healthCheckNodePort');
  drop((each) => isOf(each, 'LoadBalancer'), 'allocateLoadBalancerNodePorts', 'loadBalancerClass');
  drop(isExternallyAccessible, 'externalTrafficPolicy');
  const nodePorts = (each: JsonObject) =>
    objectsIn(each, 'ports').flatMap((port) => numberIn(port, 'nodePort') || []);
  const known = nodePorts(before);
  if (takesNodePorts(before) && !takesNodePorts(spec)) {
    const isUnchanged = nodePorts(spec).every((port) => known.includes(port));
    if (isUnchanged) for (const port of objectsIn(spec, 'ports')) delete port['nodePort'];
  }
  if (!isOf(spec, 'LoadBalancer')) {
    service['status'] = { ...objectIn(service, 'status'), loadBalancer: {} };
  }
}

function isExternallyAccessible(spec: Readonly<JsonObject>): boolean {
  return (
    takesNodePorts(spec) ||
    (textIn(spec, 'type') === 'ClusterIP' && listIn(spec, 'externalIPs').length > 0)
  );
}

function validate(service: CheckedObject, previous: StoredObject | undefined): void {
  const spec = service.in('spec');
  const type = spec.text('type');
  const ports = spec.items('ports');
  if (type === 'ExternalName') {
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
    const problems = nameProblems(externalName, 'dns1123Subdomain');
    if (externalName === '') spec.required('externalName');
    else spec.problems('externalName', problems, externalName);
  } else if (ports.length === 0 && spec.value['clusterIP'] !== 'None') spec.required('ports');
  if (takesNodePorts(spec.value) && spec.value['clusterIP'] === 'None') {
    spec.invalid('clusterIPs[0]', `may not be set to 'None' for ${type} services`, 'None');
  }
  validatePorts(ports, type);
  if (type !== 'ExternalName') validateClusterIps(spec, objectIn(previous, 'spec'));
  const policy = spec.text('externalTrafficPolicy');
  if (policy !== '' && !isExternallyAccessible(spec.value)) {
    const why = 'may only be set for externally-accessible services';
    spec.invalid('externalTrafficPolicy', why);
  }
  const healthPort = spec.number('healthCheckNodePort') ?? 0;
  if (healthPort !== 0 && !hasHealthCheckPort(spec.value)) {
    const why =
      "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
    spec.invalid('healthCheckNodePort', why);
  } else if (healthPort !== 0) spec.requirePort('healthCheckNodePort');
  validateExternal(spec, objectIn(previous, 'spec'));
  validateAnnotations(service, previous);
  const balancer = service.in('status').in('loadBalancer');
  const formerIngress = new Set(
    objectsIn(objectIn(objectIn(previous, 'status'), 'loadBalancer'), 'ingress').map((point) =>
      textIn(point, 'ip'),
    ),
  );
  if (balancer.list('ingress').length > 0 && type !== 'LoadBalancer') {
    balancer.forbidden('ingress', "may only be used when `spec.type` is 'LoadBalancer'");
  } else {
    for (const point of balancer.items('ingress')) {
      const ip = point.text('ip');
      if (ip === '') continue;
      const problem = formerIngress.has(ip) ? undefined : ipProblem(ip);
      if (problem !== undefined) point.invalid('ip', problem);
      if (!point.has('ipMode')) point.required('ipMode', 'must be specified when `ip` is set');
    }
  }
  validateLabels(spec, 'selector');
  spec.requireOneOf('sessionAffinity', ['ClientIP', 'None']);
  const seconds = spec.in('sessionAffinityConfig').in('clientIP').number('timeoutSeconds') ?? 1;
  if (spec.text('sessionAffinity') === 'ClientIP' && (seconds <= 0 || seconds > 86_400)) {
    const client = spec.in('sessionAffinityConfig').in('clientIP');
    client.invalid('timeoutSeconds', 'must be greater than 0 and less than 86400');
  }
  validateBalancer(spec, objectIn(previous, 'spec'));
  if (isExternallyAccessible(spec.value)) {
    spec.requireOneOf('externalTrafficPolicy', ['Cluster', 'Local']);
  }
  spec.requireOneOf('internalTrafficPolicy', ['Cluster', 'Local']);
  const distributions = ['PreferClose', 'PreferSameZone', 'PreferSameNode'];
  if (
    spec.has('trafficDistribution') &&
    !distributions.includes(spec.text('trafficDistribution'))
  ) {
    spec.notSupported('trafficDistribution', distributions);
  }
  spec.requireOneOf('type', TYPES);
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
    validateEndpointAddress(spec, `externalIPs[${index}]`, address, problem);
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
const TOPOLOGY_HINTS = 'service.kubernetes.io/topology-aware-hints';
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
    if (places.has(place)) port.duplicate('', { port: number, protocol });
    places.add(place).add(nodePlace);
  }
}

function validateUpdate(service: CheckedObject, previous: StoredObject): void {
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

function serviceWarnings(service: CheckedObject): string[] {
  const spec = service.in('spec');
  const type = spec.text('type');
  const isExternal = type === 'ExternalName';
  const isHeadless = type === 'ClusterIP' && spec.text('clusterIP') === 'None';
  const hasAddresses = spec.list('externalIPs').length > 0;
  const isAddress = ['ClusterIP', 'NodePort', 'LoadBalancer'].includes(type) && !isHeadless;
  const rules: readonly (readonly [boolean, string | readonly string[]])[] = [
    [
      service.in('metadata').in('annotations').has(TOPOLOGY_HINTS),
      'annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead',
    ],
    [isAddress, addressWarnings(spec, 'clusterIPs', ipWarnings)],
    [
      isHeadless && spec.text('loadBalancerIP') !== '',
      'spec.loadBalancerIP is ignored for headless services',
    ],
    [isHeadless && hasAddresses, 'spec.externalIPs is ignored for headless services'],
    [
      isHeadless && spec.text('sessionAffinity') !== 'None',
      'spec.SessionAffinity is ignored for headless services',
    ],
    [true, addressWarnings(spec, 'externalIPs', ipWarnings)],
    [
      hasAddresses && !isHeadless && !isExternal,
      'spec.externalIPs is deprecated and may no longer be implemented in some clusters',
    ],
    [
      true,
      [
        ...ipWarnings(spec.at('loadBalancerIP'), spec.text('loadBalancerIP')),
        ...addressWarnings(spec, 'loadBalancerSourceRanges', cidrWarnings),
      ],
    ],
    [isExternal && hasAddresses, 'spec.externalIPs is ignored when spec.type is "ExternalName"'],
    [
      !isExternal && spec.text('externalName') !== '',
      'spec.externalName is ignored when spec.type is not "ExternalName"',
    ],
    [
      spec.text('trafficDistribution') === 'PreferClose',
      'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
    ],
  ];
  return rules.flatMap(([applies, texts]) => (applies ? texts : []));
}

type Service = DeepReadonly<MutableService>;

type ServicePort = NonNullable<NonNullable<Service['spec']>['ports']>[number];

function externalAddress({ spec, status }: Service): string {
  const external = spec?.externalIPs ?? [];
  switch (spec?.type) {
    case 'ClusterIP':
    case 'NodePort':
      return external.join(',') || '<none>';
    case 'LoadBalancer': {
      const assigned = (status?.loadBalancer?.ingress ?? [])
        .map(({ ip, hostname }) => ip || hostname || '')
        .filter((address) => address !== '');
      return [...[...new Set(assigned)].sort(), ...external].join(',') || '<pending>';
    }
    case 'ExternalName':
      return spec.externalName ?? '';
    default:
      return '<unknown>';
  }
}

function portText({ port, nodePort, protocol = 'TCP' }: ServicePort): string {
  return nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`;
}
