import { nameProblems, qualifiedNameProblems } from '../../../api/object-names.ts';
import { utf8Length } from '../../../util/bytes.ts';
import { isSet, numberIn, objectIn } from '../../../util/json-value.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { canonicalIp, ipProblem } from './addresses.ts';

const REASON = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;
const REASON_PROBLEM =
  "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/** In bytes. */
const LONGEST_REASON = 1024;
const LONGEST_MESSAGE = 32 * 1024;

/** Validates conditions of the type `metav1.Condition`. */
export function validateConditions(status: CheckedObject): void {
  const types = new Set<string>();
  for (const condition of status.items('conditions')) {
    const type = condition.text('type');
    if (types.has(type)) condition.duplicate('', type);
    types.add(type);
    if (type === '') condition.required('type', 'is required');
    else condition.problems('type', qualifiedNameProblems(type));
    condition.requireText('status');
    condition.requireOneOf('status', ['False', 'True', 'Unknown']);
    if ((condition.number('observedGeneration') ?? 0) < 0) {
      condition.invalid('observedGeneration', 'must be greater than or equal to zero');
    }
    if (!condition.has('lastTransitionTime')) condition.required('lastTransitionTime');
    const reason = condition.text('reason');
    if (reason === '') condition.required('reason');
    else if (!REASON.test(reason)) condition.invalid('reason', REASON_PROBLEM);
    if (utf8Length(reason) > LONGEST_REASON) condition.tooLong('reason', LONGEST_REASON);
    if (utf8Length(condition.text('message')) > LONGEST_MESSAGE) {
      condition.tooLong('message', LONGEST_MESSAGE);
    }
  }
}

/** The counter of collisions of names only increases. */
export function requireCollisionsKept(object: CheckedObject, previous: StoredObject): void {
  const status = object.in('status');
  const field = 'collisionCount';
  const before = objectIn(previous, 'status') ?? {};
  const count = status.number(field) ?? 0;
  if (!isSet(before, field)) return;
  if (!status.has(field) || count < (numberIn(before, field) ?? 0)) {
    status.invalid(field, 'cannot be decremented', count);
  }
}

/**
 * Validates an address of a load balancer in a status.
 *
 * @param former addresses that may stay
 */
export function validateIngressPoint(point: CheckedObject, former: ReadonlySet<string>): void {
  const ip = point.text('ip');
  const problem = ip === '' || former.has(ip) ? undefined : ipProblem(ip);
  if (problem !== undefined) point.invalid('ip', problem);
  const hostname = point.text('hostname');
  if (hostname === '') return;
  point.problems('hostname', nameProblems(hostname, 'dns1123Subdomain'));
  if (canonicalIp(hostname) !== undefined) {
    point.invalid('hostname', 'must be a DNS name, not an IP address');
  }
}
