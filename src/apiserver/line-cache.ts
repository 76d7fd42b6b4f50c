import type { StoredObject } from './resource-definition.ts';

/** Lines that are kept, in bytes; of the newest object, all are. */
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * Lines that watches have sent of recently written objects: watches that keep up encode each object
 * once, all together. What a watch that does not keep up is sent is encoded again.
 */
export class LineCache {
  /** Does not hold the objects: a short line may be of a large one. */
  readonly #lines = new WeakMap<StoredObject, Map<string, Uint8Array>>();
  /** The lines of the object that was added first come first. */
  readonly #kept = new Set<Map<string, Uint8Array>>();
  #bytes = 0;

  /** What is kept, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * @param form what distinguishes lines of the same object: event type, representation, version
   * @param encode makes the line if it is not there
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
