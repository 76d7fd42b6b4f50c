import { typedText } from '../../../api/field-error.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { validateEnvironment } from './container-environment.ts';
import { validateContainerResources } from './container-resources.ts';
import { validateContainerSecurity } from './security-context.ts';
import { validateLocalPath } from '../shared/local-paths.ts';

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

/** What the validation of a container depends on. */
export interface PodContext {
  /** The valid volumes by their names, which containers may mount. */
  readonly volumes: ReadonlyMap<string, CheckedObject>;
  /** Names of the Pod's resource claims. */
  readonly claims: ReadonlySet<string>;
  readonly restartPolicy: string;
  readonly hasHostUsers: boolean;
  readonly gracePeriodSeconds: number;
}

/** Reports what is wrong with a container of any list. */
export function validateContainer(container: CheckedObject, context: PodContext): void {
  container.requireText('name');
  container.requireFormat('name', 'dns1123Label');
  container.requireText('image');
  const image = container.text('image');
  // As upstream, those of a template are refused with its Pods.
  const isOfPod = /^spec\.(?:c|initC)ontainers|\.ephemeralContainers\[/.test(container.path);
  if (image !== image.trim() && isOfPod) {
    container.invalid('image', 'must not have leading or trailing whitespace');
  }
  container.requireOneOf('terminationMessagePolicy', MESSAGE_POLICIES);
  validatePorts(container);
  validateEnvironment(container);
  validateMounts(container, context.volumes);
  validateDevices(container, context.volumes);
  container.requireOneOf('imagePullPolicy', ['Always', 'IfNotPresent', 'Never']);
  validateContainerResources(container.in('resources'), context.claims);
  validateResizePolicy(container, context.restartPolicy);
  const security = container.get('securityContext');
  if (security) validateContainerSecurity(security, context.hasHostUsers);
}

/** Reports what is wrong with the probes and the hooks of a container. */
export function validateHandlers(container: CheckedObject, context: PodContext): void {
  const lifecycle = container.get('lifecycle');
  for (const name of HOOKS) {
    const hook = lifecycle?.get(name);
    if (hook) validateHandler(hook, context);
  }
  for (const name of PROBES) {
    const probe = container.get(name);
    if (probe) validateProbe(probe, name === 'readinessProbe', context);
  }
}

const RESTARTS = ['Always', 'Never', 'OnFailure'];
const RULE_ACTIONS = ['Restart', 'RestartAllContainers'];

/** Reports what is wrong with the restart policy and the rules of a container. */
export function validateRestarts(
  container: CheckedObject,
  list: 'containers' | 'initContainers' = 'containers',
): void {
  const rules = container.items('restartPolicyRules');
  if (!container.has('restartPolicy')) {
    const why = 'must specify restartPolicy when restart rules are used';
    if (rules.length > 0) container.required('restartPolicy', why);
    if (list === 'initContainers') return;
  } else if (!RESTARTS.includes(container.text('restartPolicy'))) {
    container.notSupported('restartPolicy', RESTARTS);
  }
  if (rules.length > 20) container.tooMany('restartPolicyRules', rules.length, 20);
  for (const rule of rules) {
    const action = rule.text('action');
    if (!RULE_ACTIONS.includes(action)) rule.notSupported('action', RULE_ACTIONS, action);
    const codes = rule.get('exitCodes');
    if (!codes) {
      rule.required('exitCodes', 'must be specified');
      continue;
    }
    const operator = codes.text('operator');
    const operators = ['In', 'NotIn'];
    if (!operators.includes(operator)) codes.notSupported('operator', operators, operator);
    const count = codes.list('values').length;
    if (count > 255) codes.tooMany('values', count, 255);
  }
}

function validateResizePolicy(container: CheckedObject, restartPolicy: string): void {
  const names = new Set<string>();
  const field = 'resizePolicy';
  // A server reports most of these errors for the whole list.
  for (const [index, policy] of container.items(field).entries()) {
    const name = policy.text('resourceName');
    if (names.has(name)) container.duplicate(`${field}[${index}]`, typedText(name));
    names.add(name);
    if (name === '') container.required(field);
    else if (name !== 'cpu' && name !== 'memory') {
      container.notSupported(field, ['cpu', 'memory'], name);
    }
    const restart = policy.text('restartPolicy');
    const supported = ['NotRequired', 'RestartContainer'];
    if (restart === '') container.required(field);
    else if (!supported.includes(restart)) container.notSupported(field, supported, restart);
    if (restartPolicy === 'Never' && restart !== 'NotRequired') {
      const why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
      container.invalid(field, why, typedText(restart));
    }
  }
}

function validatePorts(container: CheckedObject): void {
  const names = new Set<string>();
  for (const port of container.items('ports')) {
    const count = port.errors.length;
    if (port.text('name') !== '') validatePortNumberOrName(port, 'name');
    if (port.errors.length === count) port.requireUnique('name', names);
    if (port.number('containerPort')) port.requirePort('containerPort');
    else port.required('containerPort');
    if (port.number('hostPort')) port.requirePort('hostPort');
    port.requireOneOf('protocol', ['SCTP', 'TCP', 'UDP']);
  }
}

/** IANA service names. */
export function portNameProblems(name: string): string[] {
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

function validateMounts(
  container: CheckedObject,
  volumes: ReadonlyMap<string, CheckedObject>,
): void {
  const places = new Set<string>();
  const devices = new Map(
    container.items('volumeDevices').map((each) => [each.text('name'), each.text('devicePath')]),
  );
  const devicePaths = new Set(devices.values());
  for (const mount of container.items('volumeMounts')) {
    const name = mount.text('name');
    const place = mount.text('mountPath');
    mount.requireText('name');
    if (!volumes.has(name)) mount.notFound('name', name);
    mount.requireText('mountPath');
    if (places.has(place)) mount.invalid('mountPath', 'must be unique', place);
    places.add(place);
    if (devices.has(name)) mount.invalid('name', 'must not already exist in volumeDevices');
    if (devicePaths.has(place)) {
      mount.invalid('mountPath', 'must not already exist as a path in volumeDevices', place);
    }
    validateSubPaths(container, mount);
    validateMountOptions(container, mount);
  }
}

/** A server reports these errors for the whole list. */
function validateSubPaths(container: CheckedObject, mount: CheckedObject): void {
  const [path, expression] = [mount.text('subPath'), mount.text('subPathExpr')];
  if (path !== '') validateLocalPath(container, 'volumeMounts.subPath', path);
  if (expression === '') return;
  if (path !== '') {
    mount.invalid('subPathExpr', 'subPathExpr and subPath are mutually exclusive');
  }
  validateLocalPath(container, 'volumeMounts.subPathExpr', expression);
}

const PROPAGATIONS = ['Bidirectional', 'HostToContainer', 'None'];
const READ_ONLY = ['Disabled', 'Enabled', 'IfPossible'];

/** A server reports these errors for the whole list. */
function validateMountOptions(container: CheckedObject, mount: CheckedObject): void {
  const propagation = mount.text('mountPropagation');
  const field = 'volumeMounts.mountPropagation';
  if (mount.has('mountPropagation') && !PROPAGATIONS.includes(propagation)) {
    container.notSupported(field, PROPAGATIONS, propagation);
  }
  if (
    propagation === 'Bidirectional' &&
    container.in('securityContext').value['privileged'] !== true
  ) {
    const why = 'Bidirectional mount propagation is available only to privileged containers';
    container.forbidden(field, why);
  }
  if (!mount.has('recursiveReadOnly')) return;
  const readOnly = mount.text('recursiveReadOnly');
  const own = 'volumeMounts.recursiveReadOnly';
  if (!READ_ONLY.includes(readOnly)) container.notSupported(own, READ_ONLY, readOnly);
  else if (readOnly !== 'Disabled') {
    if (mount.value['readOnly'] !== true) {
      container.forbidden(own, 'may only be specified when readOnly is true');
    }
    if (propagation !== '' && propagation !== 'None') {
      const why = 'may only be specified when mountPropagation is None or not specified';
      container.forbidden(own, why);
    }
  }
}

function validateDevices(
  container: CheckedObject,
  volumes: ReadonlyMap<string, CheckedObject>,
): void {
  const mounts = new Map(
    container.items('volumeMounts').map((each) => [each.text('name'), each.text('mountPath')]),
  );
  const mountPaths = new Set(mounts.values());
  const paths = new Set<string>();
  const names = new Set<string>();
  for (const device of container.items('volumeDevices')) {
    const [name, path] = [device.text('name'), device.text('devicePath')];
    const volume = volumes.get(name);
    device.requireText('name');
    if (names.has(name)) device.invalid('name', 'must be unique');
    if (!volume) device.notFound('name', name);
    else if (!volume.has('persistentVolumeClaim') && !volume.has('ephemeral')) {
      const why =
        'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode';
      device.invalid('name', why);
    }
    device.requireText('devicePath');
    if (paths.has(path)) device.invalid('devicePath', 'must be unique', path);
    if (path.split('/').includes('..')) {
      device.invalid('devicePath', "can not contain backsteps ('..')");
    } else paths.add(path);
    if (mounts.has(name)) device.invalid('name', 'must not already exist in volumeMounts', name);
    if (mountPaths.has(path)) {
      device.invalid('devicePath', 'must not already exist as a path in volumeMounts', path);
    }
    if (name !== '') names.add(name);
  }
}

function validateProbe(probe: CheckedObject, isReadiness: boolean, context: PodContext): void {
  validateHandler(probe, context);
  probe.requireNonNegative(...PROBE_NUMBERS);
  const grace = probe.number('terminationGracePeriodSeconds');
  const field = 'terminationGracePeriodSeconds';
  if (grace !== undefined && grace <= 0) probe.invalid(field, 'must be greater than 0');
  if (grace !== undefined && isReadiness) {
    probe.invalid(field, 'must not be set for readinessProbes');
  }
  const threshold = probe.number('successThreshold') ?? 1;
  if (!isReadiness && threshold !== 1) probe.invalid('successThreshold', 'must be 1');
}

/** What is wrong with the handler of a probe or of a lifecycle hook. */
function validateHandler(parent: CheckedObject, context: PodContext): void {
  const [first, ...others] = HANDLERS.filter((handler) => parent.has(handler));
  if (first === undefined) parent.required('', 'must specify a handler type');
  for (const other of others) parent.forbidden(other, 'may not specify more than 1 handler type');
  const handler = first && parent.get(first);
  if (!handler) return;
  if (first === 'exec') {
    if (handler.list('command').length === 0) handler.required('command');
  } else if (first === 'sleep') {
    const seconds = handler.number('seconds') ?? 0;
    const max = context.gracePeriodSeconds;
    if (seconds >= 0 && seconds <= max) return;
    const why = `must be non-negative and less than terminationGracePeriodSeconds (${max})`;
    handler.invalid('', why, seconds);
  } else validatePortNumberOrName(handler, 'port');
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
