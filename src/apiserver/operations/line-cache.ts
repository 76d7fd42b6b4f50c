import type { StoredObject } from '../objects/resource-definition.ts';

/** Maximum size of cached lines in bytes; all lines of the newest object are cached. */
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * Caches the encoded watch events of recent writes, so that all current watches encode each object
 * once in total. Events for slow watches are encoded again.
 */
export class LineCache {
  /** Weak, because a short line may belong to a large object. */
  readonly #lines = new WeakMap<StoredObject, Map<string, Uint8Array>>();
  /** In insertion order of the objects. */
  readonly #kept = new Set<Map<string, Uint8Array>>();
  #bytes = 0;

  /** Size of the cached lines in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * @param form key of the line within its object: event type, representation, version
   * @param encode encodes the line if it is not cached
   */
  line(object: StoredObject, form: string, encode: () => Uint8Array): Uint8Array {
    const lines = this.#lines.get(object) ?? new Map<string, Uint8Array>();
    const known = lines.get(form);
    if (known) return known;
    const made = encode();
    this.#lines.set(object, lines.set(form, made));
    this.#kept.add(lines);
    this.#bytes += made.byteLength;
    for (const oldest of this.#kept) {
      if (this.#bytes <= MAX_BYTES || oldest === lines) break;
      this.#kept.delete(oldest);
      for (const { byteLength } of oldest.values()) this.#bytes -= byteLength;
      oldest.clear();
    }
    return made;
  }
}
