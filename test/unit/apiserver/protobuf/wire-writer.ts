/**
 * An independent encoder of the protobuf wire format, which shares no code with the server.
 */

/** Encodes a field by its number and the JavaScript type of its value. */
export type Value = string | number | bigint | boolean | Uint8Array;

export function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  do {
    const bits = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest > 0n ? bits | 0x80 : bits);
  } while (rest > 0n);
  return Buffer.from(bytes);
}

export function tag(number: number, wireType: number): Buffer {
  return varint((BigInt(number) << 3n) | BigInt(wireType));
}

export function field(number: number, value: Value): Buffer {
  if (typeof value === 'string' || value instanceof Uint8Array) {
    const bytes = typeof value === 'string' ? Buffer.from(value) : value;
    return Buffer.concat([tag(number, 2), varint(BigInt(bytes.length)), bytes]);
  }
  return Buffer.concat([tag(number, 0), varint(BigInt(value))]);
}

export function double(number: number, value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return Buffer.concat([tag(number, 1), bytes]);
}

export function message(...fields: readonly Uint8Array[]): Buffer {
  return Buffer.concat(fields);
}

/** Encodes a body: prefix, envelope, message. */
export function body(apiVersion: string, kind: string, ...fields: readonly Uint8Array[]): Buffer {
  return message(
    Buffer.from('k8s\0'),
    field(1, message(field(1, apiVersion), field(2, kind))),
    field(2, message(...fields)),
    field(3, ''),
    field(4, ''),
  );
}
