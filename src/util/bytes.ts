/**
 * Conversions between texts and bytes for code that also runs without Node.js. They have the semantics of Node's `Buffer`:
 * invalid UTF-8 becomes replacement characters, and base64 is read leniently.
 */

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const BASE64URL = `${BASE64.slice(0, 62)}-_`;

/** The value of each character of both alphabets; 64 for all others. */
const DIGITS = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  const digit = BASE64.indexOf(character);
  if (digit >= 0) return digit;
  return BASE64URL.includes(character) ? BASE64URL.indexOf(character) : 64;
});

/** Returns the length of a text in UTF-8, in bytes. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < 0x80) continue;
    // Each half of a surrogate pair counts two of its four bytes; a half alone is a replacement character of three.
    bytes += code < 0x800 || isInPair(text, index, code) ? 1 : 2;
  }
  return bytes;
}

function isInPair(text: string, index: number, code: number): boolean {
  if (code < 0xd800 || code > 0xdfff) return false;
  const isFirst = code < 0xdc00;
  const other = text.charCodeAt(isFirst ? index + 1 : index - 1);
  return isFirst ? other >= 0xdc00 && other <= 0xdfff : other >= 0xd800 && other < 0xdc00;
}

export function utf8Bytes(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

export function utf8Text(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** Returns the text with one character for each byte. */
export function latin1Text(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

export function toHex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += byte < 16 ? `0${byte.toString(16)}` : byte.toString(16);
  return text;
}

/** Encodes bytes, or a text in UTF-8. */
export function toBase64(content: Uint8Array | string): string {
  const text = encode(content, BASE64);
  return text.padEnd(Math.ceil(text.length / 4) * 4, '=');
}

/** Encodes bytes, or a text in UTF-8, with the alphabet for URLs and without padding. */
export function toBase64Url(content: Uint8Array | string): string {
  return encode(content, BASE64URL);
}

function encode(content: Uint8Array | string, alphabet: string): string {
  const bytes = typeof content === 'string' ? utf8Bytes(content) : content;
  let text = '';
  for (let index = 0; index < bytes.length; index += 3) {
    const rest = bytes.length - index;
    const [a = 0, b = 0, c = 0] = [bytes[index], bytes[index + 1], bytes[index + 2]];
    text += alphabet.charAt(a >> 2) + alphabet.charAt(((a & 3) << 4) | (b >> 4));
    if (rest > 1) text += alphabet.charAt(((b & 15) << 2) | (c >> 6));
    if (rest > 2) text += alphabet.charAt(c & 63);
  }
  return text;
}

/** Decodes base64 of both alphabets up to the first padding. Skips other characters. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(Math.ceil((text.length * 3) / 4));
  let length = 0;
  let bits = 0;
  let value = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0x3d) break;
    const digit = DIGITS[code] ?? 64;
    if (digit === 64) continue;
    value = ((value << 6) | digit) & 0xfff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes[length++] = value >> bits;
  }
  return bytes.subarray(0, length);
}

/** Decodes base64 with UTF-8 in it. */
export function textFromBase64(text: string): string {
  return utf8Text(fromBase64(text));
}

export function concatBytes(
  parts: readonly Uint8Array[],
  length: number = parts.reduce((sum, part) => sum + part.byteLength, 0),
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return bytes;
}

/** Compares bytes in order, as numbers. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.byteLength, b.byteLength);
  for (let index = 0; index < length; index++) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0);
    if (difference !== 0) return Math.sign(difference);
  }
  return Math.sign(a.byteLength - b.byteLength);
}
