import { errorText } from '../common/errors.ts';
import { isSecretName, MASK, redactText } from '../../util/redact.ts';

/** Limits of a line: characters of a string, members of a value in total, and levels of nesting. */
const LONGEST_TEXT = 10_240;
const MOST_MEMBERS = 500;
const DEEPEST_LEVEL = 8;

/** Reference to a Kubernetes object: `namespace/name` as text, an object in JSON. */
export class ObjectReference {
  readonly name: string;
  readonly namespace?: string;

  constructor(name: string, namespace?: string) {
    this.name = name;
    if (namespace) this.namespace = namespace;
  }

  toString(): string {
    return this.namespace ? `${this.namespace}/${this.name}` : this.name;
  }
}

/** Value in a log line: JSON or references to objects. */
export type LogValue =
  | null
  | boolean
  | number
  | string
  | ObjectReference
  | readonly LogValue[]
  | { readonly [name: string]: LogValue };

/**
 * Returns `value` as it is logged under `name`: secrets are masked, sizes limited, errors turned into text,
 * and Kubernetes objects into references. Undefined stays undefined.
 */
export function logValue(
  name: string,
  value: unknown,
  longest: number = LONGEST_TEXT,
): LogValue | undefined {
  return boundedField(name, value, { longest, members: MOST_MEMBERS }, 0);
}

/** A secret can start before the cut and end after it. Secrets up to this length are recognised. */
const LONGEST_SECRET = 8192;

/**
 * Returns `text` without credentials, cut after `longest` characters. Incomplete characters become U+FFFD,
 * as in UTF-8.
 */
export function logText(text: string, longest: number = LONGEST_TEXT): string {
  if (text.length <= longest) return redactText(text.toWellFormed());
  const start = redactText(text.slice(0, longest + LONGEST_SECRET)).slice(0, longest);
  return `${start.toWellFormed()}… (${text.length - longest} more characters)`;
}

interface Bounds {
  readonly longest: number;
  /** Remaining number of members. */
  members: number;
}

function boundedField(
  name: string,
  value: unknown,
  bounds: Bounds,
  level: number,
): LogValue | undefined {
  switch (typeof value) {
    case 'undefined':
      return undefined;
    case 'boolean':
      return value;
    case 'number':
      return isSecretName(name) ? MASK : Number.isFinite(value) ? value : unbounded(value);
    case 'bigint':
      return String(value);
    case 'string':
      return isSecretName(name) && value !== '' ? MASK : logText(value, bounds.longest);
    case 'symbol':
    case 'function':
      return logText(String(value));
    case 'object':
      if (value === null) return null;
      if (isSecretName(name)) return MASK;
      return shownObject(isEnvironment(name) ? withoutValues(value) : value, bounds, level);
  }
}

/** Environment variables often contain secrets. */
function isEnvironment(name: string): boolean {
  return name === 'env' || name === 'environment';
}

/** Returns the variables of a container or of a process without their values. */
function withoutValues(environment: object): readonly unknown[] {
  return Array.isArray(environment)
    ? environment.slice(0, MOST_MEMBERS + 1).map(withoutValue)
    : Object.keys(environment);
}

function withoutValue(variable: unknown): unknown {
  const hasValue = typeof variable === 'object' && variable !== null && 'value' in variable;
  return hasValue ? { ...variable, value: MASK } : variable;
}

/** JSON has no such numbers: they are written as Go spells them. */
function unbounded(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  return value > 0 ? '+Inf' : '-Inf';
}

function shownObject(value: object, bounds: Bounds, level: number): LogValue {
  if (value instanceof Error) return logText(errorText(value), bounds.longest);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'null' : value.toISOString();
  if (value instanceof URL) return logText(value.href);
  if (ArrayBuffer.isView(value)) return `(${value.byteLength} bytes)`;
  const reference = referenceTo(value);
  if (reference) return reference;
  if (level >= DEEPEST_LEVEL) return '…';
  if (value instanceof Map) return shownMembers(value.entries(), bounds, level);
  if (Array.isArray(value) || value instanceof Set) {
    const list: LogValue[] = [];
    for (const element of value) {
      if (bounds.members-- <= 0) return [...list, '…'];
      list.push(boundedField('', element, bounds, level + 1) ?? null);
    }
    return list;
  }
  return shownMembers(Object.entries(value), bounds, level);
}

function shownMembers(
  entries: Iterable<readonly [unknown, unknown]>,
  bounds: Bounds,
  level: number,
): LogValue {
  const members: [string, LogValue][] = [];
  for (const [key, member] of entries) {
    if (bounds.members-- <= 0) {
      members.push(['…', '…']);
      break;
    }
    const name = logText(String(key));
    const value = boundedField(name, member, bounds, level + 1);
    if (value !== undefined) members.push([name, value]);
  }
  return Object.fromEntries(members);
}

/** Returns a reference for a Kubernetes object, or for an object with a name and namespace only. */
function referenceTo(value: object): ObjectReference | undefined {
  if (value instanceof ObjectReference) return value;
  if ('metadata' in value) return referenceToObject(value, value.metadata);
  const names = Object.keys(value);
  const isName =
    names.includes('name') && names.every((key) => key === 'name' || key === 'namespace');
  return isName ? namedReference(value) : undefined;
}

/** List elements have no kind. A new object can have no name, or `generateName`. */
function referenceToObject(value: object, metadata: unknown): ObjectReference | undefined {
  if (typeof metadata !== 'object' || metadata === null) return undefined;
  const named = namedReference(metadata);
  if (named) return named;
  if ('generateName' in metadata && typeof metadata.generateName === 'string') {
    return namedReference({ ...metadata, name: `${metadata.generateName}…` });
  }
  if (!('kind' in value) || typeof value.kind !== 'string' || value.kind.endsWith('List')) {
    return undefined;
  }
  return new ObjectReference(logText(`(${value.kind} without name)`));
}

function namedReference(value: object): ObjectReference | undefined {
  if (!('name' in value) || typeof value.name !== 'string') return undefined;
  const namespace =
    'namespace' in value && typeof value.namespace === 'string' ? value.namespace : undefined;
  return new ObjectReference(logText(value.name), namespace && logText(namespace));
}
