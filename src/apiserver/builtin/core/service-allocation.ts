import { equalJson } from '../../../api/equal.ts';
import { fieldError } from '../../../api/field-error.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import {
  listIn,
  numberIn,
  objectIn,
  objectsIn,
  setDefault,
  textIn,
} from '../../../util/json-value.ts';
import { sha256 } from '../../../util/sha256.ts';
import { CheckedObject, untilTooMany } from '../../objects/checked-object.ts';
import type { ApiObject, HookContext } from '../../objects/resource-definition.ts';
import { StatusError, internalError, invalidError } from '../../objects/status-error.ts';
import { ipProblem } from '../shared/addresses.ts';

/** Default of kube-apiserver's `--service-node-port-range`. */
const NODE_PORTS = { first: 30_000, last: 32_767 } as const;

/**
 * Gives the service its families, an address and, where its type asks for them, ports on the nodes. They follow
 * from its name, so that each run of a test sees the same. Nothing routes to them.
 */
export function allocateForService(
  service: ApiObject,
  spec: JsonObject,
  context: HookContext,
  before?: JsonObject,
): void {
  if (isExternalName(spec)) return;
  const { name } = service.metadata;
  requireOf(name, spec, (checked) => validateClusterIps(checked, before));
  requireOf(name, spec, (checked) => settleFamilies(checked, spec, before));
  if (!before || isExternalName(before)) assignAddress(service, spec, context);
  if (!takesNodePorts(spec)) return;
  const allocator = new NodePortAllocator(service, spec, context);
  if (before) updateNodePorts(allocator, spec, before);
  else allocateNodePorts(allocator, spec);
  if (!before || !hasHealthCheckPort(before)) allocateHealthCheckPort(allocator, spec);
}

export function isExternalName(spec: Readonly<JsonObject>): boolean {
  return textIn(spec, 'type') === 'ExternalName';
}

const FAMILIES = ['IPv4', 'IPv6'];
const FAMILY_POLICIES = ['PreferDualStack', 'RequireDualStack', 'SingleStack'];

/** @throws {StatusError} 422 if a check finds errors, before anything else is validated */
function requireOf(
  name: string,
  spec: Readonly<JsonObject>,
  check: (spec: CheckedObject) => void,
): void {
  const checked = new CheckedObject(spec, 'spec');
  untilTooMany(() => check(checked));
  if (checked.errors.length === 0) return;
  throw invalidError({ group: '', kind: 'Service' }, name, checked.errors);
}

/** Whether a Service has no address of its own. */
export function isHeadless(spec: Readonly<JsonObject>): boolean {
  return equalJson(spec['clusterIPs'], ['None']);
}

const familyOf = (address: string) => (address.includes(':') ? 'IPv6' : 'IPv4');

/** Reports what is wrong with the addresses and families that a client wants. */
export function validateClusterIps(spec: CheckedObject, before: JsonObject | undefined): void {
  const addresses = spec.list('clusterIPs').map(String);
  const families = spec.list('ipFamilies').map(String);
  const first = spec.text('clusterIP');
  const wrong = (why: string) => spec.invalid('clusterIPs', why);
  if (first !== '' && addresses.length === 0) spec.required('clusterIPs');
  else if (first === '' && addresses.length > 0) {
    wrong('must be empty when `clusterIP` is not specified');
  } else if (first !== (addresses[0] ?? '')) wrong('first value must match `clusterIP`');
  spec.requireEachOf('ipFamilies', FAMILIES);
  for (const [index, family] of families.entries()) {
    if (families.indexOf(family) < index) spec.duplicate(`ipFamilies[${index}]`, family);
  }
  spec.requireSupported('ipFamilyPolicy', FAMILY_POLICIES);
  const former = listIn(before, 'clusterIPs');
  let isUsable = true;
  for (const [index, address] of addresses.entries()) {
    const isNone = index === 0 && address === 'None';
    const problem = isNone || former.includes(address) ? undefined : ipProblem(address);
    if (problem !== undefined) spec.invalid(`clusterIPs[${index}]`, problem, address);
    if (isNone && addresses.length > 1) wrong("'None' must be the first and only value");
    isUsable &&= problem === undefined && !(isNone && addresses.length > 1);
  }
  if (addresses.length > 2) wrong('may only hold up to 2 values');
  if (!isUsable || isHeadless(spec.value)) return;
  if (new Set(addresses.map(familyOf)).size < Math.min(addresses.length, 2)) {
    wrong('may specify no more than one IP for each IP family');
  }
  for (const [index, address] of addresses.entries()) {
    const family = families[index];
    if (family === undefined || !FAMILIES.includes(family) || family === familyOf(address))
      continue;
    const why = `expected an ${family} value as indicated by \`ipFamilies[${index}]\``;
    spec.invalid(`clusterIPs[${index}]`, why, address);
  }
}

/** Sets policy and families, or reports why the cluster, which has IPv4 only, cannot give what is wanted. */
function settleFamilies(
  checked: CheckedObject,
  spec: JsonObject,
  before: JsonObject | undefined,
): void {
  const isOpen = isHeadless(spec) && Object.keys(objectIn(spec, 'selector') ?? {}).length === 0;
  const known = textIn(before, 'ipFamilyPolicy');
  setDefault(spec, 'ipFamilyPolicy', known || (isOpen ? 'RequireDualStack' : 'SingleStack'));
  const isSingle = spec['ipFamilyPolicy'] === 'SingleStack';
  const wrong = (why: string) => checked.invalid('ipFamilyPolicy', why);
  const lists = { clusterIPs: 'cluster IP', ipFamilies: 'IP family' } as const;
  for (const [field, what] of Object.entries(lists)) {
    const list = listIn(spec, field);
    const former = listIn(before, field);
    if (isSingle && list.length > 1 && equalJson(list, former)) spec[field] = list.slice(0, 1);
    if (!isSingle && list.length > 0 && list.length < former.length) {
      wrong(`must be 'SingleStack' to release the secondary ${what}`);
    }
  }
  const addresses = listIn(spec, 'clusterIPs').map(String);
  const families = listIn(spec, 'ipFamilies').map(String);
  const isMany = "must be 'RequireDualStack' or 'PreferDualStack' when multiple";
  if (isSingle && addresses.length === 2) wrong(`${isMany} cluster IPs are specified`);
  if (isSingle && families.length === 2) wrong(`${isMany} IP families are specified`);
  for (const [index, address] of isHeadless(spec) ? [] : addresses.entries()) {
    if (index < families.length) continue;
    if (familyOf(address) === 'IPv4') families.push('IPv4');
    else
      checked.invalid(`clusterIPs[${index}]`, 'IPv6 is not configured on this cluster', addresses);
  }
  if (checked.errors.length > 0) return;
  if (families.length === 0) families.push('IPv4');
  if (isOpen && !isSingle && families.length < 2) {
    families.push(families[0] === 'IPv4' ? 'IPv6' : 'IPv4');
  }
  spec['ipFamilies'] = families;
  if (isOpen) return;
  if (spec['ipFamilyPolicy'] === 'RequireDualStack') {
    wrong('this cluster is not configured for dual-stack services');
  }
  for (const [index, family] of families.entries()) {
    if (family === 'IPv4') continue;
    checked.invalid(`ipFamilies[${index}]`, 'not configured on this cluster', family);
  }
}

/** @throws {StatusError} 422 if the wanted address is outside the range or, except in a dry run, belongs to another Service */
function assignAddress(
  { metadata: { namespace, name, uid } }: ApiObject,
  spec: JsonObject,
  { list, isDryRun }: HookContext,
): void {
  const [wanted] = listIn(spec, 'clusterIPs').map(String);
  if (wanted !== undefined) spec['clusterIP'] = wanted;
  if (wanted === 'None') return;
  const taken = new Set(
    list({ group: '', plural: 'services' })
      .filter(({ metadata }) => metadata.uid !== uid)
      .map((other) => textIn(objectIn(other, 'spec'), 'clusterIP')),
  );
  if (wanted === undefined) {
    let address = addressOf(`${namespace}/${name}`);
    for (let attempt = 1; taken.has(address); attempt++) {
      address = addressOf(`${namespace}/${name}:${attempt}`);
    }
    spec['clusterIPs'] = [address];
    spec['clusterIP'] = address;
    return;
  }
  requireOf(name, spec, (checked) => {
    const fail = (why: string) =>
      checked.invalid('clusterIPs', `failed to allocate IP ${wanted}: ${why}`);
    const isEnd = wanted === '10.0.0.0' || wanted === '10.15.255.255';
    if (isEnd || !/^10\.(?:\d|1[0-5])\./.test(wanted)) {
      // As upstream, whose dry runs have an allocator of their own.
      fail(
        isDryRun
          ? `the provided IP (${wanted}) is not in the valid range. The range of valid IPs is 10.0.0.0/12`
          : 'the provided network does not match the current range',
      );
    }
    if (taken.has(wanted) && !isDryRun) fail('provided IP is already allocated');
  });
}

/** Gives the ports of a new Service their node ports. */
function allocateNodePorts(allocator: NodePortAllocator, spec: JsonObject): void {
  const ports = objectsIn(spec, 'ports');
  // The protocols of one port of a Service share its node port: the first one that the client gives to any of them.
  const given = new Map<unknown, number>();
  for (const port of ports.toReversed()) {
    const wanted = numberIn(port, 'nodePort');
    if (wanted) given.set(port['port'], wanted);
  }
  const assigned = new Map<unknown, number>();
  for (const [index, port] of ports.entries()) {
    if (!numberIn(port, 'nodePort') && !needsNodePorts(spec)) continue;
    const number = port['port'];
    const wanted = numberIn(port, 'nodePort') || given.get(number);
    const shared = assigned.get(number);
    if (wanted && wanted !== shared) allocator.allocate(wanted, index);
    port['nodePort'] = wanted ?? shared ?? allocator.allocateNext(String(number));
    assigned.set(number, shared ?? Number(port['nodePort']));
  }
}

/** Gives ports node ports that they did not have, each its own. */
function updateNodePorts(allocator: NodePortAllocator, spec: JsonObject, before: JsonObject): void {
  const known = new Set(objectsIn(before, 'ports').map((port) => numberIn(port, 'nodePort')));
  const places = new Set<string>();
  for (const [index, port] of objectsIn(spec, 'ports').entries()) {
    const wanted = numberIn(port, 'nodePort');
    if (!wanted && !needsNodePorts(spec)) continue;
    if (wanted && !known.has(wanted)) allocator.allocate(wanted, index);
    known.add(wanted);
    port['nodePort'] = wanted || allocator.allocateNext(String(port['port']));
    const place = `${textIn(port, 'protocol')} ${Number(port['nodePort'])}`;
    // As upstream, which allocates before it validates.
    if (places.has(place)) {
      throw StatusError.failure({ code: 500, message: `duplicate nodePort: {${place}}` });
    }
    places.add(place);
  }
}

/** @throws {StatusError} 500 if the port that the client gives is not free */
function allocateHealthCheckPort(allocator: NodePortAllocator, spec: JsonObject): void {
  if (!hasHealthCheckPort(spec)) return;
  const wanted = numberIn(spec, 'healthCheckNodePort');
  const problem = wanted && allocator.problemOf(wanted);
  if (problem) {
    throw internalError(`failed to allocate requested HealthCheck NodePort ${wanted}: ${problem}`);
  }
  spec['healthCheckNodePort'] = wanted || allocator.allocateNext('healthCheck');
}

/** Allocates node ports for one Service, beside those of all others. */
class NodePortAllocator {
  readonly #service: ApiObject['metadata'];
  readonly #isDryRun: boolean;
  readonly #taken: Set<number | undefined>;
  /** Ports that the client gives to the Service. */
  readonly #given: ReadonlySet<number | undefined>;

  constructor({ metadata }: ApiObject, spec: JsonObject, { list, isDryRun }: HookContext) {
    this.#service = metadata;
    this.#isDryRun = isDryRun;
    const others = list({ group: '', plural: 'services' }).filter(
      (other) => other.metadata.uid !== metadata.uid,
    );
    this.#taken = new Set(others.flatMap((other) => nodePortsOf(objectIn(other, 'spec') ?? {})));
    this.#given = new Set(objectsIn(spec, 'ports').map((port) => numberIn(port, 'nodePort')));
  }

  /** Returns a free port, which follows from the name of the Service and the use of the port. */
  allocateNext(use: string): number {
    const { first, last } = NODE_PORTS;
    const count = last - first + 1;
    const { namespace, name } = this.#service;
    const start = hash(`${namespace}/${name}:${use}`) % count;
    for (let offset = 0; offset < count; offset++) {
      const port = first + ((start + offset) % count);
      if (this.#taken.has(port) || this.#given.has(port)) continue;
      this.#taken.add(port);
      return port;
    }
    throw internalError('failed to allocate a nodePort: range is full');
  }

  /** @throws {StatusError} 422 if the port is not free */
  allocate(port: number, index: number): void {
    const problem = this.problemOf(port);
    this.#taken.add(port);
    if (!problem) return;
    throw invalidError({ group: '', kind: 'Service' }, this.#service.name, [
      fieldError.invalid(`spec.ports[${index}].nodePort`, port, problem),
    ]);
  }

  /** Returns why a port is not free: it is outside the range, which no dry run looks at, or belongs to another Service. */
  problemOf(port: number): string | undefined {
    const { first, last } = NODE_PORTS;
    if (!this.#isDryRun && (port < first || port > last)) {
      return `provided port is not in the valid range. The range of valid ports is ${first}-${last}`;
    }
    return this.#taken.has(port) ? 'provided port is already allocated' : undefined;
  }
}

function nodePortsOf(spec: JsonObject): readonly (number | undefined)[] {
  const ports = objectsIn(spec, 'ports').map((port) => numberIn(port, 'nodePort'));
  return [...ports, numberIn(spec, 'healthCheckNodePort')];
}

export function takesNodePorts(spec: Readonly<JsonObject>): boolean {
  const type = textIn(spec, 'type');
  return type === 'NodePort' || type === 'LoadBalancer';
}

/** Whether each port of a Service has a node port. */
export function needsNodePorts(spec: Readonly<JsonObject>): boolean {
  const type = textIn(spec, 'type');
  return (
    type === 'NodePort' ||
    (type === 'LoadBalancer' && spec['allocateLoadBalancerNodePorts'] !== false)
  );
}

/** An address in the default range, extended to 2^20 addresses; the first ones belong to the cluster itself. */
function addressOf(name: string): string {
  const offset = 256 + (hash(name) % (2 ** 20 - 512));
  return `10.${offset >> 16}.${(offset >> 8) & 255}.${offset & 255}`;
}

function hash(text: string): number {
  return new DataView(sha256(text).buffer).getUint32(0);
}

/** Whether load balancers ask the nodes which of them have a Pod of the Service. */
export function hasHealthCheckPort(spec: Readonly<JsonObject>): boolean {
  return (
    textIn(spec, 'type') === 'LoadBalancer' && textIn(spec, 'externalTrafficPolicy') === 'Local'
  );
}
