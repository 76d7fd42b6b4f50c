import { WidthError } from '../../util/json-value.ts';
import { toBase64, utf8Text } from '../../util/bytes.ts';

/** Malformed protobuf. The message is that of Go's decoder. */
export class WireError extends Error {
  override readonly name = 'WireError';
}

/** Number of nested messages, which all readers of a message share. */
interface MessageLimit {
  readonly max: number;
  used: number;
}

/** The tag that precedes a value on the wire. */
interface Tag {
  readonly number: number;
  readonly wireType: number;
}

export const VARINT = 0;
export const FIXED64 = 1;
export const WIRE_BYTES = 2;
const START_GROUP = 3;
const END_GROUP = 4;
const FIXED32 = 5;

/**
 * Reads one message in the protobuf wire format, value by value. Every length is checked against
 * the remaining bytes before it is used, so hostile input causes a `WireError` at worst.
 */
export class WireReader {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #messages: MessageLimit;
  #at: number;

  /** The two halves of the last number, each as an unsigned 32-bit integer. */
  #low = 0;
  #high = 0;

  constructor(
    bytes: Uint8Array,
    start: number = 0,
    end: number = bytes.byteLength,
    messages: MessageLimit = { max: Infinity, used: 0 },
  ) {
    this.#messages = messages;
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  /** Returns the next tag of the message `message`, or undefined at its end. */
  tag(message: string): Tag | undefined {
    if (this.#at >= this.#end) return undefined;
    const tag = this.#tag();
    if (tag.wireType === END_GROUP) {
      throw new WireError(`proto: ${message}: wiretype end group for non-group`);
    }
    if (tag.number <= 0) {
      throw new WireError(`proto: ${message}: illegal tag ${tag.number} (wire type ${this.#low})`);
    }
    return tag;
  }

  bool(): boolean {
    this.#varint();
    return this.#low !== 0 || this.#high !== 0;
  }

  int32(): number {
    this.#varint();
    return this.#low | 0;
  }

  /** Beyond 2^53 the nearest number, as in JSON. */
  int64(): number {
    this.#varint();
    return (this.#high | 0) * 2 ** 32 + this.#low;
  }

  double(): number {
    const { buffer, byteOffset } = this.#bytes;
    return new DataView(buffer, byteOffset).getFloat64(this.#advance(8), true);
  }

  /** Invalid UTF-8 becomes replacement characters, as in JSON. */
  text(): string {
    const length = this.#length();
    const start = this.#advance(length);
    return utf8Text(this.#bytes.subarray(start, start + length));
  }

  base64(): string {
    const length = this.#length();
    const start = this.#advance(length);
    return toBase64(this.#bytes.subarray(start, start + length));
  }

  /** A view, not a copy. */
  bytes(): Uint8Array {
    const length = this.#length();
    const start = this.#advance(length);
    return this.#bytes.subarray(start, start + length);
  }

  /**
   * Returns a reader of a length-delimited value, such as a message.
   *
   * @throws {WidthError} if there are too many
   */
  nested(): WireReader {
    const length = this.#length();
    const start = this.#advance(length);
    const messages = this.#messages;
    if (++messages.used > messages.max) throw new WidthError(messages.max);
    return new WireReader(this.#bytes, start, start + length, messages);
  }

  get atEnd(): boolean {
    return this.#at >= this.#end;
  }

  /** Skips a value. A group, which is deprecated, is skipped with its content. */
  skip(wireType: number): void {
    for (let depth = 0, next = wireType; ; next = this.#tag().wireType) {
      switch (next) {
        case VARINT:
          this.#varint();
          break;
        case FIXED64:
          this.#advance(8);
          break;
        case WIRE_BYTES:
          this.#advance(this.#length());
          break;
        case START_GROUP:
          depth++;
          break;
        case END_GROUP:
          if (depth === 0) throw new WireError('proto: unexpected end of group');
          depth--;
          break;
        case FIXED32:
          this.#advance(4);
          break;
        default:
          throw new WireError(`proto: illegal wireType ${next}`);
      }
      if (depth === 0) return;
    }
  }

  #tag(): Tag {
    this.#varint();
    return { number: (this.#high << 29) | (this.#low >>> 3), wireType: this.#low & 7 };
  }

  #length(): number {
    this.#varint();
    if (this.#high >= 2 ** 31) {
      throw new WireError('proto: negative length found during unmarshaling');
    }
    return this.#high * 2 ** 32 + this.#low;
  }

  /** Consumes `length` bytes and returns the offset of the first. */
  #advance(length: number): number {
    if (length > this.#end - this.#at) throw new WireError('unexpected EOF');
    const start = this.#at;
    this.#at += length;
    return start;
  }

  #varint(): void {
    let low = 0;
    let high = 0;
    for (let shift = 0; ; shift += 7) {
      if (shift >= 64) throw new WireError('proto: integer overflow');
      const byte = this.#bytes[this.#advance(1)] ?? 0;
      const bits = byte & 0x7f;
      if (shift < 32) low |= bits << shift;
      if (shift === 28) high |= bits >>> 4;
      if (shift > 28) high |= bits << (shift - 32);
      if (byte < 0x80) break;
    }
    this.#low = low >>> 0;
    this.#high = high >>> 0;
  }
}
