import type { KubernetesObject, ObjectList } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import { apiVersionOf } from '../api/resource.ts';
import { ELEMENTS, malformed, parseJson } from './json.ts';
import { isRecord } from '../util/values.ts';
import type { JsonPath } from './json.ts';

/** Options of `Decoder`. */
export interface DecoderOptions {
  /**
   * Keep `metadata.managedFields`: half of an object's size, and of interest to few.
   * @default false
   */
  readonly keepManagedFields?: boolean | undefined;
}

/** Which objects are expected, and in which form. */
export interface Expected<T extends KubernetesObject> {
  readonly resource: Resource<T>;
  /** They come as `PartialObjectMetadata`, and get the kind they are of. */
  readonly metadataOnly?: boolean | undefined;
}

/** Where managedFields are in an event of a watch, and in a list. */
const IN_EVENT: JsonPath = ['object', 'metadata', 'managedFields'];
const IN_LIST: JsonPath = ['items', ELEMENTS, 'metadata', 'managedFields'];

/**
 * From JSON to the objects a caller may rely on: an object has metadata, an item of a list
 * has `apiVersion` and `kind` like any other object, and what would only fill memory is gone.
 */
export class Decoder {
  readonly #keepManagedFields: boolean;
  readonly #strings = new StringPool();

  constructor({ keepManagedFields = false }: DecoderOptions = {}) {
    this.#keepManagedFields = keepManagedFields;
  }

  /** An event of a watch, or a list, as `parseJson` does; most of what goes is not even parsed. */
  parse(bytes: Buffer, what: string, form: 'event' | 'list'): unknown {
    if (this.#keepManagedFields) return parseJson(bytes, what);
    return parseJson(bytes, what, form === 'event' ? IN_EVENT : IN_LIST);
  }

  /** @throws {ApiError} of kind `malformed` if `value` is no object of Kubernetes */
  object<T extends KubernetesObject>(value: unknown, expected: Expected<T>): T {
    if (!isRecord(value) || !isRecord(value['metadata'])) {
      throw malformed(`Expected an object of kind ${expected.resource.kind}, got something else`);
    }
    this.#identify(value, expected);
    this.#trim(value['metadata']);
    const object: unknown = value;
    return object as T;
  }

  /** @throws {ApiError} of kind `malformed` if `value` is no list */
  list<T extends KubernetesObject>(value: unknown, expected: Expected<T>): ObjectList<T> {
    // Go writes an empty slice as null.
    const items = isRecord(value) ? (value['items'] ?? []) : undefined;
    if (!isRecord(value) || !isRecord(value['metadata']) || !Array.isArray(items)) {
      throw malformed(`Expected a list of ${expected.resource.plural}, got something else`);
    }
    const { resourceVersion, remainingItemCount, continue: token } = value['metadata'];
    return {
      items: items.map((item: unknown) => this.object(item, expected)),
      resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : '',
      ...(typeof token === 'string' && token !== '' ? { continueToken: token } : {}),
      ...(typeof remainingItemCount === 'number' ? { remainingItemCount } : {}),
    };
  }

  #identify(
    object: Record<string, unknown>,
    { resource, metadataOnly }: Expected<KubernetesObject>,
  ): void {
    if (metadataOnly || typeof object['kind'] !== 'string' || object['kind'] === '') {
      object['apiVersion'] = apiVersionOf(resource);
      object['kind'] = resource.kind;
    }
  }

  #trim(metadata: Record<string, unknown>): void {
    // An object that loses a member becomes a slow and large one: only where parsing left it there.
    if (!this.#keepManagedFields && metadata['managedFields'] !== undefined) {
      delete metadata['managedFields'];
    }
    this.#shareValue(metadata, 'namespace');
    const { labels, ownerReferences } = metadata;
    if (isRecord(labels)) {
      for (const key of Object.keys(labels)) this.#shareValue(labels, key);
    }
    if (Array.isArray(ownerReferences)) {
      for (const reference of ownerReferences as unknown[]) {
        if (!isRecord(reference)) continue;
        for (const key of ['apiVersion', 'kind', 'name', 'uid']) this.#shareValue(reference, key);
      }
    }
  }

  #shareValue(holder: Record<string, unknown>, key: string): void {
    const value = holder[key];
    if (typeof value === 'string') holder[key] = this.#strings.share(value);
  }
}

/** Strings kept before the pool starts anew, which bounds what a hostile sender can pin. */
const MAX_STRINGS = 20_000;
/** V8's JSON.parse makes values up to this length one string by itself. */
const SHARED_BY_PARSER_LENGTH = 9;
/** Longer strings rarely repeat, and cost more to look up. */
const MAX_LENGTH = 253;

/**
 * Makes equal strings one string. JSON.parse shares property names and very short values only;
 * namespaces, label values and owners repeat in thousands of objects (measured on Pods: 8 % less
 * heap, 10 % more decoding time).
 */
class StringPool {
  readonly #strings = new Map<string, string>();

  share(text: string): string {
    if (text.length <= SHARED_BY_PARSER_LENGTH || text.length > MAX_LENGTH) return text;
    const known = this.#strings.get(text);
    if (known !== undefined) return known;
    if (this.#strings.size >= MAX_STRINGS) this.#strings.clear();
    this.#strings.set(text, text);
    return text;
  }
}
