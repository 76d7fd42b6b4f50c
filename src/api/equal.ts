import { builtinShape, withMetadata } from './field-shape.ts';
import type { FieldShape } from './field-shape.ts';

/**
 * Reports whether two JSON values are equal. Members with value `undefined` count as absent, as in JSON
 * text. Compares own enumerable keys only, so that a `__proto__` key is data. Iterative, because the
 * sender controls the depth.
 */
export function equalJson(a: unknown, b: unknown): boolean {
  /** Pairs of values to compare. */
  const pending: unknown[] = [a, b];
  while (pending.length > 0) {
    const right = pending.pop();
    const left = pending.pop();
    if (left === right) continue;
    if (typeof left !== 'object' || typeof right !== 'object' || !left || !right) return false;
    if (Array.isArray(left) || Array.isArray(right)) {
      if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length)
        return false;
      for (let index = 0; index < left.length; index++) pending.push(left[index], right[index]);
      continue;
    }
    let present = 0;
    for (const key of Object.keys(left)) {
      const member = memberOf(left, key);
      if (member === undefined) continue;
      const counterpart = memberOf(right, key);
      if (counterpart === undefined) return false;
      present++;
      if (member !== counterpart) pending.push(member, counterpart);
    }
    if (present !== presentMembers(right)) return false;
  }
  return true;
}

function presentMembers(value: object): number {
  let present = 0;
  for (const key of Object.keys(value)) if (memberOf(value, key) !== undefined) present++;
  return present;
}

/** Returns an own member of an object, or undefined. */
export function memberOf(value: object, key: string): unknown {
  return Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
}

/**
 * Values that the server sets in fields that are written as a whole, where the writer sets none. By name, because the
 * same value has the same meaning in all of them.
 */
const SERVER_DEFAULTS: ReadonlyMap<string, readonly unknown[]> = new Map<string, unknown[]>([
  ['allocationMode', ['ExactCount']],
  ['apiGroup', ['rbac.authorization.k8s.io', '']],
  ['apiVersion', ['v1']],
  ['conditions', [{}]],
  ['count', [1]],
  ['creationTimestamp', [null]],
  ['divisor', ['0']],
  ['expirationSeconds', [3600]],
  ['kind', ['PersistentVolumeClaim']],
  ['matchPolicy', ['Equivalent']],
  ['metadata', [{ creationTimestamp: null }, {}]],
  ['name', ['']],
  ['namespaceSelector', [{}]],
  ['objectSelector', [{}]],
  ['operator', ['Equal']],
  ['optional', [false]],
  ['phase', ['Pending']],
  ['port', [{}]],
  ['protocol', ['TCP']],
  ['resources', [{}]],
  ['scope', ['*']],
  ['spec', [{}]],
  ['status', ['True', '', {}, { phase: 'Pending' }]],
  ['volumeMode', ['Filesystem']],
]);

/**
 * Reports whether `actual` has all values of `desired`. Fields that `desired` does not set are ignored:
 * defaults of the server, autoscalers and users set them.
 *
 * Maps and lists that are written as a whole must have no further members, except defaults of the server. A list that
 * is merged covers another if each element of the other is covered by any of its elements. `shape` says which these
 * are. Without it, and for kinds that are not built in, an object may have further members, a list of objects further
 * elements, and lists of plain values must be equal. Recursive, because the caller creates `desired`.
 *
 * @param shape of the kind, such as `Resource.fields`
 * @default of the built-in kind of `desired`
 *
 * @example
 * ```ts
 * import { covers } from 'crd-controller/objects';
 *
 * console.log(covers({ replicas: 2, paused: false }, { replicas: 2 })); // prints: true
 * ```
 */
export function covers(actual: unknown, desired: unknown, shape?: FieldShape): boolean {
  if (shape) return coversField(actual, desired, withMetadata(shape), NO_DEFAULTS);
  return coversField(actual, desired, shapeOfKind(desired), SERVER_DEFAULTS);
}

type Defaults = typeof SERVER_DEFAULTS;

const NO_DEFAULTS: Defaults = new Map();

/** Shape of fields without an own one: an object that others may extend, or a list that is written as a whole. */
const PLAIN: FieldShape = {};

/** @param shape undefined if nothing is known about the field */
function coversField(
  actual: unknown,
  desired: unknown,
  shape: FieldShape | undefined,
  defaults: Defaults,
): boolean {
  if (actual === desired || desired === undefined) return true;
  if (typeof actual !== 'object' || typeof desired !== 'object' || !actual || !desired) {
    return false;
  }
  if (Array.isArray(desired) !== Array.isArray(actual)) return false;
  if (Array.isArray(desired) && Array.isArray(actual)) {
    const isMerged = shape ? shape.items !== undefined : desired.some(isObject);
    if (shape && !isMerged) return equalsWhole(actual, desired, shape, defaults);
    if (!isMerged) return equalJson(actual, desired);
    return desired.every((item: unknown) =>
      actual.some((candidate: unknown) => coversField(candidate, item, shape?.items, defaults)),
    );
  }
  if (shape?.atomic) return equalsWhole(actual, desired, shape, defaults);
  return Object.keys(desired).every((name) =>
    coversField(memberOf(actual, name), memberOf(desired, name), innerShape(shape, name), defaults),
  );
}

/** Reports whether values that are written as a whole are equal, except for defaults of the server. */
function equalsWhole(
  actual: unknown,
  desired: unknown,
  shape: FieldShape,
  defaults: Defaults,
): boolean {
  if (!isObject(actual) || !isObject(desired)) return actual === desired;
  if (Array.isArray(desired) || Array.isArray(actual)) {
    if (!Array.isArray(desired) || !Array.isArray(actual)) return false;
    const element = shape.items ?? shape.values ?? PLAIN;
    return (
      actual.length === desired.length &&
      desired.every((item, index) => equalsWhole(actual[index], item, element, defaults))
    );
  }
  const isDefault = (name: string, value: unknown) =>
    equalJson(value, innerShape(shape, name)?.default) ||
    defaults.get(name)?.some((known) => equalJson(value, known));
  const names = new Set([...Object.keys(actual), ...Object.keys(desired)]);
  return [...names].every((name) => {
    const [value, wanted] = [memberOf(actual, name), memberOf(desired, name)];
    if (wanted === undefined) return value === undefined || isDefault(name, value) === true;
    return equalsWhole(value, wanted, innerShape(shape, name) ?? PLAIN, defaults);
  });
}

function innerShape(shape: FieldShape | undefined, name: string): FieldShape | undefined {
  if (!shape) return undefined;
  const { fields = {}, values = PLAIN } = shape;
  return Object.hasOwn(fields, name) ? fields[name] : values;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function shapeOfKind(object: unknown): FieldShape | undefined {
  if (!isObject(object)) return undefined;
  const [apiVersion, kind] = [memberOf(object, 'apiVersion'), memberOf(object, 'kind')];
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return undefined;
  return builtinShape(apiVersion, kind);
}
