/**
 * Encoders for the ASN.1 types of certificates, in DER (X.690). Each function returns one complete
 * element: tag, length, content.
 */

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

export function derSequence(...members: readonly Uint8Array[]): Buffer {
  return element(TAG.sequence, Buffer.concat(members));
}

/** Encodes a SET OF with one member. More members would have to be sorted. */
export function derSetOfOne(member: Uint8Array): Buffer {
  return element(TAG.set, member);
}

/** Encodes a member with the explicit context tag `[number]`. */
export function derExplicit(number: number, member: Uint8Array): Buffer {
  return element(0xa0 | number, member);
}

/** Encodes content with the implicit, primitive context tag `[number]`. */
export function derImplicit(number: number, content: Uint8Array): Buffer {
  return element(0x80 | number, content);
}

export function derBoolean(value: boolean): Buffer {
  return element(TAG.boolean, Buffer.of(value ? 0xff : 0));
}

/** Encodes the non-negative integer with the big-endian bytes `magnitude`. */
export function derInteger(magnitude: Uint8Array): Buffer {
  const first = magnitude.findIndex((byte) => byte !== 0);
  const digits = first === -1 ? Buffer.of(0) : magnitude.subarray(first);
  const signed = (digits[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.of(0), digits]) : digits;
  return element(TAG.integer, signed);
}

/** @param unusedBits number of low bits of the last byte that are not part of the value */
export function derBitString(bytes: Uint8Array, unusedBits: number = 0): Buffer {
  return element(TAG.bitString, Buffer.concat([Buffer.of(unusedBits), bytes]));
}

export function derOctetString(bytes: Uint8Array): Buffer {
  return element(TAG.octetString, bytes);
}

export function derUtf8String(text: string): Buffer {
  return element(TAG.utf8String, Buffer.from(text, 'utf8'));
}

/** @param dotted the identifier in dot notation: `2.5.29.17` */
export function derObjectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return element(
    TAG.objectIdentifier,
    Buffer.from([40 * first + second, ...rest].flatMap(base128)),
  );
}

/** Encodes a UTC time in whole seconds as UTCTime or GeneralizedTime, depending on the year (RFC 5280). */
export function derTime(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  const year = Number(digits.slice(0, 4));
  return year >= 1950 && year < 2050
    ? element(TAG.utcTime, Buffer.from(digits.slice(2), 'ascii'))
    : element(TAG.generalizedTime, Buffer.from(digits, 'ascii'));
}

/** Splits a number into groups of 7 bits, most significant first. The high bit marks all but the last. */
function base128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) {
    bytes.unshift((rest & 0x7f) | 0x80);
  }
  return bytes;
}

function element(tag: number, content: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(tag), lengthOf(content), content]);
}

function lengthOf(content: Uint8Array): Buffer {
  const { length } = content;
  if (length < 0x80) return Buffer.of(length);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest & 0xff);
  return Buffer.of(0x80 | bytes.length, ...bytes);
}

/** A decoded element. */
export interface DerElement {
  readonly tag: number;
  readonly content: Buffer;
  /** The element with its tag and length. */
  readonly whole: Buffer;
}

/**
 * Decodes the elements of a constructed element, or of a document. The encoding of a value in DER is unique, so that
 * parsers cannot differ: other encodings of BER are refused.
 *
 * @throws {TypeError} if the bytes are not complete elements in DER
 */
export function derElements(bytes: Uint8Array): readonly DerElement[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const elements: DerElement[] = [];
  for (let at = 0; at < buffer.length;) {
    const tag = buffer[at] ?? 0;
    // Tags of more than one byte do not occur.
    if ((tag & 0x1f) === 0x1f) throw malformed();
    const first = buffer[at + 1] ?? 0;
    const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
    const start = at + 2 + lengthBytes;
    // Lengths of more than 4 bytes do not occur.
    if (lengthBytes > 4 || first === 0x80 || start > buffer.length) throw malformed();
    const length = lengthBytes === 0 ? first : buffer.readUIntBE(at + 2, lengthBytes);
    const isMinimal = lengthBytes === 0 || (length >= 0x80 && length >= 256 ** (lengthBytes - 1));
    const end = start + length;
    if (!isMinimal || end > buffer.length) throw malformed();
    const content = buffer.subarray(start, end);
    if (tag === TAG.objectIdentifier && !isIdentifier(content)) throw malformed();
    elements.push({ tag, content, whole: buffer.subarray(at, end) });
    at = end;
  }
  return elements;
}

/**
 * Returns the only element of a document or of a constructed element.
 *
 * @throws {TypeError} if there is another number of elements
 */
export function derElement(bytes: Uint8Array): DerElement {
  const [element, ...others] = derElements(bytes);
  if (!element || others.length > 0) throw malformed();
  return element;
}

/**
 * Returns the members of a SEQUENCE.
 *
 * @throws {TypeError} if the element is absent or has another type
 */
export function derMembers(element: DerElement | undefined): readonly DerElement[] {
  return membersOf(element, TAG.sequence);
}

/**
 * Returns the members of a SET.
 *
 * @throws {TypeError} if the element is absent or has another type
 */
export function derSetMembers(element: DerElement | undefined): readonly DerElement[] {
  return membersOf(element, TAG.set);
}

/**
 * Returns the text of a UTF8String or a PrintableString. Parsers read the other string types of X.509 differently.
 *
 * @throws {TypeError} if the element is absent or has another type
 */
export function derText(element: DerElement | undefined): string {
  const text = element?.content.toString() ?? '';
  const isValid =
    (element?.tag === TAG.utf8String && Buffer.from(text).equals(element.content)) ||
    (element?.tag === TAG.printableString &&
      /^[\w '()+,\-./:=?*&]*$/.test(text) &&
      !text.includes('_'));
  if (!isValid)
    throw new TypeError('asn1: structure error: expected a UTF8String or a PrintableString');
  return text;
}

/**
 * Returns the encoded object identifier.
 *
 * @throws {TypeError} if the element is absent or has another type
 */
export function derIdentifier(element: DerElement | undefined): Buffer {
  if (element?.tag !== TAG.objectIdentifier) throw malformed();
  return element.whole;
}

/** Whether the content of an object identifier is complete and no number in it starts with zeros. */
function isIdentifier(content: Buffer): boolean {
  const isLast = (byte: number | undefined) => byte !== undefined && byte < 0x80;
  return (
    isLast(content.at(-1)) &&
    content.every((byte, index) => byte !== 0x80 || (index > 0 && !isLast(content[index - 1])))
  );
}

function membersOf(element: DerElement | undefined, tag: number): readonly DerElement[] {
  if (element?.tag !== tag) throw malformed();
  return derElements(element.content);
}

function malformed(): TypeError {
  return new TypeError('asn1: structure error: malformed element');
}
