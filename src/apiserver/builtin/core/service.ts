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
import type { DeepReadonly } from '../../../api/object.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { fieldsAt } from '../../objects/field-path.ts';
import type { ApiObject, HookContext, StoredObject } from '../../objects/resource-definition.ts';
import { column, columns, field, wide } from '../../table/column.ts';
import { cidrWarnings, ipWarnings } from '../shared/addresses.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { labelsText } from '../shared/cells.ts';
import { addressWarnings, loadBalancerWarnings } from '../shared/warnings.ts';
import {
  allocateForService,
  hasHealthCheckPort,
  isExternalName,
  needsNodePorts,
  takesNodePorts,
} from './service-allocation.ts';
import {
  isExternallyAccessible,
  validateService,
  ingressOf,
  TOPOLOGY_HINTS,
  validateServiceUpdate,
} from './service-validation.ts';

export const SERVICE: BuiltinKind = {
  resource: 'services',
  nameFormat: 'dns1123Label',
  createOnUpdate: true,
  returnsDeleted: true,
  selectableFields: fieldsAt('spec.clusterIP', 'spec.type'),
  hooks: { applyDefaults, prepareForCreate, prepareForUpdate },
  validate: validateService,
  validateUpdate: validateServiceUpdate,
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

function applyDefaults(service: ApiObject): void {
  const spec = objectIn(service, 'spec');
  if (!spec) return;
  setDefault(spec, 'sessionAffinity', 'None');
  const affinity = objectIn(objectIn(spec, 'sessionAffinityConfig'), 'clientIP');
  if (spec['sessionAffinity'] === 'None') delete spec['sessionAffinityConfig'];
  else if (spec['sessionAffinity'] === 'ClientIP' && !isSet(affinity, 'timeoutSeconds')) {
    spec['sessionAffinityConfig'] = { clientIP: { timeoutSeconds: 10_800 } };
  }
  setDefault(spec, 'type', 'ClusterIP');
  for (const port of objectsIn(spec, 'ports')) {
    setDefault(port, 'protocol', 'TCP');
    if (!isSet(port, 'targetPort') || port['targetPort'] === 0 || port['targetPort'] === '') {
      port['targetPort'] = port['port'];
    }
  }
  const type = textIn(spec, 'type');
  if (isExternallyAccessible(spec)) setDefault(spec, 'externalTrafficPolicy', 'Cluster');
  if (type !== 'ExternalName') spec['internalTrafficPolicy'] ??= 'Cluster';
  if (type !== 'LoadBalancer') return;
  setDefault(spec, 'allocateLoadBalancerNodePorts', true);
  for (const point of ingressOf(service)) {
    if (textIn(point, 'ip') !== '') setDefault(point, 'ipMode', 'VIP');
  }
}

/** As upstream, a write of the status creates a missing Service without status and addresses. */
function prepareForCreate(service: ApiObject, context: HookContext): void {
  if (context.subresource === 'status') service['status'] = { loadBalancer: {} };
  const spec = objectIn(service, 'spec');
  if (!spec || context.subresource !== undefined) return;
  if (textIn(spec, 'clusterIP') !== '' && listIn(spec, 'clusterIPs').length === 0) {
    spec['clusterIPs'] = [spec['clusterIP']];
  }
  dropInternalPolicy(spec);
  allocateForService(service, spec, context);
}

/** What was allocated stays with the service, also when the client leaves it out. */
function prepareForUpdate(service: ApiObject, previous: StoredObject, context: HookContext): void {
  if (context.subresource !== undefined) return;
  const spec = objectIn(service, 'spec');
  const before = objectIn(previous, 'spec');
  if (!spec || !before) return;
  keepClusterIps(spec, before);
  if (needsNodePorts(before) && needsNodePorts(spec)) keepNodePorts(spec, before);
  const isChecked = hasHealthCheckPort(before) && hasHealthCheckPort(spec);
  if (isChecked && !numberIn(spec, 'healthCheckNodePort')) {
    spec['healthCheckNodePort'] = before['healthCheckNodePort'];
  }
  allocateForService(service, spec, context, before);
  dropInternalPolicy(spec);
  dropFieldsOfType(service, spec, before);
}

/** As upstream, which does not show the policy of a Service without endpoints. */
function dropInternalPolicy(spec: JsonObject): void {
  const isValid = ['Cluster', 'Local'].includes(textIn(spec, 'internalTrafficPolicy'));
  if (isExternalName(spec) && isValid) delete spec['internalTrafficPolicy'];
}

/** Keeps the addresses that a client leaves out; clients may know only the first one. */
function keepClusterIps(spec: JsonObject, before: JsonObject): void {
  const former = listIn(before, 'clusterIPs');
  const isSame = () => equalJson(listIn(spec, 'clusterIPs'), former);
  if (!isExternalName(spec) && !isExternalName(before)) {
    if (isSet(before, 'clusterIP')) setDefault(spec, 'clusterIP', before['clusterIP']);
    if (listIn(spec, 'clusterIPs').length === 0 && former.length > 0) spec['clusterIPs'] = former;
  }
  const [address, was] = [textIn(spec, 'clusterIP'), textIn(before, 'clusterIP')];
  if (address === was && listIn(spec, 'clusterIPs').length === 0) {
    if (former.length > 0) spec['clusterIPs'] = former;
  } else if (address !== was && isSame()) {
    if (address !== '') spec['clusterIPs'] = [address];
    else delete spec['clusterIPs'];
  }
}

/** Ports without a node port have that of the previous port with the same name, unless another port has it. */
function keepNodePorts(spec: JsonObject, before: JsonObject): void {
  const ports = objectsIn(spec, 'ports');
  const used = new Set(ports.map((port) => numberIn(port, 'nodePort')));
  const known = new Map(
    objectsIn(before, 'ports').map((port) => [textIn(port, 'name'), numberIn(port, 'nodePort')]),
  );
  for (const port of ports) {
    const same = known.get(textIn(port, 'name'));
    if (!numberIn(port, 'nodePort') && same && !used.has(same)) port['nodePort'] = same;
  }
}

/** Removes fields that the previous type needed and the new one does not, unless the client changed them. */
function dropFieldsOfType(service: ApiObject, spec: JsonObject, before: JsonObject): void {
  const dropUnchanged = (...fields: readonly string[]) => {
    for (const field of fields) {
      if (equalJson(spec[field], before[field])) delete spec[field];
    }
  };
  if (!isExternalName(before) && isExternalName(spec)) {
    const fields = ['clusterIP', 'clusterIPs'];
    if (fields.every((field) => equalJson(spec[field], before[field]))) dropUnchanged(...fields);
    dropUnchanged('ipFamilies', 'ipFamilyPolicy');
  }
  const nodePorts = (each: JsonObject) =>
    objectsIn(each, 'ports').flatMap((port) => numberIn(port, 'nodePort') || []);
  const known = nodePorts(before);
  if (takesNodePorts(before) && !takesNodePorts(spec)) {
    const isUnchanged = nodePorts(spec).every((port) => known.includes(port));
    if (isUnchanged) for (const port of objectsIn(spec, 'ports')) delete port['nodePort'];
  }
  if (hasHealthCheckPort(before) && !hasHealthCheckPort(spec)) dropUnchanged('healthCheckNodePort');
  const [isBalanced, wasBalanced] = [spec, before].map(
    (each) => textIn(each, 'type') === 'LoadBalancer',
  );
  if (wasBalanced && !isBalanced) {
    dropUnchanged('allocateLoadBalancerNodePorts', 'loadBalancerClass');
  }
  if (isExternallyAccessible(before) && !isExternallyAccessible(spec)) {
    dropUnchanged('externalTrafficPolicy');
  }
  if (!isBalanced) service['status'] = { ...objectIn(service, 'status'), loadBalancer: {} };
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
