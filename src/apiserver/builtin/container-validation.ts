import { textIn } from '../../util/json-value.ts';
import type { CheckedObject } from '../objects/checked-object.ts';
import { compareQuantities } from '../../api/quantity.ts';

const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;
const HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'] as const;
const HEADER_NAME = /^[-A-Za-z0-9]+$/;
const NOT_A_HEADER_NAME =
  "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
const HOOKS = ['postStart', 'preStop'] as const;
const PROBE_NUMBERS = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
] as const;

const MESSAGE_POLICIES = ['File', 'FallbackToLogsOnError'];

/** What is wrong with a container; `volumes` are the names it may mount. */
export function validateContainer(container: CheckedObject, volumes: ReadonlySet<string>): void {
  container.requireText('name');
  container.requireFormat('name', 'dns1123Label');
  container.requireText('image');
  const image = container.text('image');
  // As upstream, Pods only: the Pods of other templates are refused later.
  if (image !== image.trim() && /^spec\.(?:c|initC)ontainers/.test(container.path)) {
    container.invalid('image', 'must not have leading or trailing whitespace');
  }
  container.requireOneOf('terminationMessagePolicy', MESSAGE_POLICIES);
  validatePorts(container);
  for (const variable of container.items('env')) validateVariable(variable);
  validateMounts(container, volumes);
  container.requireOneOf('imagePullPolicy', ['Always', 'IfNotPresent', 'Never']);
  validateResources(container.in('resources'));
  for (const name of PROBES) {
    const probe = container.get(name);
    if (probe) validateProbe(probe, name === 'readinessProbe');
  }
  for (const name of HOOKS) {
    const hook = container.in('lifecycle').get(name);
    if (hook) validateHandler(hook);
  }
}

function validatePorts(container: CheckedObject): void {
  const names = new Set<string>();
  for (const port of container.items('ports')) {
    if (port.text('name') !== '') validatePortNumberOrName(port, 'name');
    port.requireUnique('name', names);
    if (port.number('containerPort')) port.requirePort('containerPort');
    else port.required('containerPort');
    if (port.number('hostPort')) port.requirePort('hostPort');
    port.requireOneOf('protocol', ['SCTP', 'TCP', 'UDP']);
  }
}

/** IANA service names. */
function portNameProblems(name: string): string[] {
  return [
    ...(name.length > 15 ? ['must be no more than 15 characters'] : []),
    ...(/^[-a-z0-9]+$/.test(name)
      ? []
      : ['must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)']),
    ...(/[a-z]/.test(name) ? [] : ['must contain at least one letter (a-z)']),
    ...(name.includes('--') ? ['must not contain consecutive hyphens'] : []),
    ...(/^-|-$/.test(name) ? ['must not begin or end with a hyphen'] : []), // words-ok
  ];
}

const SOURCES = '`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`';

function validateVariable(variable: CheckedObject): void {
  variable.requireText('name');
  if (!/^[ -<>-~]*$/.test(variable.text('name'))) {
    const why =
      "a valid environment variable name must consist only of printable ASCII characters other than '='";
    variable.invalid('name', why);
  }
  const sources = variable.get('valueFrom');
  if (!sources) return;
  if (variable.text('value') !== '') {
    sources.invalid('', 'may not be specified when `value` is not empty', '');
  }
  const count = Object.keys(sources.value).length;
  if (count === 0) sources.invalid('', `must specify one of: ${SOURCES}`, '');
  else if (count > 1)
    sources.invalid('', 'may not have more than one field specified at a time', '');
}

function validateMounts(container: CheckedObject, volumes: ReadonlySet<string>): void {
  const places = new Set<string>();
  for (const mount of container.items('volumeMounts')) {
    const name = mount.text('name');
    const place = mount.text('mountPath');
    mount.requireText('name');
    if (!volumes.has(name)) mount.notFound('name', name);
    mount.requireText('mountPath');
    if (places.has(place)) mount.invalid('mountPath', 'must be unique', place);
    places.add(place);
  }
}

function validateResources(resources: CheckedObject): void {
  const limits = resources.in('limits').value;
  const requests = resources.in('requests').value;
  validateQuantities(resources, 'limits');
  validateQuantities(resources, 'requests');
  for (const name of Object.keys(requests)) {
    const request = textIn(requests, name);
    const limit = textIn(limits, name);
    if (limit === '' || request === limit || compareQuantities(request, limit) <= 0) continue;
    const why = `must be less than or equal to ${name} limit of ${limit}`;
    resources.invalid('requests', why, request);
  }
}

function validateQuantities(resources: CheckedObject, list: string): void {
  for (const [name, value] of Object.entries(resources.in(list).value)) {
    if (typeof value !== 'string' || !value.startsWith('-')) continue;
    if (compareQuantities(value, '0') >= 0) continue;
    resources.invalid(`${list}[${name}]`, 'must be greater than or equal to 0', value);
  }
}

function validateProbe(probe: CheckedObject, isReadiness: boolean): void {
  validateHandler(probe);
  probe.requireNonNegative(...PROBE_NUMBERS);
  const grace = probe.number('terminationGracePeriodSeconds');
  if (grace !== undefined && (isReadiness || grace <= 0)) {
    const problem = isReadiness ? 'must not be set for readinessProbes' : 'must be greater than 0';
    probe.invalid('terminationGracePeriodSeconds', problem);
  }
  const threshold = probe.number('successThreshold') ?? 1;
  if (!isReadiness && threshold !== 1) probe.invalid('successThreshold', 'must be 1');
}

/** What is wrong with the handler of a probe or of a lifecycle hook. */
function validateHandler(parent: CheckedObject): void {
  const [first, ...others] = HANDLERS.filter((handler) => parent.has(handler));
  if (first === undefined) parent.required('', 'must specify a handler type');
  for (const other of others) parent.forbidden(other, 'may not specify more than 1 handler type');
  const handler = first && parent.get(first);
  if (!handler) return;
  if (first === 'exec') {
    if (handler.list('command').length === 0) handler.required('command');
  } else if (first !== 'sleep') validatePortNumberOrName(handler, 'port');
  if (first !== 'httpGet') return;
  handler.requireOneOf('scheme', ['HTTP', 'HTTPS']);
  for (const header of handler.items('httpHeaders')) {
    const name = header.text('name');
    if (!HEADER_NAME.test(name)) handler.invalid('httpHeaders', NOT_A_HEADER_NAME, name);
  }
}

/** What is wrong with the port of a container, by its number or its name. */
export function validatePortNumberOrName(object: CheckedObject, field: string): void {
  const port = object.value[field];
  if (typeof port === 'number') object.requirePort(field, port);
  else if (typeof port === 'string') object.problems(field, portNameProblems(port));
}
