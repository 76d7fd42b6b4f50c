/** Names and versions of a set of objects as one number that does not depend on their order. */
export class Checksum {
  #sum = 0;

  add(namespace: string, name: string, resourceVersion: string): this {
    this.#sum = (this.#sum + hash(`${namespace}/${name}/${resourceVersion}`)) >>> 0;
    return this;
  }

  remove(namespace: string, name: string, resourceVersion: string): this {
    this.#sum = (this.#sum - hash(`${namespace}/${name}/${resourceVersion}`)) >>> 0;
    return this;
  }

  get value(): number {
    return this.#sum;
  }
}

interface Versioned {
  readonly metadata?: {
    readonly namespace?: string | undefined;
    readonly name?: string | undefined;
    readonly resourceVersion?: string | undefined;
  };
}

export function checksumOf(objects: Iterable<Versioned>): number {
  const sum = new Checksum();
  for (const { metadata: { namespace = '', name = '', resourceVersion = '' } = {} } of objects) {
    sum.add(namespace, name, resourceVersion);
  }
  return sum.value;
}

/** FNV-1a with 32 bits; the texts are ASCII. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  return value >>> 0;
}
