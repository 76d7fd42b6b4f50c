import type { JsonSchema } from '../../api/json-schema.ts';
import { fieldSchema } from '../../api/json-schema.ts';
import { CopyOnWrite, mapItems } from '../../util/json-value.ts';
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
    return items ? mapItems(value, (item) => withConvertedIntegers(item, items)) : value;
  }
  if (!isRecord(value)) return value;
  const draft = new CopyOnWrite(value);
  for (const [name, member] of Object.entries(value)) {
    const field = fieldSchema(schema, name);
    if (field) draft.set(name, withConvertedIntegers(member, field));
  }
  return draft.value;
}

function convertedInteger(value: number, { type, format }: JsonSchema): number {
  const bits = BITS.get(format);
  if (type !== 'integer' || bits === undefined || !Number.isInteger(value)) return value;
  if (Math.abs(value) < 2 ** (bits - 1)) return value;
  // On the processors of most clusters, a larger number becomes the lowest int64.
  const whole = Math.abs(value) < INT64_END ? BigInt(value) : -(2n ** 63n);
  return Number(BigInt.asIntN(bits, whole));
}
