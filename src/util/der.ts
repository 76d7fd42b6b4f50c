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
