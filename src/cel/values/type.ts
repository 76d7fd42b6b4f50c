/** A CEL type, with the limits of its schema on the size of values. */
export type CelType =
  ScalarType | ListType | MapType | ObjectType | OptionalType | TypeType | ParamType | OpaqueType;

type ScalarName =
  | 'bool'
  | 'int'
  | 'uint'
  | 'double'
  | 'string'
  | 'bytes'
  | 'null'
  | 'timestamp'
  | 'duration'
  | 'dyn'
  | 'error';

/** A type without parts. */
export interface ScalarType {
  readonly kind: ScalarName;
  /** Maximum size of a value. */
  readonly max?: number;
  /** The type of a message of protobuf that wraps a value. It can be compared with null. */
  readonly isWrapper?: boolean;
}

interface ListType {
  readonly kind: 'list';
  readonly item: CelType;
  readonly max?: number;
}

interface MapType {
  readonly kind: 'map';
  readonly key: CelType;
  readonly value: CelType;
  readonly max?: number;
}

/** The type of an object of a schema. Two such types are equal only if they are the same object. */
interface ObjectType {
  readonly kind: 'object';
  readonly name: string;
  /** Types of fields by escaped name. */
  readonly fields: ReadonlyMap<string, CelType>;
}

interface OptionalType {
  readonly kind: 'optional';
  readonly item: CelType;
}

/** The type of the type of values. */
interface TypeType {
  readonly kind: 'type';
  readonly item: CelType;
}

/** A type parameter of a signature. */
interface ParamType {
  readonly kind: 'param';
  readonly name: string;
}

interface OpaqueType {
  readonly kind: 'opaque';
  readonly name: string;
}

const scalar = (kind: ScalarName): ScalarType => ({ kind });

export const BOOL: ScalarType = scalar('bool');
export const INT: ScalarType = scalar('int');
export const UINT: ScalarType = scalar('uint');
export const DOUBLE: ScalarType = scalar('double');
export const STRING: ScalarType = scalar('string');
export const BYTES: ScalarType = scalar('bytes');
export const NULL: ScalarType = scalar('null');
export const TIMESTAMP: ScalarType = scalar('timestamp');
export const DURATION: ScalarType = scalar('duration');
export const DYN: ScalarType = scalar('dyn');
export const ERROR: ScalarType = scalar('error');

export function listOf(item: CelType, max?: number): ListType {
  return { kind: 'list', item, ...(max !== undefined && { max }) };
}

/**
 * Returns a map type. Keys are scalars. Evaluation rejects keys of other types; they are not part of
 * the type, because its size could double with each level of a rule.
 */
export function mapOf(key: CelType, value: CelType, max?: number): MapType {
  const scalarKey = KEYS.has(key.kind) ? key : DYN;
  return { kind: 'map', key: scalarKey, value, ...(max !== undefined && { max }) };
}

const KEYS: ReadonlySet<CelType['kind']> = new Set([
  'int',
  'uint',
  'bool',
  'string',
  'dyn',
  'error',
  'param',
]);

/** Returns the type of a message that wraps a scalar. */
export function wrapperOf(type: ScalarType): CelType {
  return { ...type, isWrapper: true };
}

/** Returns the type of a wrapped scalar; other types unchanged. */
export function unwrapped(type: CelType): CelType {
  return 'isWrapper' in type ? { kind: type.kind } : type;
}

export function optionalOf(item: CelType): OptionalType {
  return { kind: 'optional', item };
}

/** Returns the type of `type(x)`, where `item` is that of `x`. */
export function typeOf(item: CelType): TypeType {
  return { kind: 'type', item };
}

export function param(name: string): ParamType {
  return { kind: 'param', name };
}

/** Formats a type for error messages: `map(string, int)`. */
export function formatType(type: CelType): string {
  switch (type.kind) {
    case 'list':
      return `list(${formatType(type.item)})`;
    case 'map':
      return `map(${formatType(type.key)}, ${formatType(type.value)})`;
    case 'optional':
      return `optional_type(${formatType(type.item)})`;
    case 'type':
      return `type(${formatType(type.item)})`;
    case 'object':
    case 'opaque':
      return type.name;
    case 'param':
      return 'dyn';
    case 'error':
      return '!error!';
    default:
      return type.isWrapper ? `wrapper(${type.kind})` : type.kind;
  }
}

/** Bindings of type parameters during a type check. */
export class Bindings {
  readonly #types = new Map<string, CelType>();
  #changes: { readonly name: string; readonly before: CelType | undefined }[] = [];

  get(name: string): CelType | undefined {
    return this.#types.get(name);
  }

  set(name: string, type: CelType): void {
    this.#changes.push({ name, before: this.#types.get(name) });
    this.#types.set(name, type);
  }

  /** Runs `attempt` and restores the bindings if it fails. */
  try(attempt: () => boolean): boolean {
    this.#changes = [];
    if (attempt()) return true;
    for (const { name, before } of this.#changes.toReversed()) {
      if (before) this.#types.set(name, before);
      else this.#types.delete(name);
    }
    return false;
  }
}

/** Returns `type` with bound parameters replaced. */
export function substitute(type: CelType, bindings: Bindings): CelType {
  switch (type.kind) {
    case 'param': {
      const bound = bindings.get(type.name);
      return bound ? substitute(bound, bindings) : type;
    }
    case 'list':
    case 'optional':
    case 'type': {
      const item = substitute(type.item, bindings);
      return item === type.item ? type : { ...type, item };
    }
    case 'map': {
      const key = substitute(type.key, bindings);
      const value = substitute(type.value, bindings);
      return key === type.key && value === type.value ? type : { ...type, key, value };
    }
    default:
      return type;
  }
}

/** Whether a value of type `from` is assignable to `to`. Binds type parameters. */
export function isAssignable(to: CelType, from: CelType, bindings: Bindings): boolean {
  if (from.kind === 'param') return bind(from, to, bindings);
  if (to.kind === 'param') return bind(to, from, bindings);
  if (isAny(to) || isAny(from)) return true;
  if (to.kind === 'null' || from.kind === 'null') {
    return to.kind === from.kind || isNullable(to) || isNullable(from);
  }
  switch (to.kind) {
    case 'list':
    case 'optional':
      return from.kind === to.kind && isAssignable(to.item, from.item, bindings);
    case 'map':
      return (
        from.kind === 'map' &&
        isAssignable(to.key, from.key, bindings) &&
        isAssignable(to.value, from.value, bindings)
      );
    case 'object':
      return from.kind === 'object' && from.fields === to.fields;
    case 'opaque':
      return from.kind === 'opaque' && from.name === to.name;
    default:
      return from.kind === to.kind;
  }
}

function bind(parameter: ParamType, type: CelType, bindings: Bindings): boolean {
  if (type.kind === 'param' && type.name === parameter.name) return true;
  const bound = bindings.get(parameter.name);
  if (!bound) {
    if (!mentions(type, parameter.name, bindings)) bindings.set(parameter.name, type);
    return true;
  }
  if (!isAssignable(bound, type, bindings)) return false;
  if (!isAny(bound) && isAny(type)) bindings.set(parameter.name, type);
  return true;
}

/** Whether a type contains a parameter. A parameter must not be bound to such a type. */
function mentions(type: CelType, name: string, bindings: Bindings): boolean {
  switch (type.kind) {
    case 'param': {
      const bound = bindings.get(type.name);
      return type.name === name || (bound !== undefined && mentions(bound, name, bindings));
    }
    case 'list':
    case 'optional':
    case 'type':
      return mentions(type.item, name, bindings);
    case 'map':
      return mentions(type.key, name, bindings) || mentions(type.value, name, bindings);
    default:
      return false;
  }
}

export function isAny(type: CelType): boolean {
  return type.kind === 'dyn' || type.kind === 'error';
}

function isNullable(type: CelType): boolean {
  return (
    'isWrapper' in type ||
    ['timestamp', 'duration', 'object', 'opaque', 'optional'].includes(type.kind)
  );
}
