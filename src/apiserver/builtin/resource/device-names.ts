import { labelValueProblems, nameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { requireDriverName } from '../pods/volume-sources.ts';
import { requireSelectorKey } from '../shared/label-selector-validation.ts';

const NOT_AN_IDENTIFIER =
  "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";

const MAX_IDENTIFIER = 32;

function requireIdentifier(holder: CheckedObject, field: string, name: string): void {
  if (name.length > MAX_IDENTIFIER) holder.tooLong(field, MAX_IDENTIFIER);
  if (!/^[A-Za-z_]\w*$/.test(name)) holder.invalid(field, NOT_AN_IDENTIFIER, name);
}

/** Reports a name that is neither an identifier nor one with a domain, `example.com/model`. */
export function requireDeviceProperty(
  holder: CheckedObject,
  field: string,
  name: string = holder.text(field),
): void {
  const [domain = '', id, ...others] = name.split('/');
  if (others.length > 0) return;
  if (id === undefined) {
    requireIdentifier(holder, field, domain);
    return;
  }
  if (domain === '') holder.invalid(field, 'the domain must not be empty', '');
  else {
    if (domain.length > 63) holder.tooLong(field, 63);
    holder.problems(field, nameProblems(domain.toLowerCase(), 'dns1123Subdomain'), domain);
  }
  if (id === '') holder.invalid(field, 'the name must not be empty', '');
  else requireIdentifier(holder, field, id);
}

/** Reports a name that is not an identifier with a domain. Upstream: the rule `k8s-resource-fully-qualified-name`. */
export function requireQualifiedProperty(holder: CheckedObject, field: string): void {
  const [domain = '', id, ...others] = holder.text(field).split('/');
  if (id === undefined) {
    requireIdentifier(holder, field, domain);
    const why = 'a fully qualified name must be a domain and a name separated by a slash';
    holder.invalid(field, why);
  } else if (others.length === 0) {
    if (domain === '') holder.invalid(field, 'prefix must not be empty', '');
    else {
      if (domain.length > 63) holder.tooLong(field, 63);
      const problems = nameProblems(domain, 'dns1123Subdomain');
      holder.problems(
        field,
        problems.map((problem) => `prefix: ${problem}`),
        domain,
      );
    }
    if (id === '') holder.invalid(field, 'name must not be empty', '');
    else requireIdentifier(holder, field, id);
  }
}

/** Reports a malformed name of a pool. Upstream: the rule `k8s-resource-pool-name`. */
export function requirePoolName(holder: CheckedObject, field: string): void {
  const name = holder.text(field);
  if (name === '') {
    holder.required(field);
    return;
  }
  if (name.length > 253) holder.tooLong(field, 253);
  for (const [index, part] of name.split('/').entries()) {
    if (part === '') holder.invalid(field, `segment ${index}: must not be empty`, name);
    else {
      const problems = nameProblems(part, 'dns1123Subdomain', 'bytes');
      holder.problems(
        field,
        problems.map((problem) => `segment ${index}: ${problem}`),
        part,
      );
    }
  }
}

/** Reports a malformed name of a pool, whose parts are names in the DNS. */
export function requirePool(holder: CheckedObject, field: string): void {
  const name = holder.text(field);
  if (name === '') {
    holder.required(field);
    return;
  }
  if (name.length > 253) holder.tooLong(field, 253);
  for (const part of new Set(name.split('/'))) {
    holder.problems(field, nameProblems(part, 'dns1123Subdomain'), part);
  }
}

/** Reports a driver, a pool and a device that are malformed, outside of an allocation. */
export function requireDevice(holder: CheckedObject): void {
  requireDriverName(holder, 'driver');
  requirePool(holder, 'pool');
  requireDeviceName(holder);
}

/** Reports the same of an allocation, which upstream validates by declared rules. */
export function requireAllocatedDevice(holder: CheckedObject): void {
  requireDriverName(holder, 'driver', 'dns1123SubdomainCaseless');
  requirePoolName(holder, 'pool');
  requireDeviceName(holder);
}

function requireDeviceName(holder: CheckedObject): void {
  const name = holder.text('device');
  holder.problems('device', nameProblems(name, 'dns1123Label'), name);
}

const EFFECTS = ['NoExecute', 'NoSchedule', 'None'];

/** Reports what is wrong with a taint of a device. */
export function validateTaint(taint: CheckedObject): void {
  requireSelectorKey(taint, 'key');
  taint.problems('value', labelValueProblems(taint.text('value')));
  taint.requireText('effect');
  taint.requireOneOf('effect', EFFECTS);
}

/** Reports what is wrong with a toleration of taints. */
export function validateDeviceToleration(toleration: CheckedObject): void {
  validateDeclaredToleration(toleration);
  validateTolerationValue(toleration);
}

export function validateDeclaredToleration(toleration: CheckedObject): void {
  if (toleration.text('key') !== '') requireSelectorKey(toleration, 'key');
  toleration.requireText('operator');
  toleration.requireOneOf('operator', ['Equal', 'Exists']);
  toleration.requireOneOf('effect', EFFECTS);
}

export function validateTolerationValue(toleration: CheckedObject): void {
  const value = toleration.text('value');
  if (toleration.text('operator') === 'Equal') {
    toleration.problems('value', labelValueProblems(value), value);
  } else if (toleration.text('operator') === 'Exists' && value !== '') {
    toleration.invalid('value', 'must be empty for operator `Exists`');
  }
}
