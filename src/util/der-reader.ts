import { compareBytes, utf8Bytes, utf8Text } from './bytes.ts';

/** Decoders for the ASN.1 types of certificates, in DER (X.690). */

const TAG = {
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  sequence: 0x30,
  set: 0x31,
} as const;

/** A decoded element. */
export interface DerElement {
  readonly tag: number;
  readonly content: Uint8Array;
  /** The element with its tag and length. */
  readonly whole: Uint8Array;
}

/**
 * Decodes the elements of a constructed element, or of a document. The encoding of a value in DER is unique, so that
 * parsers cannot differ: other encodings of BER are refused.
 *
 * @throws {TypeError} if the bytes are not complete elements in DER
 */
export function derElements(bytes: Uint8Array): readonly DerElement[] {
  const elements: DerElement[] = [];
  for (let at = 0; at < bytes.length;) {
    const tag = bytes[at] ?? 0;
    // Tags of more than one byte do not occur.
    if ((tag & 0x1f) === 0x1f) throw malformed();
    const first = bytes[at + 1] ?? 0;
    const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
    const start = at + 2 + lengthBytes;
    // Lengths of more than 4 bytes do not occur.
    if (lengthBytes > 4 || first === 0x80 || start > bytes.length) throw malformed();
    const length = lengthBytes === 0 ? first : numberOf(bytes.subarray(at + 2, start));
    const isMinimal = lengthBytes === 0 || (length >= 0x80 && length >= 256 ** (lengthBytes - 1));
    const end = start + length;
    if (!isMinimal || end > bytes.length) throw malformed();
    const content = bytes.subarray(start, end);
    if (tag === TAG.objectIdentifier && !isIdentifier(content)) throw malformed();
    elements.push({ tag, content, whole: bytes.subarray(at, end) });
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
  const text = utf8Text(element?.content ?? new Uint8Array());
  const isValid =
    (element?.tag === TAG.utf8String && compareBytes(utf8Bytes(text), element.content) === 0) ||
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
export function derIdentifier(element: DerElement | undefined): Uint8Array {
  if (element?.tag !== TAG.objectIdentifier) throw malformed();
  return element.whole;
}

/** Whether the content of an object identifier is complete and no number in it starts with zeros. */
function isIdentifier(content: Uint8Array): boolean {
  let previous = 0;
  for (let index = 0; index < content.length; index++) {
    const byte = content[index] ?? 0;
    if (byte === 0x80 && previous < 0x80) return false;
    previous = byte;
  }
  return content.length > 0 && previous < 0x80;
}

function numberOf(bytes: Uint8Array): number {
  return bytes.reduce((number, byte) => number * 256 + byte, 0);
}

function membersOf(element: DerElement | undefined, tag: number): readonly DerElement[] {
  if (element?.tag !== tag) throw malformed();
  return derElements(element.content);
}

function malformed(): TypeError {
  return new TypeError('asn1: structure error: malformed element');
}
