import { nameProblems } from '../../../api/object-names.ts';
import { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { validateNodeSelector } from '../pods/pod-placement.ts';
import { requireDriverName } from '../pods/volume-sources.ts';
import { validateBindingConditions } from './claim-status-validation.ts';
import { requireDeviceProperty, requirePool, validateTaint } from './device-names.ts';
import { validateRequestPolicy } from './request-policy.ts';

const MAX_DEVICES = 128;
/** Maximum number of devices if one has taints or consumes counters. */
const MAX_ADVANCED_DEVICES = 64;
const MAX_PROPERTIES = 32;

/** Reports what is wrong with the devices that a driver offers. */
export function validateSlice(slice: CheckedObject<StoredObject>): void {
  const spec = slice.in('spec');
  requireDriverName(spec, 'driver');
  const pool = spec.in('pool');
  requirePool(pool, 'name');
  if ((pool.number('resourceSliceCount') ?? 0) <= 0) {
    pool.invalid('resourceSliceCount', 'must be greater than zero');
  }
  if ((pool.number('generation') ?? 0) < 0) {
    pool.invalid('generation', 'must be greater than or equal to zero');
  }
  const places = placesOf(spec, 'must be either unset or set to a non-empty string');
  const selector = spec.get('nodeSelector');
  if (selector && selector.list('nodeSelectorTerms').length !== 1) {
    selector.invalid('nodeSelectorTerms', 'must have exactly one node selector term');
  }
  const isPerDevice = spec.value['perDeviceNodeSelection'] === true;
  requireTrue(spec, 'perDeviceNodeSelection');
  if (isPerDevice) places.push('`perDeviceNodeSelection`');
  const why =
    'exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required';
  if (places.length === 0) spec.required('', why);
  else if (places.length > 1) {
    spec.invalid('', `${why}, but multiple fields are set`, `{${places.join(', ')}}`);
  }
  if (spec.has('sharedCounters') && spec.has('devices')) {
    spec.invalid('', 'only one of `sharedCounters` or `devices` is allowed', '');
  }
  const devices = spec.items('devices');
  const isAdvanced = devices.some(
    (device) => device.list('taints').length > 0 || device.list('consumesCounters').length > 0,
  );
  if (spec.requireAtMost('devices', isAdvanced ? MAX_ADVANCED_DEVICES : MAX_DEVICES)) {
    requireDistinct(devices, 'name');
    for (const device of devices) validateDevice(device, isPerDevice);
  }
  const sets = spec.requireAtMost('sharedCounters', 8) ? spec.items('sharedCounters') : [];
  requireDistinct(sets, 'name');
  for (const each of sets) validateCounters(each, 'name');
}

function requireDistinct(items: readonly CheckedObject[], field: string): void {
  const names = new Set<string>();
  for (const item of items) {
    const name = item.text(field);
    if (names.has(name)) item.duplicate('', item.value);
    names.add(name);
  }
}

function requireTrue(holder: CheckedObject, field: string): void {
  if (holder.value[field] !== false) return;
  holder.invalid(field, 'must be either unset or set to true', false);
}

/** The fields that say on which nodes devices are. */
function placesOf(holder: CheckedObject, whyNamed: string): string[] {
  const name = holder.text('nodeName');
  const selector = holder.get('nodeSelector');
  if (holder.has('nodeName') && name === '') holder.invalid('nodeName', whyNamed, '');
  holder.requireFormat('nodeName', 'dns1123Subdomain');
  if (selector) validateNodeSelector(selector);
  requireTrue(holder, 'allNodes');
  return [
    ...(name === '' ? [] : ['`nodeName`']),
    ...(selector ? ['`nodeSelector`'] : []),
    ...(holder.value['allNodes'] === true ? ['`allNodes`'] : []),
  ];
}

function validateDevice(device: CheckedObject, isPerDevice: boolean): void {
  const name = device.text('name');
  device.problems('name', nameProblems(name, 'dns1123Label'), name);
  const [attributes, capacity] = [device.in('attributes'), device.in('capacity')];
  const count = Object.keys(attributes.value).length + Object.keys(capacity.value).length;
  if (count > MAX_PROPERTIES) {
    const why = `the total number of attributes and capacities must not exceed ${MAX_PROPERTIES}`;
    device.invalid('', why, count);
  }
  for (const key of Object.keys(attributes.value)) {
    requireDeviceProperty(device, 'attributes', key);
    validateAttribute(partOf(attributes, key));
  }
  for (const key of Object.keys(capacity.value)) {
    requireDeviceProperty(device, 'capacity', key);
    const amount = partOf(capacity, key);
    if (device.value['allowMultipleAllocations'] === true) validateRequestPolicy(amount);
    else if (amount.has('requestPolicy')) {
      amount.forbidden('requestPolicy', 'allowMultipleAllocations must be true');
    }
  }
  if (device.requireAtMost('taints', 16)) {
    for (const taint of device.items('taints')) validateTaint(taint);
  }
  const consumed = device.requireAtMost('consumesCounters', 2)
    ? device.items('consumesCounters')
    : [];
  requireDistinct(consumed, 'counterSet');
  for (const each of consumed) validateCounters(each, 'counterSet');
  validatePlace(device, isPerDevice);
  validateBindingConditions(device);
}

/** The value of a map, whose path has the key in brackets. */
function partOf(map: CheckedObject, key: string): CheckedObject {
  const { value, errors } = map.in(key);
  return new CheckedObject(value, `${map.path}[${key}]`, errors);
}

function validatePlace(device: CheckedObject, isPerDevice: boolean): void {
  const fields = ['nodeName', 'nodeSelector', 'allNodes'];
  if (!isPerDevice) {
    const why =
      '`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec';
    if (fields.some((field) => device.has(field))) device.invalid('', why, null);
    return;
  }
  const places = placesOf(device, 'must not be empty');
  const why =
    'exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec';
  if (places.length === 0) device.required('', why);
  else if (places.length > 1) device.invalid('', why, `{${places.join(', ')}}`);
}

function validateCounters(holder: CheckedObject, field: string): void {
  holder.requireName(field, 'dns1123Label');
  const names = Object.keys(holder.in('counters').value);
  if (names.length === 0) holder.required('counters');
  if (names.length > 32) holder.tooMany('counters', names.length, 32);
  for (const name of names) {
    holder.problems('counters', nameProblems(name, 'dns1123Label'), name);
  }
}

const MAX_TEXT = 64;
const VERSION =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][\da-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][\da-zA-Z-]*))*))?(?:\+([\da-zA-Z-]+(?:\.[\da-zA-Z-]+)*))?$/;

/** A feature gate turns lists of values off. */
function validateAttribute(attribute: CheckedObject): void {
  for (const field of ['string', 'version']) {
    if (attribute.text(field).length > MAX_TEXT) attribute.tooLong(field, MAX_TEXT);
  }
  if (attribute.has('version') && !VERSION.test(attribute.text('version'))) {
    attribute.invalid('version', 'must be a string compatible with semver.org spec 2.0.0');
  }
  const present = ['int', 'bool', 'string', 'version'].filter((field) => attribute.has(field));
  if (present.length === 1) return;
  const kinds = '`int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`';
  const how = present.length === 0 ? 'one' : 'exactly one';
  const shown = present.length === 0 ? '' : `{${present.join(', ')}}`;
  attribute.invalid('', `must specify ${how} of: ${kinds}`, shown);
}
