import { isRecord } from '../../src/util/values.ts';

/** Bytes that are special in most formats. */
const SPECIAL = [0, 1, 9, 10, 13, 0x22, 0x27, 0x2c, 0x2e, 0x3a, 0x5b, 0x5c, 0x7b, 0x7f, 0x80, 0xff];

/** Values that are special in most fields of JSON. */
const VALUES: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e21,
  '',
  'a',
  '0',
  [],
  {},
  [[]],
  'replace',
  'delete',
];

/** Makes inputs from others. */
export class Mutator {
  readonly #random: () => number;
  readonly #words: readonly Buffer[];

  /** @param words of the format */
  constructor(random: () => number, words: readonly string[]) {
    this.#random = random;
    this.#words = words.map((word) => Buffer.from(word));
  }

  /** Returns an input that differs from one of `inputs` in some places. */
  mutate(inputs: readonly Buffer[]): Buffer {
    let bytes = this.#pick(inputs);
    const count = 1 + this.#below(4);
    for (let index = 0; index < count; index++) bytes = this.#change(bytes, inputs);
    return bytes;
  }

  /** Like `mutate`, for inputs that are JSON, which the result is, too. */
  mutateJson(inputs: readonly Buffer[]): Buffer {
    let value: unknown = JSON.parse(this.#pick(inputs).toString());
    const other: unknown = JSON.parse(this.#pick(inputs).toString());
    const count = 1 + this.#below(3);
    for (let index = 0; index < count; index++) value = this.#changeValue(value, other);
    return Buffer.from(JSON.stringify(value));
  }

  /** Returns a large input: a part of an input, many times. */
  enlarge(inputs: readonly Buffer[], bytes: number): Buffer {
    const whole = this.mutate(inputs);
    const start = this.#below(whole.length);
    const end = start + 1 + this.#below(Math.min(40, whole.length - start));
    const part = whole.subarray(start, end);
    const count = Math.floor((bytes - whole.length) / Math.max(1, part.length));
    if (count < 2) return whole;
    return Buffer.concat([
      whole.subarray(0, start),
      ...Array.from({ length: count }, () => part),
      whole.subarray(end),
    ]);
  }

  #change(bytes: Buffer, inputs: readonly Buffer[]): Buffer {
    const at = this.#below(bytes.length + 1);
    const end = Math.min(bytes.length, at + 1 + this.#below(8));
    const replace = (...parts: readonly Buffer[]) =>
      Buffer.concat([bytes.subarray(0, at), ...parts, bytes.subarray(end)]);
    switch (this.#below(8)) {
      case 0:
        return replace();
      case 1:
        return replace(Buffer.from([this.#pick(SPECIAL)]));
      case 2:
        return replace(bytes.subarray(at, end), bytes.subarray(at, end));
      case 3: {
        const changed = Buffer.from(bytes);
        if (at < changed.length) changed[at] = (changed[at] ?? 0) ^ (1 << this.#below(8));
        return changed;
      }
      case 4: {
        const other = this.#pick(inputs);
        return Buffer.concat([
          bytes.subarray(0, at),
          other.subarray(this.#below(other.length + 1)),
        ]);
      }
      case 5: {
        const other = this.#pick(inputs);
        const start = this.#below(other.length + 1);
        return replace(other.subarray(start, start + this.#below(16)), bytes.subarray(at, end));
      }
      default:
        if (this.#words.length === 0) return replace(Buffer.from([this.#below(256)]));
        return this.#below(2) === 0
          ? replace(this.#pick(this.#words))
          : replace(this.#pick(this.#words), bytes.subarray(at, end));
    }
  }

  #changeValue(value: unknown, other: unknown): unknown {
    const isLeaf = !isRecord(value) && !Array.isArray(value);
    if (isLeaf || this.#below(8) === 0) {
      return this.#below(2) === 0 ? this.#pick(VALUES) : this.#partOf(other);
    }
    if (Array.isArray(value)) {
      const items: unknown[] = [...value];
      const at = this.#below(items.length + 1);
      const kind = this.#below(4);
      if (kind === 0) items.splice(at, 1);
      else if (kind === 1) items.splice(at, 0, this.#partOf(value), this.#partOf(other));
      else if (at < items.length) items[at] = this.#changeValue(items[at], other);
      return items;
    }
    const members = Object.entries(value);
    const at = this.#below(members.length);
    const member = members[at];
    const word = this.#words.length > 0 ? String(this.#pick(this.#words)) : 'a';
    const kind = this.#below(6);
    if (!member || kind === 0) members.push([word, this.#partOf(other)]);
    else if (kind === 1) members.splice(at, 1);
    else if (kind === 2) members[at] = [word, member[1]];
    else members[at] = [member[0], this.#changeValue(member[1], other)];
    return Object.fromEntries(members);
  }

  #partOf(value: unknown): unknown {
    const parts = Object.values(Object(value)) as readonly unknown[];
    if (typeof value !== 'object' || parts.length === 0 || this.#below(4) === 0) return value;
    return this.#partOf(this.#pick(parts));
  }

  #pick<T>(list: readonly T[]): T {
    const found = list[this.#below(list.length)];
    if (found === undefined) throw new RangeError('there is nothing to choose from');
    return found;
  }

  #below(end: number): number {
    return Math.floor(this.#random() * end);
  }
}
