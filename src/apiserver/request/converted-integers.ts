import type { JsonSchema } from '../../api/json-schema.ts';
import { fieldSchema } from '../../api/json-schema.ts';
import { isRecord } from '../../util/values.ts';

const BITS: ReadonlyMap<string | undefined, number> = new Map([
  ['int32', 32],
  ['int64', 64],
]);

/** Numbers from here on are not exact integers in Go's int64. */
const INT64_END = 2 ** 63;

/**
 * As Go's converter from maps, by which strategic merge patches and applies become objects of built-in kinds: of an
 * integer that its field cannot hold, the lowest bits remain. The decoder of other bodies refuses such a number.
 *
 * @returns `value` itself if all its integers fit
 */
export function withConvertedIntegers(value: unknown, schema: JsonSchema): unknown {
  if (typeof value === 'number') return convertedInteger(value, schema);
  if (Array.isArray(value)) {
    const { items } = schema;
    if (!items) return value;
    const converted = value.map((item: unknown) => withConvertedIntegers(item, items));
    return converted.every((item, index) => item === value[index]) ? value : converted;
  }
  if (!isRecord(value)) return value;
  let copy: Record<string, unknown> | undefined;
  for (const [name, member] of Object.entries(value)) {
    if (typeof member !== 'number' && typeof member !== 'object') continue;
    const known = fieldSchema(schema, name);
    const converted = known ? withConvertedIntegers(member, known) : member;
    if (converted === member) continue;
    copy ??= { ...value };
    copy[name] = converted;
  }
  return copy ?? value;
}

function convertedInteger(value: number, { type, format }: JsonSchema): number {
  const bits = BITS.get(format);
  if (type !== 'integer' || bits === undefined || !Number.isInteger(value)) return value;
  if (Math.abs(value) < 2 ** (bits - 1)) return value;
  // On the processors of most clusters, a larger number becomes the lowest int64.
  const whole = Math.abs(value) < INT64_END ? BigInt(value) : -(2n ** 63n);
  return Number(BigInt.asIntN(bits, whole));
}
