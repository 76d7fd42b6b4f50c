import { isIPv4 } from '../../../util/ip-address.ts';
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
import { sha256 } from '../../../util/sha256.ts';
import type { Service as MutableService } from '../../../api/builtin.ts';
import { equalJson } from '../../../api/equal.ts';
import { fieldError } from '../../../api/field-error.ts';
import { nameProblems, qualifiedNameProblems } from '../../../api/object-names.ts';
import type { DeepReadonly } from '../../../api/object.ts';
import { CheckedObject, untilTooMany } from '../../objects/checked-object.ts';
import { fieldsAt } from '../../objects/field-path.ts';
import type { ApiObject, HookContext, StoredObject } from '../../objects/resource-definition.ts';
import { internalError, invalidError } from '../../objects/status-error.ts';
import { column, columns, field, wide } from '../../table/column.ts';
import { validatePortNumberOrName } from '../pods/container-validation.ts';
import { cidrProblem, cidrWarnings, ipProblem, ipWarnings } from '../shared/addresses.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { validateEndpointAddress } from '../shared/endpoint-addresses.ts';
import { validateLabels } from '../shared/label-selector-validation.ts';
import { labelsText } from '../shared/cells.ts';
import { addressWarnings, loadBalancerWarnings } from '../shared/warnings.ts';

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

/** Default of kube-apiserver's `--service-node-port-range`. */
const NODE_PORTS = { first: 30_000, last: 32_767 } as const;

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
  allocate(service, spec, context);
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
  const isAddressed = textIn(before, 'type') === 'ExternalName' || textIn(spec, 'clusterIP') !== '';
  allocate(service, spec, context, isAddressed);
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

function hasHealthCheckPort(spec: Readonly<JsonObject>): boolean {
  return (
    textIn(spec, 'type') === 'LoadBalancer' && textIn(spec, 'externalTrafficPolicy') === 'Local'
  );
}

function isExternallyAccessible(spec: Readonly<JsonObject>): boolean {
  return (
    takesNodePorts(spec) ||
    (textIn(spec, 'type') === 'ClusterIP' && listIn(spec, 'externalIPs').length > 0)
  );
}

/**
 * Gives the service an address and, where its type asks for them, ports on the nodes. They follow
 * from its name, so that each run of a test sees the same. Nothing routes to them.
 */
function allocate(
  service: ApiObject,
  spec: JsonObject,
  context: HookContext,
  isAddressed: boolean = true,
): void {
  if (textIn(spec, 'type') === 'ExternalName') return;
  requireFamilies(service.metadata.name, spec);
  if (isAddressed) assignAddress(service.metadata, spec);
  const isOpen =
    spec['clusterIP'] === 'None' && Object.keys(objectIn(spec, 'selector') ?? {}).length === 0;
  setDefault(spec, 'ipFamilyPolicy', isOpen ? 'RequireDualStack' : 'SingleStack');
  if (listIn(spec, 'ipFamilies').length === 0) {
    spec['ipFamilies'] =
      spec['ipFamilyPolicy'] === 'RequireDualStack' ? ['IPv4', 'IPv6'] : ['IPv4'];
  }
  if (takesNodePorts(spec)) allocateNodePorts(service, spec, context);
}

const FAMILIES = ['IPv4', 'IPv6'];
const FAMILY_POLICIES = ['PreferDualStack', 'RequireDualStack', 'SingleStack'];

/** @throws {StatusError} 422 if the cluster does not have a wanted family, before anything else is validated */
function requireFamilies(name: string, spec: JsonObject): void {
  const checked = new CheckedObject(spec, 'spec');
  const families = checked.list('ipFamilies').map(String);
  checked.requireEachOf('ipFamilies', FAMILIES);
  for (const [index, family] of families.entries()) {
    if (families.indexOf(family) < index) checked.duplicate(`ipFamilies[${index}]`, family);
  }
  checked.requireOneOf('ipFamilyPolicy', FAMILY_POLICIES);
  for (const [index, address] of checked.list('clusterIPs').map(String).entries()) {
    const problem = address === 'None' ? undefined : ipProblem(address);
    if (problem !== undefined) checked.invalid(`clusterIPs[${index}]`, problem, address);
  }
  const isOpen =
    spec['clusterIP'] === 'None' && Object.keys(objectIn(spec, 'selector') ?? {}).length === 0;
  const policy = checked.text('ipFamilyPolicy') || (isOpen ? 'RequireDualStack' : 'SingleStack');
  if (checked.errors.length === 0 && policy === 'SingleStack' && families.length > 1) {
    const why =
      "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified";
    checked.invalid('ipFamilyPolicy', why, policy);
  }
  if (checked.errors.length === 0 && !isOpen) {
    if (policy === 'RequireDualStack') {
      const why = 'this cluster is not configured for dual-stack services';
      checked.invalid('ipFamilyPolicy', why, policy);
    }
    for (const [index, family] of families.entries()) {
      if (family === 'IPv4') continue;
      checked.invalid(`ipFamilies[${index}]`, 'not configured on this cluster', family);
    }
  }
  if (checked.errors.length > 0) {
    throw invalidError({ group: '', kind: 'Service' }, name, checked.errors);
  }
}

/** @throws {StatusError} 422 if a wanted address is invalid, before anything else is validated */
function assignAddress({ namespace, name }: ApiObject['metadata'], spec: JsonObject): void {
  if (!isSet(spec, 'clusterIP') || spec['clusterIP'] === '') {
    const [given] = listIn(spec, 'clusterIPs');
    spec['clusterIP'] = typeof given === 'string' ? given : addressOf(`${namespace}/${name}`);
  }
  if (listIn(spec, 'clusterIPs').length === 0) spec['clusterIPs'] = [spec['clusterIP']];
  const checked = new CheckedObject(spec, 'spec');
  untilTooMany(() => validateAddresses(checked));
  if (checked.errors.length > 0) {
    throw invalidError({ group: '', kind: 'Service' }, name, checked.errors);
  }
}

/** @throws {StatusError} 422 if a wanted port belongs to another Service */
function allocateNodePorts(service: ApiObject, spec: JsonObject, { list }: HookContext): void {
  const { name, namespace, uid } = service.metadata;
  const taken = new Set(
    list({ group: '', plural: 'services' })
      .filter(({ metadata }) => metadata.uid !== uid)
      .flatMap((other) => {
        const spec = objectIn(other, 'spec') ?? {};
        const ports = objectsIn(spec, 'ports').map((port) => numberIn(port, 'nodePort'));
        return ports.concat(numberIn(spec, 'healthCheckNodePort'));
      }),
  );
  const { first, last } = NODE_PORTS;
  const count = last - first + 1;
  const claim = (use: string): number => {
    const start = hash(`${namespace}/${name}:${use}`) % count;
    for (let offset = 0; offset < count; offset++) {
      const port = first + ((start + offset) % count);
      if (taken.has(port)) continue;
      taken.add(port);
      return port;
    }
    throw internalError('failed to allocate a nodePort: range is full');
  };
  const isAutomatic =
    textIn(spec, 'type') === 'NodePort' || spec['allocateLoadBalancerNodePorts'] !== false;
  const ports = objectsIn(spec, 'ports');
  const assigned = new Map<unknown, unknown>();
  for (const port of ports.toReversed()) {
    if (numberIn(port, 'nodePort')) assigned.set(port['port'], port['nodePort']);
  }
  for (const [index, port] of ports.entries()) {
    const wanted = numberIn(port, 'nodePort');
    if (wanted) {
      if (!taken.has(wanted)) continue;
      throw invalidError({ group: '', kind: 'Service' }, name, [
        fieldError.invalid(
          `spec.ports[${index}].nodePort`,
          wanted,
          'provided port is already allocated',
        ),
      ]);
    }
    // The protocols of one port of a Service share its node port.
    const same = assigned.get(port['port']);
    if (same === undefined && !isAutomatic) continue;
    port['nodePort'] = same ?? claim(String(port['port']));
    assigned.set(port['port'], port['nodePort']);
  }
  if (hasHealthCheckPort(spec) && !numberIn(spec, 'healthCheckNodePort')) {
    spec['healthCheckNodePort'] = claim('healthCheck');
  }
}

function takesNodePorts(spec: Readonly<JsonObject>): boolean {
  const type = textIn(spec, 'type');
  return type === 'NodePort' || type === 'LoadBalancer';
}

/** An address in the default range, extended to 2^20 addresses; the first ones belong to the cluster itself. */
function addressOf(name: string): string {
  const offset = 256 + (hash(name) % (2 ** 20 - 512));
  return `10.${offset >> 16}.${(offset >> 8) & 255}.${offset & 255}`;
}

function hash(text: string): number {
  return new DataView(sha256(text).buffer).getUint32(0);
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
  if (type !== 'ExternalName' && spec.has('clusterIP') && !spec.has('clusterIPs')) {
    spec.required('clusterIPs');
  }
  validatePorts(ports);
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
  }
  validateExternal(spec, objectIn(previous, 'spec'));
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
  if (spec.text('type') !== 'LoadBalancer') return;
  const formerRanges = new Set(listIn(previous, 'loadBalancerSourceRanges'));
  for (const [index, range] of spec.list('loadBalancerSourceRanges').map(String).entries()) {
    const problem = formerRanges.has(range) ? undefined : cidrProblem(range.trim());
    // A server calls the field so.
    if (problem !== undefined) {
      spec.invalid(`LoadBalancerSourceRanges[${index}]`, problem, range.trim());
    }
  }
}

function validateAddresses(spec: CheckedObject): void {
  const addresses = spec.list('clusterIPs').map(String);
  for (const [index, address] of addresses.entries()) {
    if (address === 'None') continue;
    const problem = ipProblem(address);
    if (problem !== undefined) {
      spec.invalid(`clusterIPs[${index}]`, problem, address);
    } else if (isIPv4(address) && !/^10\.(?:\d|1[0-5])\./.test(address)) {
      const why = `the provided IP (${address}) is not in the valid range. The range of valid IPs is 10.0.0.0/12`;
      spec.invalid('clusterIPs', `failed to allocate IP ${address}: ${why}`);
    }
  }
}

function validatePorts(ports: readonly CheckedObject[]): void {
  const names = new Set<string>();
  const places = new Set<string>();
  const { first, last } = NODE_PORTS;
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
    const nodePort = port.number('nodePort') || first;
    if (nodePort < first || nodePort > last) {
      const why = `provided port is not in the valid range. The range of valid ports is ${first}-${last}`;
      port.invalid('nodePort', why);
    }
    const [number, protocol] = [port.number('port') ?? 0, port.text('protocol')];
    const place = `${protocol}/${number}`;
    if (places.has(place)) port.duplicate('', { port: number, protocol });
    places.add(place);
  }
}

function validateUpdate(service: CheckedObject, previous: StoredObject): void {
  const spec = service.in('spec');
  const before = objectIn(previous, 'spec') ?? {};
  const isKept = spec.value['healthCheckNodePort'] === before['healthCheckNodePort'];
  if (!isKept && hasHealthCheckPort(before) && hasHealthCheckPort(spec.value)) {
    spec.forbidden('healthCheckNodePort', 'field is immutable');
  }
  const was = textIn(before, 'clusterIP');
  const types = [textIn(before, 'type'), spec.text('type')];
  if (was === '' || types.includes('ExternalName') || spec.text('clusterIP') === was) return;
  spec.invalid('clusterIPs[0]', 'may not change once set', spec.list('clusterIPs'));
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
      service.in('metadata').in('annotations').has('service.kubernetes.io/topology-aware-hints'),
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
