import { ApiError } from '../api/api-error.ts';
import { objectKey } from '../api/object-key.ts';
import { isString } from './json-scanner.ts';
import { malformed } from './json.ts';

/** The fields of an object that are always parsed. Every other field is lazy. */
type EagerField = 'apiVersion' | 'kind' | 'metadata';

/** The values of these fields. The server's metadata is an object, but need not have the fields that its type requires. */
export interface EagerFields {
  apiVersion: string;
  kind: string;
  metadata: Readonly<Record<string, unknown>>;
}

/**
 * The names of an object's fields in order. Layouts form a tree with a node for each prefix, so that the objects
 * of a kind share one layout, and their own properties are defined by the same descriptors. V8 then keeps them
 * in fast mode.
 */
export class Layout {
  static readonly #max = 1000;
  static #count = 0;
  /** The layout without fields. */
  static readonly empty = new Layout([]);

  readonly names: readonly string[];
  /** The last name, if it is an eager field. */
  readonly eager: EagerField | undefined;
  /** Names and descriptors of the lazy fields. */
  readonly lazy: readonly string[];
  readonly descriptors: readonly PropertyDescriptor[];
  /** The eager fields come first, in one of the orders that servers use. */
  readonly start: 'apiVersion' | 'kind' | undefined;
  readonly #next = new Map<string, Layout>();
  #latest: Layout | undefined;

  private constructor(names: readonly string[]) {
    this.names = names;
    this.eager = eagerField(names.at(-1));
    this.lazy = names.filter((name) => !eagerField(name));
    this.descriptors = this.lazy.map((name) => descriptorOf(name));
    const eager = names.slice(0, names.length - this.lazy.length).join();
    const isUsual = ['apiVersion,kind,metadata', 'kind,apiVersion,metadata', 'metadata'];
    if (isUsual.includes(eager)) this.start = eager.startsWith('kind') ? 'kind' : 'apiVersion';
  }

  /**
   * Returns the layout with one more field, whose quoted name is in the bytes. Undefined if the name is unusual:
   * repeated, with an escape, or one that JavaScript orders or treats in another way.
   */
  with(bytes: Buffer, start: number, end: number): Layout | undefined {
    const latest = this.#latest;
    if (latest && isString(bytes, start, end, latest.names.at(-1) ?? '')) return latest;
    const quoted = bytes.toString('latin1', start, end);
    if (!/^"[A-Za-z][\w.-]*"$/.test(quoted)) return undefined;
    const name = quoted.slice(1, -1);
    let layout = this.#next.get(name);
    if (!layout) {
      if (this.names.includes(name) || Layout.#count >= Layout.#max) return undefined;
      Layout.#count++;
      layout = new Layout([...this.names, name]);
      this.#next.set(name, layout);
    }
    this.#latest = layout;
    return layout;
  }
}

function eagerField(name: string | undefined): EagerField | undefined {
  return name === 'apiVersion' || name === 'kind' || name === 'metadata' ? name : undefined;
}

/*
 * Constructors of plain objects. V8 learns how many fields their objects get, and keeps them in the object
 * itself. An object literal would have a second object for the private fields.
 */
const VersionFirst = function (
  this: EagerFields,
  apiVersion: string,
  kind: string,
  metadata: EagerFields['metadata'],
): void {
  this.apiVersion = apiVersion;
  this.kind = kind;
  this.metadata = metadata;
} as unknown as new (...fields: [string, string, EagerFields['metadata']]) => EagerFields;

const KindFirst = function (
  this: EagerFields,
  kind: string,
  apiVersion: string,
  metadata: EagerFields['metadata'],
): void {
  this.kind = kind;
  this.apiVersion = apiVersion;
  this.metadata = metadata;
} as unknown as new (...fields: [string, string, EagerFields['metadata']]) => EagerFields;

VersionFirst.prototype = Object.prototype;
KindFirst.prototype = Object.prototype;

/** Returns its argument, so that the private fields of a subclass are added to an existing object. */
const Existing = function (object: object): object {
  return object;
} as unknown as new (object: object) => object;

/** Parsed fields that may be collected as garbage, and their text. */
class Collectable {
  readonly json: string;
  readonly fields: WeakRef<Fields>;

  constructor(json: string, fields: Fields) {
    this.json = json;
    this.fields = new WeakRef(fields);
  }
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * The lazy fields of an object, kept as text until one of them is read. They are private members of the object
 * itself, so its prototype and properties are those of a plain object.
 */
class LazyFields extends Existing {
  /** Text of the members without braces, parsed fields, or the error of a read. */
  #state: string | Fields | Collectable | ApiError;
  #isShared = false;

  constructor(object: object, state: string | ApiError) {
    super(object);
    this.#state = state;
  }

  static add(object: object, state: string | ApiError): object {
    return new LazyFields(object, state);
  }

  static read(receiver: object, name: string): unknown {
    return LazyFields.#parsed(LazyFields.#holder(receiver, name))[name];
  }

  static share(object: object): void {
    if (#state in object && typeof object.#state === 'string') object.#isShared = true;
  }

  static textOf(object: object): string | undefined {
    if (!(#state in object)) return undefined;
    const state = object.#state;
    return state instanceof Collectable
      ? state.json
      : typeof state === 'string'
        ? state
        : undefined;
  }

  static forget(object: object): void {
    if (#state in object) object.#state = {};
  }

  static #parsed(holder: LazyFields): Fields {
    const state = holder.#state;
    if (typeof state === 'string') {
      const fields = parseFields(holder, state);
      holder.#state = holder.#isShared ? new Collectable(state, fields) : fields;
      return fields;
    }
    if (state instanceof Collectable) {
      const fields = state.fields.deref();
      if (fields) return fields;
      const again = parseFields(holder, state.json);
      holder.#state = again;
      return again;
    }
    if (state instanceof ApiError) throw state;
    return state;
  }

  /** Returns the object of the fields: `receiver`, or one that it inherits from. */
  static #holder(receiver: object, name: string): LazyFields {
    for (let object: unknown = receiver; isObject(object); object = Object.getPrototypeOf(object)) {
      if (#state in object) return object;
    }
    throw new TypeError(`Cannot read ${name} of an object through a Proxy; copy the object first`);
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function parseFields(object: object, json: string): Fields {
  try {
    return JSON.parse(`{${json}}`) as Fields;
  } catch {
    throw malformed(`${describeObject(object as EagerFields)} has fields that are malformed JSON`);
  }
}

/** Returns kind and key of an object for messages. */
export function describeObject({ kind, metadata }: Pick<EagerFields, 'kind' | 'metadata'>): string {
  const { namespace, name } = metadata;
  return `${kind} ${objectKey(typeof namespace === 'string' ? namespace : undefined, String(name))}`;
}

const DESCRIPTORS = new Map<string, PropertyDescriptor>();

/** Returns the accessor of a lazy field. All objects share it. */
function descriptorOf(name: string): PropertyDescriptor {
  let descriptor = DESCRIPTORS.get(name);
  if (!descriptor) {
    descriptor = {
      get(this: object) {
        return LazyFields.read(this, name);
      },
      set(this: object, value: unknown) {
        define(this, name, value);
      },
      enumerable: true,
      configurable: true,
    };
    DESCRIPTORS.set(name, descriptor);
  }
  return descriptor;
}

/** The key of the function that Node's `util.inspect` calls. */
const INSPECT_KEY = Symbol.for('nodejs.util.inspect.custom');

/** Shows values instead of accessors in `console.log` and `util.inspect`. */
const INSPECT: PropertyDescriptor = {
  get() {
    return copy;
  },
  enumerable: false,
  configurable: true,
};

function copy(this: object): object {
  return { ...this };
}

function define(object: object, name: string, value: unknown): void {
  Object.defineProperty(object, name, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

/**
 * Returns an object whose lazy fields are parsed when one of them is first read. It behaves as a plain object:
 * the fields are own enumerable properties, which can be assigned, deleted, copied, compared and frozen.
 *
 * @param json the members of the lazy fields without braces, or the error that reading one throws
 */
export function lazyObject(
  layout: Layout,
  { apiVersion, kind, metadata }: EagerFields,
  json: string | ApiError,
): EagerFields {
  let object: EagerFields;
  if (layout.start === 'apiVersion') object = new VersionFirst(apiVersion, kind, metadata);
  else if (layout.start === 'kind') object = new KindFirst(kind, apiVersion, metadata);
  else return inOrder(layout, { apiVersion, kind, metadata }, json);
  const { lazy, descriptors } = layout;
  if (lazy.length === 0) return object;
  for (let at = 0; at < lazy.length; at++) {
    const descriptor = descriptors[at];
    if (descriptor) Reflect.defineProperty(object, lazy[at] ?? '', descriptor);
  }
  return withFields(object, json);
}

function inOrder(layout: Layout, eager: EagerFields, json: string | ApiError): EagerFields {
  const object: Record<string, unknown> = {};
  for (const name of layout.names) {
    const field = eagerField(name);
    if (field) object[field] = eager[field];
    else Reflect.defineProperty(object, name, descriptorOf(name));
  }
  return withFields(Object.assign(object, eager), json);
}

function withFields(object: EagerFields, json: string | ApiError): EagerFields {
  Reflect.defineProperty(object, INSPECT_KEY, INSPECT);
  LazyFields.add(object, json);
  return object;
}

/**
 * Declares that an object is not modified any more. The fields that a first read has parsed may then be
 * collected as garbage, because most cached objects are read by one sync. They are parsed again for a second
 * read, and kept from then on.
 */
export function shareFields(object: object): void {
  LazyFields.share(object);
}

/**
 * Returns the text of the lazy fields of an object that is not modified, or undefined if it is not kept. Objects
 * with equal texts have equal lazy fields.
 */
export function lazyTextOf(object: object): string | undefined {
  return LazyFields.textOf(object);
}

/** Returns the number of lazy fields of an object. */
export function countLazyFields(object: object): number {
  let count = 0;
  for (const name of Object.keys(object)) if (isLazy(object, name)) count++;
  return count;
}

/** Replaces lazy fields by their values, and releases the text of all of them. */
export function parseLazyFields(object: object): void {
  for (const name of Object.keys(object)) {
    if (isLazy(object, name)) define(object, name, Reflect.get(object, name));
  }
  LazyFields.forget(object);
}

function isLazy(object: object, name: string): boolean {
  const descriptor = DESCRIPTORS.get(name);
  return (
    descriptor !== undefined &&
    Object.getOwnPropertyDescriptor(object, name)?.get === descriptor.get
  );
}
