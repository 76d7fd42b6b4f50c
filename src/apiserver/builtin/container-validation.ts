import type { JsonObject } from '../schema/json-value.ts';
import { isSet, listIn, numberIn, objectIn, objectsIn, textIn } from './fields.ts';
import type { Findings } from './findings.ts';
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

/** What is wrong with a container; `volumes` are the names it may mount. */
export function validateContainer(
  container: JsonObject,
  volumes: ReadonlySet<string>,
  path: string,
  findings: Findings,
): void {
  findings.requireText(container, 'name', path);
  findings.requireFormat(container, 'name', 'dns1123Label', path);
  findings.requireText(container, 'image', path);
  const image = textIn(container, 'image');
  // As upstream, Pods only: the Pods of other templates are refused later.
  if (image !== image.trim() && /^spec\.(?:c|initC)ontainers/.test(path)) {
    findings.invalid(`${path}.image`, image, 'must not have leading or trailing whitespace');
  }
  findings.requireOneOf(
    container,
    'terminationMessagePolicy',
    ['File', 'FallbackToLogsOnError'],
    path,
  );
  validatePorts(container, `${path}.ports`, findings);
  validateEnvironment(container, `${path}.env`, findings);
  validateMounts(container, volumes, `${path}.volumeMounts`, findings);
  findings.requireOneOf(container, 'imagePullPolicy', ['Always', 'IfNotPresent', 'Never'], path);
  validateResources(container, `${path}.resources`, findings);
  for (const name of PROBES) {
    const probe = objectIn(container, name);
    if (probe) validateProbe(probe, name, `${path}.${name}`, findings);
  }
  for (const name of HOOKS) {
    const hook = objectIn(objectIn(container, 'lifecycle'), name);
    if (hook) validateHandler(hook, `${path}.lifecycle.${name}`, findings);
  }
}

function validatePorts(container: JsonObject, path: string, findings: Findings): void {
  const names = new Set<string>();
  for (const [index, port] of objectsIn(container, 'ports').entries()) {
    const at = `${path}[${index}]`;
    const name = textIn(port, 'name');
    if (name !== '') validatePortNumberOrName(name, `${at}.name`, findings);
    findings.requireUnique(port, 'name', names, at);
    const containerPort = numberIn(port, 'containerPort') ?? 0;
    if (containerPort === 0) findings.required(`${at}.containerPort`);
    else findings.requirePort(containerPort, `${at}.containerPort`);
    const hostPort = numberIn(port, 'hostPort') ?? 0;
    if (hostPort !== 0) findings.requirePort(hostPort, `${at}.hostPort`);
    findings.requireOneOf(port, 'protocol', ['SCTP', 'TCP', 'UDP'], at);
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

function validateEnvironment(container: JsonObject, path: string, findings: Findings): void {
  for (const [index, variable] of objectsIn(container, 'env').entries()) {
    const at = `${path}[${index}]`;
    const name = textIn(variable, 'name');
    findings.requireText(variable, 'name', at);
    if (!/^[ -<>-~]*$/.test(name)) {
      findings.invalid(
        `${at}.name`,
        name,
        "a valid environment variable name must consist only of printable ASCII characters other than '='",
      );
    }
    const sources = objectIn(variable, 'valueFrom');
    if (!sources) continue;
    if (textIn(variable, 'value') !== '') {
      findings.invalid(`${at}.valueFrom`, '', 'may not be specified when `value` is not empty');
    }
    const count = Object.keys(sources).length;
    if (count === 0) {
      findings.invalid(
        `${at}.valueFrom`,
        '',
        'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`',
      );
    } else if (count > 1) {
      findings.invalid(
        `${at}.valueFrom`,
        '',
        'may not have more than one field specified at a time',
      );
    }
  }
}

function validateMounts(
  container: JsonObject,
  volumes: ReadonlySet<string>,
  path: string,
  findings: Findings,
): void {
  const places = new Set<string>();
  for (const [index, mount] of objectsIn(container, 'volumeMounts').entries()) {
    const at = `${path}[${index}]`;
    const name = textIn(mount, 'name');
    const place = textIn(mount, 'mountPath');
    findings.requireText(mount, 'name', at);
    if (!volumes.has(name)) findings.notFound(`${at}.name`, name);
    findings.requireText(mount, 'mountPath', at);
    if (places.has(place)) findings.invalid(`${at}.mountPath`, place, 'must be unique');
    places.add(place);
  }
}

function validateResources(container: JsonObject, path: string, findings: Findings): void {
  const resources = objectIn(container, 'resources');
  const limits = objectIn(resources, 'limits') ?? {};
  const requests = objectIn(resources, 'requests') ?? {};
  validateQuantities(limits, `${path}.limits`, findings);
  validateQuantities(requests, `${path}.requests`, findings);
  for (const name of Object.keys(requests)) {
    const request = textIn(requests, name);
    const limit = textIn(limits, name);
    if (limit === '' || compareQuantities(request, limit) <= 0) continue;
    findings.invalid(
      `${path}.requests`,
      request,
      `must be less than or equal to ${name} limit of ${limit}`,
    );
  }
}

function validateQuantities(list: JsonObject, path: string, findings: Findings): void {
  for (const [name, value] of Object.entries(list)) {
    if (typeof value !== 'string') continue;
    if (compareQuantities(value, '0') < 0) {
      findings.invalid(`${path}[${name}]`, value, 'must be greater than or equal to 0');
    }
  }
}

function validateProbe(
  probe: JsonObject,
  name: (typeof PROBES)[number],
  path: string,
  findings: Findings,
): void {
  validateHandler(probe, path, findings);
  for (const field of PROBE_NUMBERS) findings.requireNonNegative(probe, field, path);
  const grace = numberIn(probe, 'terminationGracePeriodSeconds');
  const isReadiness = name === 'readinessProbe';
  if (grace !== undefined && (isReadiness || grace <= 0)) {
    const problem = isReadiness ? 'must not be set for readinessProbes' : 'must be greater than 0';
    findings.invalid(`${path}.terminationGracePeriodSeconds`, grace, problem);
  }
  const threshold = numberIn(probe, 'successThreshold') ?? 1;
  if (!isReadiness && threshold !== 1) {
    findings.invalid(`${path}.successThreshold`, threshold, 'must be 1');
  }
}

/** What is wrong with the handler of a probe or of a lifecycle hook. */
function validateHandler(parent: JsonObject, path: string, findings: Findings): void {
  const [first, ...others] = HANDLERS.filter((handler) => isSet(parent, handler));
  if (first === undefined) findings.required(path, 'must specify a handler type');
  for (const handler of others) {
    findings.forbidden(`${path}.${handler}`, 'may not specify more than 1 handler type');
  }
  const handler = first && objectIn(parent, first);
  if (!handler) return;
  const at = `${path}.${first}`;
  if (first === 'exec') {
    if (listIn(handler, 'command').length === 0) findings.required(`${at}.command`);
  } else if (first !== 'sleep') {
    validatePortNumberOrName(handler['port'], `${at}.port`, findings);
  }
  if (first !== 'httpGet') return;
  findings.requireOneOf(handler, 'scheme', ['HTTP', 'HTTPS'], at);
  for (const header of objectsIn(handler, 'httpHeaders')) {
    const name = textIn(header, 'name');
    if (!HEADER_NAME.test(name)) findings.invalid(`${at}.httpHeaders`, name, NOT_A_HEADER_NAME);
  }
}

/** What is wrong with the port of a container, by its number or its name. */
export function validatePortNumberOrName(port: unknown, path: string, findings: Findings): void {
  if (typeof port === 'number') findings.requirePort(port, path);
  else if (typeof port === 'string') {
    for (const problem of portNameProblems(port)) findings.invalid(path, port, problem);
  }
}
