import { fieldError } from '../../../api/field-error.ts';
import { nameProblems, qualifiedNameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { validateContainerResources, validatePodResources } from './container-resources.ts';
import type { PodContext } from './container-validation.ts';
import { validateContainer, validateHandlers, validateRestarts } from './container-validation.ts';
import {
  validateFileVolumes,
  validateHostProcesses,
  validateHostUsers,
  validateOs,
} from './pod-os.ts';
import { validatePlacement } from './pod-placement.ts';
import { validateVolumes } from './pod-volumes.ts';
import { OF_STATIC_POD } from './profile-annotations.ts';
import { validatePodSecurity } from './security-context.ts';
import { ipProblem } from '../shared/addresses.ts';
import { requireSelectorKey, validateLabels } from '../shared/label-selector-validation.ts';

const MAX_INT32 = 2 ** 31 - 1;
const DNS_POLICIES = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'];

/** A name in the DNS, whose labels may start with an underscore. */
const SEARCH_PATH = /^_?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?(?:\._?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?)*$/;

const NOT_A_SEARCH_PATH =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";

/**
 * Reports what is wrong with the spec of a Pod or of a template.
 *
 * @param pod the metadata of a Pod; those of a template are not used
 */
export function validatePodSpec(spec: CheckedObject, pod?: StoredObject['metadata']): void {
  const claims = spec.items('resourceClaims');
  const context: PodContext = {
    volumes: validateVolumes(spec, pod?.name),
    claims: new Set(claims.map((claim) => claim.text('name')).filter((name) => name !== '')),
    restartPolicy: spec.text('restartPolicy'),
    hasHostUsers: spec.value['hostUsers'] !== false,
    gracePeriodSeconds: spec.number('terminationGracePeriodSeconds') ?? 0,
  };
  if (pod?.annotations?.[OF_STATIC_POD] === undefined) validateClaims(claims);
  else if (claims.length > 0) {
    const why = 'static pods do not support resource claims';
    spec.report(fieldError.forbidden('[]', why));
  }
  validateContainers(spec, context);
  validateInitContainers(spec, context);
  validateEphemeralContainers(spec, context);
  validatePodResources(spec, context.claims);
  validateHostPorts(spec);
  spec.requireOneOf('restartPolicy', ['Always', 'OnFailure', 'Never']);
  spec.requireOneOf('dnsPolicy', DNS_POLICIES);
  validateLabels(spec, 'nodeSelector');
  validatePodSecurity(spec);
  if (spec.value['shareProcessNamespace'] === true && spec.value['hostPID'] === true) {
    const why = 'ShareProcessNamespace and HostPID cannot both be enabled';
    spec.invalid('shareProcessNamespace', why);
  }
  validatePlacement(spec);
  validateDns(spec);
  for (const gate of spec.items('readinessGates')) requireSelectorKey(gate, 'conditionType');
  validateGates(spec);
  validateHostProcesses(spec);
  validateHostUsers(spec);
  validateHostnameOverride(spec);
  validateNames(spec);
  const deadline = spec.number('activeDeadlineSeconds') ?? 1;
  if (deadline < 1 || deadline > MAX_INT32) {
    spec.invalid('activeDeadlineSeconds', `must be between 1 and ${MAX_INT32}, inclusive`);
  }
  for (const alias of spec.items('hostAliases')) {
    requireIp(alias, 'ip', alias.text('ip'));
    for (const [index, name] of alias.list('hostnames').map(String).entries()) {
      alias.problems(`hostnames[${index}]`, nameProblems(name, 'dns1123Subdomain'), name);
    }
  }
  if (spec.has('preemptionPolicy')) spec.requireText('preemptionPolicy');
  spec.requireOneOf('preemptionPolicy', ['PreemptLowerPriority', 'Never']);
  const overhead = spec.get('overhead');
  if (overhead) validateContainerResources(overhead.as({ limits: overhead.value }), new Set());
  validateOs(spec);
  validateFileVolumes(spec);
}

function validateNames(spec: CheckedObject): void {
  spec.requireFormat('serviceAccountName', 'dns1123Subdomain');
  spec.requireFormat('nodeName', 'dns1123Subdomain');
  spec.requireFormat('hostname', 'dns1123Label');
  spec.requireFormat('subdomain', 'dns1123Label');
  spec.requireFormat('priorityClassName', 'dns1123Subdomain');
  if (!spec.has('runtimeClassName')) return;
  const name = spec.text('runtimeClassName');
  spec.problems('runtimeClassName', nameProblems(name, 'dns1123Subdomain'));
}

function validateClaims(claims: readonly CheckedObject[]): void {
  const names = new Set<string>();
  for (const claim of claims) {
    claim.requireText('name');
    if (!names.has(claim.text('name'))) claim.requireFormat('name', 'dns1123Label');
    claim.requireUnique('name', names);
    const fields = ['resourceClaimName', 'resourceClaimTemplateName'];
    const present = fields.filter((field) => claim.has(field));
    if (present.length > 1) {
      const why =
        'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified';
      claim.invalid('', why, claim.value);
    } else if (present.length === 0) {
      const why = 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`';
      claim.invalid('', why, claim.value);
    }
    for (const field of present) {
      claim.problems(field, nameProblems(claim.text(field), 'dns1123Subdomain'));
    }
  }
}

function validateHostPorts(spec: CheckedObject): void {
  if (spec.value['hostNetwork'] !== true) return;
  // As upstream, the defaults set the ports of a Pod, and those of a template may be absent.
  for (const container of spec.items('containers')) {
    for (const port of container.items('ports')) {
      const host = port.number('hostPort') ?? 0;
      if (host === 0 || host === port.number('containerPort')) continue;
      port.invalid('hostPort', 'must match `containerPort` when `hostNetwork` is true', host);
    }
  }
}

function validateDns(spec: CheckedObject): void {
  const dns = spec.in('dnsConfig');
  const servers = dns.list('nameservers').map(String);
  if (spec.text('dnsPolicy') === 'None') {
    if (!spec.has('dnsConfig')) {
      spec.required('dnsConfig', 'must provide `dnsConfig` when `dnsPolicy` is None');
      return;
    }
    if (servers.length === 0) {
      const why = 'must provide at least one DNS nameserver when `dnsPolicy` is None';
      dns.required('nameservers', why);
      return;
    }
  }
  if (servers.length > 3) dns.invalid('nameservers', 'must not have more than 3 nameservers');
  for (const [index, server] of servers.entries()) requireIp(dns, `nameservers[${index}]`, server);
  const searches = dns.list('searches').map(String);
  if (searches.length > 32) dns.invalid('searches', 'must not have more than 32 search paths');
  if (searches.join(' ').length > 2048) {
    const why = 'must not have more than 2048 characters (including spaces) in the search list';
    dns.invalid('searches', why);
  }
  for (const [index, search] of searches.entries()) {
    const name = search.replace(/\.$/, '');
    const field = `searches[${index}]`;
    if (name.length > 253) dns.invalid(field, 'must be no more than 253 characters', name);
    if (search !== '.' && !SEARCH_PATH.test(name)) dns.invalid(field, NOT_A_SEARCH_PATH, name);
  }
  for (const [index, option] of dns.items('options').entries()) {
    if (option.text('name') === '') dns.required(`options[${index}]`, 'must not be empty');
  }
}

function validateGates(spec: CheckedObject): void {
  const names = new Set<string>();
  for (const [index, gate] of spec.items('schedulingGates').entries()) {
    const name = gate.text('name');
    const field = `schedulingGates[${index}]`;
    spec.problems(field, qualifiedNameProblems(name), name);
    if (names.has(name)) spec.duplicate(field, name);
    names.add(name);
  }
}

function requireIp(holder: CheckedObject, field: string, address: string): void {
  const problem = ipProblem(address);
  if (problem !== undefined) holder.invalid(field, problem, address);
}

function validateHostnameOverride(spec: CheckedObject): void {
  const field = 'hostnameOverride';
  if (!spec.has(field)) return;
  for (const other of ['setHostnameAsFQDN', 'hostNetwork']) {
    if (spec.value[other] !== true) continue;
    spec.forbidden(field, `may not be specified when ${other} is true`);
  }
  const name = spec.text(field);
  if (name.length > 64) spec.tooLong(field, 64);
  spec.problems(field, nameProblems(name, 'dns1123Subdomain'));
}

function validateContainers(spec: CheckedObject, context: PodContext): void {
  const containers = spec.items('containers');
  if (containers.length === 0) spec.required('containers');
  const names = new Set<string>();
  for (const container of containers) {
    validateContainer(container, context);
    requireUniqueName(container, names);
    validateHandlers(container, context);
    validateRestarts(container);
  }
  requireUniqueHostPorts(containers);
}

/** Also an empty name is one. */
function requireUniqueName(container: CheckedObject, names: Set<string>): void {
  const name = container.text('name');
  if (names.has(name)) container.duplicate('name', name);
  names.add(name);
}

/** Names are unique among the init containers and the containers together. */
function validateInitContainers(spec: CheckedObject, context: PodContext): void {
  const names = new Set(spec.items('containers').map((container) => container.text('name')));
  for (const container of spec.items('initContainers')) {
    validateContainer(container, context);
    validateRestarts(container, 'initContainers');
    container.requireUnique('name', names);
    requireUniqueHostPorts([container]);
    if (container.text('restartPolicy') === 'Always') {
      validateHandlers(container, context);
      continue;
    }
    for (const field of ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe']) {
      if (!container.has(field)) continue;
      const why = 'may not be set for init containers without restartPolicy=Always';
      container.forbidden(field, why);
    }
    for (const policy of container.items('resizePolicy')) {
      if (policy.text('restartPolicy') !== 'RestartContainer') continue;
      const why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
      policy.invalid('restartPolicy', why);
    }
  }
}

function requireUniqueHostPorts(containers: readonly CheckedObject[]): void {
  const taken = new Set<string>();
  for (const port of containers.flatMap((container) => container.items('ports'))) {
    const host = port.number('hostPort') ?? 0;
    if (host === 0) continue;
    const place = `${port.text('protocol')}/${port.text('hostIP')}/${host}`;
    if (taken.has(place)) port.duplicate('hostPort', place);
    taken.add(place);
  }
}

/** Fields that an ephemeral container does not have. */
const NOT_EPHEMERAL = [
  'ports',
  'resources',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
  'resizePolicy',
  'restartPolicy',
  'restartPolicyRules',
];

function validateEphemeralContainers(spec: CheckedObject, context: PodContext): void {
  const others = [...spec.items('containers'), ...spec.items('initContainers')];
  const targets = new Set(others.map((container) => container.text('name')));
  const names = new Set(targets);
  for (const container of spec.items('ephemeralContainers')) {
    validateContainer(container, context);
    requireUniqueName(container, names);
    const target = container.text('targetContainerName');
    if (target !== '' && !targets.has(target)) container.notFound('targetContainerName', target);
    const why = 'cannot be set for an Ephemeral Container';
    for (const field of NOT_EPHEMERAL) {
      if (isSetIn(container, field)) container.forbidden(field, why);
    }
    for (const mount of container.items('volumeMounts')) {
      for (const field of ['subPath', 'subPathExpr']) {
        if (mount.text(field) !== '') mount.forbidden(field, why);
      }
    }
  }
}

/** Resources, which are always there, are set if they are not empty. */
function isSetIn(container: CheckedObject, field: string): boolean {
  if (field !== 'resources') return container.has(field);
  return Object.keys(container.in(field).value).length > 0;
}
