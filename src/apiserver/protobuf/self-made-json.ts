import { NOT_A_QUANTITY, canonicalQuantity } from '../builtin/quantity.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { WireError } from './wire-reader.ts';

/** Of 1 January of the year 1, which is Go's zero time, and of the year 10000. */
const ZERO_SECONDS = -62_135_596_800;
const END_SECONDS = 253_402_300_800;

const MICROS = 1_000_000;

/**
 * The Go types that write their JSON themselves, by message name: from the fields that were on the
 * wire to what stands in the JSON.
 */
export const SELF_MADE_JSON: ReadonlyMap<string, (fields: Readonly<JsonObject>) => unknown> =
  new Map<string, (fields: Readonly<JsonObject>) => unknown>([
    ['resource.Quantity', quantity],
    ['intstr.IntOrString', intOrString],
    ['meta.v1.Time', time],
    ['meta.v1.MicroTime', microTime],
    ['meta.v1.FieldsV1', ({ Raw }) => Raw ?? null],
    ['apiextensions.v1.JSON', ({ raw }) => raw ?? null],
    [
      'apiextensions.v1.JSONSchemaPropsOrArray',
      ({ schema, jSONSchemas }) => jSONSchemas ?? schema ?? null,
    ],
    ['apiextensions.v1.JSONSchemaPropsOrBool', ({ schema, allows }) => schema ?? allows === true],
    [
      'apiextensions.v1.JSONSchemaPropsOrStringArray',
      ({ schema, property }) => property ?? schema ?? null,
    ],
    ['authentication.v1.ExtraValue', ({ items }) => items ?? []],
    ['authorization.v1.ExtraValue', ({ items }) => items ?? []],
  ]);

/** In the one form that a quantity has, as Go writes it. */
function quantity({ string = '0' }: Readonly<JsonObject>): string {
  const canonical = typeof string === 'string' ? canonicalQuantity(string) : undefined;
  if (canonical === undefined) throw new WireError(NOT_A_QUANTITY);
  return canonical;
}

function intOrString({ type = 0, intVal = 0, strVal = '' }: Readonly<JsonObject>): unknown {
  if (type === 0) return intVal;
  if (type === 1) return strVal;
  throw new WireError('impossible IntOrString.Type');
}

/** `2006-01-02T15:04:05Z`; null for Go's zero time. The fraction is not looked at. */
function time({ seconds }: Readonly<JsonObject>): string | null {
  if (seconds === undefined) return null;
  const text = dateTime(numberOf(seconds));
  return text && `${text}Z`;
}

/** `2006-01-02T15:04:05.000000Z` */
function microTime({ seconds, nanos }: Readonly<JsonObject>): string | null {
  if (seconds === undefined && nanos === undefined) return null;
  const micros = Math.trunc(numberOf(nanos) / 1000);
  const carry = Math.floor(micros / MICROS);
  const text = dateTime(numberOf(seconds) + carry);
  return text && `${text}.${String(micros - carry * MICROS).padStart(6, '0')}Z`;
}

function dateTime(seconds: number): string | null {
  if (seconds === ZERO_SECONDS) return null;
  if (seconds < ZERO_SECONDS || seconds >= END_SECONDS) {
    throw new WireError('Time.MarshalJSON: year outside of range [0,9999]');
  }
  return new Date(seconds * 1000).toISOString().slice(0, -'.000Z'.length);
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
