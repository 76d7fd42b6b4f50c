import { repeatedIndexes } from '../../../util/values.ts';
import { goQuote } from '../../../util/go-quote.ts';
import { goJson } from '../../../util/go-format.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import { qualifiedNameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';
import { validateNodeSelector } from '../pods/pod-placement.ts';
import { canonicalIp } from '../shared/addresses.ts';
import { validateConditions } from '../shared/status-validation.ts';
import type { RequestNames } from './device-claim-validation.ts';
import {
  requestNamesOf,
  requireParameters,
  validateConfigurations,
  validateRequestReference,
} from './device-claim-validation.ts';
import { requireAllocatedDevice, requireDevice, validateDeviceToleration } from './device-names.ts';

/** Reports what is wrong with a new status of a claim. An allocation does not change. */
export function validateClaimStatus(claim: CheckedObject, previous: StoredObject): void {
  const status = claim.in('status');
  const allocation = status.get('allocation');
  const former = objectIn(objectIn(previous, 'status'), 'allocation');
  validateUsers(status, allocation !== undefined);
  if (claim.in('metadata').has('deletionTimestamp')) requireNoNewUsers(status, previous);
  const devices = allocation?.in('devices');
  validateDevices(status, new Set(devices?.items('results').map((result) => idOf(result.value))));
  if (!allocation || !devices) return;
  if (former) {
    if (!equalJson(allocation.value, former)) {
      // As upstream, which shows no value.
      status.invalid('allocation', 'field cannot be modified once set', null);
    }
    return;
  }
  const names = requestNamesOf(claim.in('spec').in('devices'));
  devices.requireAtMost('results', 32);
  for (const result of devices.items('results')) validateResult(result, names);
  validateConfigurations(devices, names, 64);
  const selector = allocation.get('nodeSelector');
  if (selector) validateNodeSelector(selector);
}

function validateUsers(status: CheckedObject, isAllocated: boolean): void {
  status.requireAtMost('reservedFor', 256);
  const uids = new Set<string>();
  for (const user of status.items('reservedFor')) {
    for (const field of ['resource', 'name', 'uid']) user.requireText(field);
    const uid = user.text('uid');
    if (uids.has(uid)) user.duplicate('', user.value);
    uids.add(uid);
  }
  if (isAllocated || status.list('reservedFor').length === 0) return;
  status.forbidden('reservedFor', 'may not be specified when `allocated` is not set');
}

/** A claim that is being deleted gets no more users. */
function requireNoNewUsers(status: CheckedObject, previous: StoredObject): void {
  const known = new Set(objectsIn(objectIn(previous, 'status'), 'reservedFor').map(goJson));
  if (!status.has('allocation')) return;
  if (status.items('reservedFor').every(({ value }) => known.has(goJson(value)))) return;
  const why =
    'new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set';
  status.forbidden('reservedFor', why);
}

const idOf = (device: Readonly<Record<string, unknown>>) =>
  JSON.stringify(['driver', 'pool', 'device', 'shareID'].map((field) => textIn(device, field)));

/** Drops the status of devices that are no longer allocated. */
export function dropDeallocatedDevices(claim: ApiObject, previous: StoredObject): void {
  const status = objectIn(claim, 'status');
  if (!status || !isSet(status, 'devices')) return;
  const kept = new Set(resultsOf(status).map(idOf));
  const lost = new Set(resultsOf(objectIn(previous, 'status')).map(idOf));
  const isKept = (device: JsonObject) => kept.has(idOf(device)) || !lost.has(idOf(device));
  const { devices: _, ...rest } = status;
  const devices = objectsIn(status, 'devices').filter(isKept);
  claim['status'] = devices.length > 0 ? { ...rest, devices } : rest;
}

function resultsOf(status: JsonObject | undefined): readonly JsonObject[] {
  return objectsIn(objectIn(objectIn(status, 'allocation'), 'devices'), 'results');
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function requireShare(device: CheckedObject): void {
  if (!device.has('shareID') || UUID.test(device.text('shareID'))) return;
  device.invalid('shareID', 'must be a lowercase UUID in 8-4-4-4-12 format');
}

function validateDevices(status: CheckedObject, allocated: ReadonlySet<string>): void {
  const ids = new Set<string>();
  for (const device of status.items('devices')) {
    const id = idOf(device.value);
    if (ids.has(id)) device.duplicate('', device.value);
    ids.add(id);
    if (!allocated.has(id)) {
      device.invalid('', 'must be an allocated device in the claim', device.value);
    }
    requireDevice(device);
    requireShare(device);
    device.requireAtMost('conditions', 8);
    validateConditions(device);
    requireParameters(device, 'data', false);
    validateNetworkData(device.in('networkData'));
  }
}

function validateNetworkData(data: CheckedObject): void {
  const limits = { interfaceName: 256, hardwareAddress: 128 };
  for (const [field, max] of Object.entries(limits)) {
    if (data.text(field).length > max) data.tooLong(field, max);
  }
  const addresses = data.requireAtMost('ips', 16) ? data.list('ips').map(String) : [];
  const repeated = repeatedIndexes(addresses);
  for (const [index, address] of addresses.entries()) {
    const field = `ips[${index}]`;
    const [ip = '', size = ''] = address.split('/');
    const canonical = canonicalIp(ip);
    const max = ip.includes(':') ? 128 : 32;
    if (canonical === undefined || !/^\d+$/.test(size) || Number(size) > max) {
      const why = 'must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)';
      data.invalid(field, why, address);
    } else if (`${canonical}/${Number(size)}` !== address) {
      const shown = goQuote(`${canonical}/${Number(size)}`);
      data.invalid(field, `must be in canonical form (${shown})`, address);
    }
    if (repeated.has(index)) data.duplicate(field, address);
  }
}

function validateResult(result: CheckedObject, names: RequestNames): void {
  validateRequestReference(result, 'request', result.text('request'), names);
  requireAllocatedDevice(result);
  validateBindingConditions(result);
  for (const toleration of result.items('tolerations')) validateDeviceToleration(toleration);
  requireShare(result);
}

/** Conditions for the binding of a device, and those under which it fails, are given together. */
export function validateBindingConditions(device: CheckedObject): void {
  const [conditions, failures] = ['bindingConditions', 'bindingFailureConditions'];
  for (const [field, other] of [
    [conditions, failures],
    [failures, conditions],
  ] as const) {
    if (!field || !other) continue;
    device.requireAtMost(field, 4);
    const list = device.list(field).map(String);
    const repeated = repeatedIndexes(list);
    const others = new Set(device.list(other));
    for (const [index, condition] of list.entries()) {
      device.problems(`${field}[${index}]`, qualifiedNameProblems(condition), condition);
      if (repeated.has(index)) device.duplicate(`${field}[${index}]`, condition);
      if (field === failures && others.has(condition)) {
        const why = 'bindingFailureConditions must not overlap with bindingConditions';
        device.invalid(`${field}[${index}]`, why, condition);
      }
    }
    if (list.length > 0 || device.list(other).length === 0) continue;
    device.invalid(field, `${field} are required to use ${other}`, null);
  }
}
