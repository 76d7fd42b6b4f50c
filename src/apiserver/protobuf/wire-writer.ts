import { utf8Bytes } from '../../util/bytes.ts';
import { WIRE_BYTES, FIXED64, VARINT } from './wire-reader.ts';

const INITIAL_BYTES = 1024;

/** Length of a text up to which a loop is faster than an encoder. */
const SHORT = 100;

/**
 * Writes messages in the protobuf wire format from their end to their start, as Go's encoder does: the length
 * of a nested message is then known when its tag is written.
 */
export class WireWriter {
  #bytes: Uint8Array = new Uint8Array(INITIAL_BYTES);
  /** Offset of the first written byte. */
  #at: number = INITIAL_BYTES;

  /** Number of written bytes. */
  get length(): number {
    return this.#bytes.byteLength - this.#at;
  }

  /** Returns what was written; the writer must not be used afterwards. */
  finish(): Uint8Array {
    return this.#bytes.subarray(this.#at);
  }

  /** Writes the tag and the length of what was written since the writer had the length `before`. */
  delimit(number: number, before: number): void {
    this.#varint(this.length - before);
    this.#varint(number * 8 + WIRE_BYTES);
  }

  text(number: number, value: string): void {
    if (!this.#ascii(value)) return this.bytes(number, utf8Bytes(value));
    this.delimit(number, this.length - value.length);
  }

  /** Writes a short text of ASCII characters, without a tag, and returns whether it is one. */
  #ascii(text: string): boolean {
    const { length } = text;
    if (length > SHORT) return false;
    for (let index = 0; index < length; index++) if (text.charCodeAt(index) > 0x7f) return false;
    const at = this.#reserve(length);
    for (let index = 0; index < length; index++) this.#bytes[at + index] = text.charCodeAt(index);
    return true;
  }

  bytes(number: number, value: Uint8Array): void {
    this.raw(value);
    this.delimit(number, this.length - value.byteLength);
  }

  /** Writes bytes without a tag. */
  raw(value: Uint8Array): void {
    const at = this.#reserve(value.byteLength);
    this.#bytes.set(value, at);
  }

  integer(number: number, value: number): void {
    if (value >= 0) this.#varint(value);
    else this.#negative(value);
    this.#varint(number * 8 + VARINT);
  }

  double(number: number, value: number): void {
    const at = this.#reserve(8);
    new DataView(this.#bytes.buffer).setFloat64(at, value, true);
    this.#varint(number * 8 + FIXED64);
  }

  #varint(value: number): void {
    let length = 1;
    for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) length++;
    let at = this.#reserve(length);
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) {
      this.#bytes[at++] = (rest % 0x80) | 0x80;
    }
    this.#bytes[at] = rest;
  }

  /** Ten bytes: the 64-bit two's complement. */
  #negative(value: number): void {
    const at = this.#reserve(10);
    let rest = BigInt.asUintN(64, BigInt(value));
    for (let index = 0; index < 10; index++, rest >>= 7n) {
      this.#bytes[at + index] = Number(rest & 0x7fn) | (index < 9 ? 0x80 : 0);
    }
  }

  /** Makes room before the written bytes. Returns its offset. */
  #reserve(length: number): number {
    if (length > this.#at) {
      const { length: written } = this;
      const larger = new Uint8Array(2 * (written + length));
      larger.set(this.finish(), larger.byteLength - written);
      this.#at = larger.byteLength - written;
      this.#bytes = larger;
    }
    this.#at -= length;
    return this.#at;
  }
}
