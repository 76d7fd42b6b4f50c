import { typedText } from '../../../api/field-error.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import { nameProblems, qualifiedNameProblems } from '../../../api/object-names.ts';
import {
  addQuantities,
  compareQuantities,
  isWholeQuantity,
  quantityNanos,
} from '../../../api/quantity.ts';
import { CheckedObject } from '../../objects/checked-object.ts';

const OF_CONTAINERS = ['cpu', 'memory', 'ephemeral-storage'];

const COUNTS = [
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
];

const STANDARD = new Set([
  ...OF_CONTAINERS,
  ...OF_CONTAINERS.flatMap((name) => [`requests.${name}`, `limits.${name}`]),
  ...COUNTS,
  'storage',
  'requests.storage',
]);

const REQUESTS = 'requests.';
const HUGE_PAGES = 'hugepages-';

/** Reports what is wrong with the resources of a container. */
export function validateContainerResources(
  resources: CheckedObject,
  claimNames: ReadonlySet<string>,
): void {
  validateAmounts(resources, validateContainerResourceName);
  validateClaims(resources, claimNames);
}

/** Reports what is wrong with limits and requests; `validateName` with the name of one. */
export function validateAmounts(
  resources: CheckedObject,
  validateName: (resources: CheckedObject, field: string, name: string) => void,
): void {
  const limits = resources.in('limits').value;
  let hasPages = false;
  for (const list of ['limits', 'requests'] as const) {
    const amounts = resources.in(list).value;
    for (const name of Object.keys(amounts)) {
      const value = amounts[name];
      const field = `${list}[${name}]`;
      const amount = typeof value === 'string' ? value : '';
      validateName(resources, field, name);
      validateAmount(resources, field, name, amount);
      if (list === 'requests') validateRequest(resources, name, amount, textIn(limits, name));
      if (!name.startsWith(HUGE_PAGES)) continue;
      hasPages = true;
      const size = name.slice(HUGE_PAGES.length);
      const page = quantityNanos(size) ?? 0n;
      if (page <= 0n || !isWholeQuantity(size) || (quantityNanos(amount) ?? 0n) % page !== 0n) {
        resources.invalid(field, `${amount} is not positive integer multiple of ${name}`, amount);
      }
    }
  }
  const requests = resources.in('requests').value;
  const has = (name: string) => Object.hasOwn(limits, name) || Object.hasOwn(requests, name);
  if (hasPages && !has('cpu') && !has('memory')) {
    resources.forbidden('', 'HugePages require cpu or memory');
  }
}

/** An amount is not negative; countable resources have integers. */
export function validateAmount(
  holder: CheckedObject,
  field: string,
  name: string,
  amount: string,
): void {
  if (amount.startsWith('-') && compareQuantities(amount, '0') < 0) {
    holder.invalid(field, 'must be greater than or equal to 0', amount);
  }
  if (!COUNTS.includes(name) && !isExtended(name)) return;
  if (!isWholeQuantity(amount)) holder.invalid(field, 'must be an integer', amount);
}

/** Whether a container may request less of a resource than its limit. */
export function canOvercommit(name: string): boolean {
  return isNative(name) && !name.startsWith(HUGE_PAGES);
}

function validateRequest(
  resources: CheckedObject,
  name: string,
  request: string,
  limit: string,
): void {
  if (limit === '') {
    const why = 'Limit must be set for non overcommitable resources';
    if (!canOvercommit(name)) resources.required('limits', why);
    return;
  }
  const order = request === limit ? 0 : compareQuantities(request, limit);
  if (!canOvercommit(name) && order !== 0) {
    resources.invalid('requests', `must be equal to ${name} limit of ${limit}`, request);
  } else if (order > 0) {
    const why = `must be less than or equal to ${name} limit of ${limit}`;
    resources.invalid('requests', why, request);
  }
}

/** Reports a name that is malformed, or short and not standard; returns whether there was none. */
export function validateResourceName(holder: CheckedObject, field: string, name: string): boolean {
  const problems = qualifiedNameProblems(name);
  holder.problems(field, problems, typedText(name));
  if (problems.length > 0) return false;
  if (name.includes('/') || STANDARD.has(name) || name.startsWith(HUGE_PAGES)) return true;
  if (name.startsWith(`${REQUESTS}${HUGE_PAGES}`)) return true;
  holder.invalid(field, 'must be a standard resource type or fully qualified', typedText(name));
  return false;
}

/** Reports a name of a resource that containers do not have. */
export function validateContainerResourceName(
  holder: CheckedObject,
  field: string,
  name: string,
): void {
  validateResourceName(holder, field, name);
  if (!name.includes('/')) {
    if (OF_CONTAINERS.includes(name) || name.startsWith(HUGE_PAGES)) return;
    holder.invalid(field, 'must be a standard resource for containers', typedText(name));
  } else if (!isNative(name) && !isExtended(name)) {
    holder.invalid(field, "doesn't follow extended resource name standard", typedText(name));
  }
}

/** Whether quotas limit a resource with this short name. */
export function isQuotaResource(name: string): boolean {
  if (name === 'storage') return false;
  return STANDARD.has(name) || name.replace(REQUESTS, '').startsWith(HUGE_PAGES);
}

function isNative(name: string): boolean {
  return !name.includes('/') || name.includes('kubernetes.io/');
}

function isExtended(name: string): boolean {
  return !isNative(name) && !name.startsWith(REQUESTS) && hasQuota(name);
}

/** Whether the name for a quota of a resource is valid. */
function hasQuota(name: string): boolean {
  return qualifiedNameProblems(`${REQUESTS}${name}`).length === 0;
}

function validateClaims(resources: CheckedObject, known: ReadonlySet<string>): void {
  const names = new Set<string>();
  for (const [index, claim] of resources.items('claims').entries()) {
    const field = `claims[${index}]`;
    const name = claim.text('name');
    if (name === '') {
      resources.required(field);
      continue;
    }
    const request = claim.text('request');
    const key = request === '' ? name : `${name}/${request}`;
    if (names.has(name)) resources.duplicate(field, name);
    else {
      if (request !== '') claim.problems('request', nameProblems(request, 'dns1123Label'));
      if (names.has(key)) resources.duplicate(field, key);
      else if (request === '') {
        for (const other of names) {
          if (other.startsWith(`${name}/`)) resources.duplicate(field, name);
        }
      }
      names.add(key);
    }
    if (known.has(name)) continue;
    const list = known.size === 0 ? ' which is empty' : `: ${[...known].sort().join(', ')}`;
    const why = `must be one of the names in pod.spec.resourceClaims${list}`;
    resources.notFound(field, name, why);
  }
}

/** Resources that a Pod has as a whole. */
const OF_PODS = ['cpu', 'memory'];

/** Reports what is wrong with the resources of a Pod as a whole, which its containers share. */
export function validatePodResources(spec: CheckedObject, claimNames: ReadonlySet<string>): void {
  const resources = spec.get('resources');
  if (!resources) return;
  if (spec.in('os').text('name') === 'windows') {
    resources.forbidden('', 'may not be set for a windows pod');
    return;
  }
  if (resources.has('claims')) {
    resources.forbidden('claims', 'claims may not be set for Resources at pod-level');
  }
  validateAmounts(resources, (holder, field, name) => {
    if (!validateResourceName(holder, field, name)) return;
    if (isOfPods(name)) return;
    holder.notSupported(field, [...OF_PODS.slice(0, 1), HUGE_PAGES, 'memory'], name);
  });
  validateClaims(resources, claimNames);
  requireAggregate(spec, resources, 'requests');
  requireAggregate(spec, resources, 'limits');
  const limits = resources.in('limits').value;
  for (const [index, container] of spec.items('containers').entries()) {
    const own = container.in('resources').in('limits').value;
    for (const name of Object.keys(own)) {
      const [limit, max] = [textIn(own, name), textIn(limits, name)];
      if (max === '' || compareQuantities(limit, max) <= 0) continue;
      const why = `must be less than or equal to pod limits of ${max}`;
      resources.invalid(`containers[${index}][${name}].limits`, why, limit);
    }
  }
}

/** What the containers of a Pod use together: those that run beside each other, or one that runs before them. */
function aggregate(spec: CheckedObject, list: 'limits' | 'requests'): ReadonlyMap<string, string> {
  const amountsOf = (container: CheckedObject) =>
    Object.entries(container.in('resources').in(list).value).map(
      ([name, amount]) => [name, String(amount)] as const,
    );
  const [total, beside] = [new Map<string, string>(), new Map<string, string>()];
  const add = (sums: Map<string, string>, name: string, amount: string) =>
    sums.set(name, addQuantities(sums.get(name) ?? '0', amount));
  for (const container of spec.items('containers')) {
    for (const [name, amount] of amountsOf(container)) add(total, name, amount);
  }
  const peaks = new Map<string, string>();
  for (const container of spec.items('initContainers')) {
    const stays = container.text('restartPolicy') === 'Always';
    for (const [name, amount] of amountsOf(container)) {
      const peak = addQuantities(beside.get(name) ?? '0', amount);
      if (compareQuantities(peak, peaks.get(name) ?? '0') > 0) peaks.set(name, peak);
      if (!stays) continue;
      add(beside, name, amount);
      add(total, name, amount);
    }
  }
  for (const [name, peak] of peaks) {
    if (compareQuantities(peak, total.get(name) ?? '0') > 0) total.set(name, peak);
  }
  return total;
}

function requireAggregate(
  spec: CheckedObject,
  resources: CheckedObject,
  list: 'limits' | 'requests',
): void {
  const amounts = resources.in(list).value;
  for (const [name, sum] of aggregate(spec, list)) {
    const amount = textIn(amounts, name);
    const isLimited = list === 'requests' || name.startsWith(HUGE_PAGES);
    if (!isLimited || amount === '' || compareQuantities(sum, amount) <= 0) continue;
    const why = `must be greater than or equal to aggregate container ${list} of ${sum}`;
    resources.invalid(`${list}[${name}]`, why, amount);
  }
}

/** Sets what a Pod requests as a whole and its limits, if it has resources as a whole. */
export function shareResources(spec: JsonObject): void {
  const resources = objectIn(spec, 'resources');
  const given = Object.keys({
    ...objectIn(resources, 'limits'),
    ...objectIn(resources, 'requests'),
  });
  if (!resources || given.length === 0) return;
  const whole = new CheckedObject(spec);
  const limits: JsonObject = { ...objectIn(resources, 'limits') };
  const requests: JsonObject = { ...objectIn(resources, 'requests') };
  for (const [name, sum] of aggregate(whole, 'limits')) {
    if (name.startsWith(HUGE_PAGES) && requests[name] === undefined) limits[name] ??= sum;
  }
  for (const [name, sum] of aggregate(whole, 'requests')) {
    if (OF_PODS.includes(name)) requests[name] ??= sum;
  }
  for (const [name, limit] of Object.entries(limits)) {
    if (isOfPods(name)) requests[name] ??= limit;
  }
  // Other limits are those of the containers together, if all have some.
  const containers = ['initContainers', 'containers', 'ephemeralContainers']
    .flatMap((list) => objectsIn(spec, list))
    .map((container) => objectIn(objectIn(container, 'resources'), 'limits') ?? {});
  for (const [name, sum] of aggregate(whole, 'limits')) {
    const request = requests[name];
    if (!isOfPods(name) || limits[name] !== undefined || typeof request !== 'string') continue;
    if (!containers.every((each) => isSet(each, name))) continue;
    limits[name] = compareQuantities(request, sum) > 0 ? request : sum;
  }
  if (Object.keys(limits).length > 0) resources['limits'] = limits;
  if (Object.keys(requests).length > 0) resources['requests'] = requests;
}

function isOfPods(name: string): boolean {
  return OF_PODS.includes(name) || name.startsWith(HUGE_PAGES);
}
