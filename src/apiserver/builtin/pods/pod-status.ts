import { typedText } from '../../../api/field-error.ts';
import { nameProblems, qualifiedNameProblems } from '../../../api/object-names.ts';
import { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { canonicalIp, ipProblem } from '../shared/addresses.ts';
import { validateResourceHealth } from './resource-health.ts';

/** Reports what is wrong with a new status of a Pod. */
export function validatePodStatus(pod: CheckedObject<StoredObject>, previous: StoredObject): void {
  const status = pod.in('status');
  const spec = pod.in('spec');
  const before = new CheckedObject(previous).in('status');
  for (const holder of [status, ...status.items('conditions')]) {
    if ((holder.number('observedGeneration') ?? 0) >= 0) continue;
    holder.invalid('observedGeneration', 'must be a non-negative integer');
  }
  for (const condition of status.items('conditions')) {
    const type = condition.text('type');
    condition.problems('Type', qualifiedNameProblems(type), type);
  }
  const field = 'nominatedNodeName';
  if (status.text(field) !== '' && status.text(field) !== before.text(field)) {
    status.requireFormat(field, 'dns1123Subdomain');
    const why = 'may not be set on pods that are already bound to a node';
    if (spec.text('nodeName') !== '') status.forbidden(field, why);
  }
  if (status.text('qosClass') !== before.text('qosClass')) {
    status.invalid('qosClass', 'field is immutable', typedText(status.text('qosClass')));
  }
  validateTransitions(status, before, new CheckedObject(previous).in('spec'));
  validateClaims(status, spec);
  validateExtendedClaims(status.get('extendedResourceClaimStatus'), spec);
  validateAddresses(status, before);
  for (const [list, containers] of STATUSES) {
    for (const container of status.items(list)) {
      validateUser(container, spec);
      if (list !== 'ephemeralContainerStatuses') {
        validateResourceHealth(container, spec.items(containers), status);
      } else if (container.list('allocatedResourcesStatus').length > 0) {
        const why = 'must not be specified in container status';
        container.forbidden('allocatedResourcesStatus', why);
      }
    }
  }
}

/** Lists of containers by those of their status. */
const STATUSES = new Map([
  ['containerStatuses', 'containers'],
  ['initContainerStatuses', 'initContainers'],
  ['ephemeralContainerStatuses', 'ephemeralContainers'],
]);

/** A container that ended and is not restarted does not run again. */
function validateTransitions(
  status: CheckedObject,
  before: CheckedObject,
  spec: CheckedObject,
): void {
  const rulesOf = (container: CheckedObject) => container.items('restartPolicyRules');
  const restartsAll = [...spec.items('containers'), ...spec.items('initContainers')]
    .flatMap(rulesOf)
    .some((rule) => rule.text('action') === 'RestartAllContainers');
  for (const [list, containers] of STATUSES) {
    const isEphemeral = list === 'ephemeralContainerStatuses';
    if (restartsAll && !isEphemeral) continue;
    const named = new Map(spec.items(containers).map((each) => [each.text('name'), each]));
    const now = new Map(status.items(list).map((each) => [each.text('name'), each]));
    for (const [index, was] of before.items(list).entries()) {
      const name = was.text('name');
      const ended = was.in('state').get('terminated');
      const is = now.get(name);
      if (!ended || !is || is.in('state').get('terminated')) continue;
      const container = named.get(name);
      const code = ended.number('exitCode') ?? 0;
      if (!isEphemeral && container && restarts(container, code, spec)) continue;
      status.forbidden(
        `${list}[${index}].state`,
        'may not be transitioned to non-terminated state',
      );
    }
  }
}

function restarts(container: CheckedObject, code: number, spec: CheckedObject): boolean {
  const own = container.text('restartPolicy');
  const rule = own === '' ? undefined : container.items('restartPolicyRules').find(isFor(code));
  if (rule) return true;
  const policy = own || spec.text('restartPolicy');
  return policy === 'OnFailure' ? code !== 0 : policy !== 'Never';
}

const isFor = (code: number) => (rule: CheckedObject) => {
  const codes = rule.in('exitCodes');
  const isIn = codes.list('values').includes(code);
  return codes.text('operator') === 'In' ? isIn : codes.text('operator') === 'NotIn' && !isIn;
};

function validateClaims(status: CheckedObject, spec: CheckedObject): void {
  const known = new Set(spec.items('resourceClaims').map((claim) => claim.text('name')));
  const names = new Set<string>();
  for (const claim of status.items('resourceClaimStatuses')) {
    if (!known.has(claim.text('name'))) {
      claim.invalid('name', 'must match the name of an entry in `spec.resourceClaims`');
    }
    if (names.has(claim.text('name'))) claim.duplicate('name', claim.text('name'));
    names.add(claim.text('name'));
    const field = 'resourceClaimName';
    if (!claim.has(field)) continue;
    const name = claim.text(field);
    claim.problems(field, nameProblems(name, 'dns1123Subdomain'), typedText(name));
  }
}

function validateExtendedClaims(claims: CheckedObject | undefined, spec: CheckedObject): void {
  if (!claims) return;
  const lists = ['initContainers', 'containers'];
  const containers = new Map(
    lists.flatMap((list) => spec.items(list)).map((each) => [each.text('name'), each]),
  );
  const mappings = claims.items('requestMappings');
  if (mappings.length === 0) {
    claims.required('requestMappings', 'at least one request mapping is required');
  }
  const taken = new Set<string>();
  for (const mapping of mappings) {
    const container = containers.get(mapping.text('containerName'));
    const resource = mapping.text('resourceName');
    if (!container) {
      const why =
        'must match the name of an entry in spec.initContainers.name or spec.containers.name';
      mapping.invalid('containerName', why);
    } else if (!container.in('resources').in('requests').has(resource)) {
      const why =
        'must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests';
      mapping.invalid('resourceName', why);
    }
    const name = mapping.text('requestName');
    claims.problems('requestName', nameProblems(name, 'dns1123Label'), name);
    const fields = ['containerName', 'resourceName', 'requestName'];
    const key = JSON.stringify(fields.map((field) => mapping.text(field)));
    if (taken.has(key)) for (const field of fields) mapping.duplicate(field);
    taken.add(key);
  }
  claims.requireText('resourceClaimName');
  claims.requireFormat('resourceClaimName', 'dns1123Subdomain');
}

/** Addresses that a Pod or its node has may stay. */
function validateAddresses(status: CheckedObject, before: CheckedObject): void {
  const [host] = status.items('hostIPs');
  if (host && host.text('ip') !== status.text('hostIP')) {
    host.invalid('ip', 'must be equal to `hostIP`', host.text('ip'));
  }
  for (const list of ['podIPs', 'hostIPs']) {
    const former = new Set(before.items(list).map((each) => each.text('ip')));
    const addresses = status.items(list).map((each) => each.text('ip'));
    for (const [index, ip] of addresses.entries()) {
      const problem = former.has(ip) ? undefined : ipProblem(ip);
      if (problem !== undefined) status.invalid(`${list}[${index}]`, problem, ip);
    }
    if (addresses.length < 2) continue;
    const families = new Set(addresses.map((ip) => ip.includes(':')));
    const wrong = addresses.findIndex((ip) => canonicalIp(ip) === undefined);
    if (wrong >= 0) {
      const detail = `failed to check for dual stack with error:invalid IP[${wrong}]: ${addresses[wrong]}`;
      status.report({ reason: 'InternalError', field: status.at(list), detail });
    }
    if (wrong >= 0 || families.size < addresses.length) {
      status.invalid(list, 'may specify no more than one IP for each IP family');
    }
  }
}

const MAX_UID = 2 ** 32 - 1;
const MAX_GID = 2 ** 31 - 1;

function validateUser(container: CheckedObject, spec: CheckedObject): void {
  const user = container.in('user').get('linux');
  if (!user) return;
  if (spec.in('os').text('name') === 'windows') {
    container.forbidden('user.linux', 'cannot be set for a windows pod');
    return;
  }
  const requireId = (field: string, id: unknown, max: number) => {
    if (typeof id === 'number' && id >= 0 && id <= max) return;
    user.invalid(field, `must be between 0 and ${max}, inclusive`, id);
  };
  requireId('uid', user.number('uid') ?? 0, MAX_UID);
  requireId('gid', user.number('gid') ?? 0, MAX_GID);
  for (const [index, id] of user.list('supplementalGroups').entries()) {
    requireId(`supplementalGroups[${index}]`, id, MAX_GID);
  }
}
