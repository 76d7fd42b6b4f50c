import { NOT_A_QUANTITY, canonicalQuantity, quantityProblem } from '../../api/quantity.ts';
import { isRecord } from '../../util/values.ts';
import type { Moment, TimeLayout } from '../../api/go-time.ts';
import { formatGoTime, parseGoTime } from '../../api/go-time.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { WireError } from './wire-reader.ts';

/** The JSON of a Go type that is not an object of its fields. */
interface CustomJson {
  /** Maps the fields on the wire to the JSON. */
  readonly toJson: (fields: Readonly<JsonObject>) => unknown;
  readonly toMembers: (value: unknown) => JsonObject;
}

const QUANTITY: CustomJson = {
  toJson: ({ string = '0' }) => {
    const canonical = canonicalQuantity(customText(string));
    if (canonical === undefined)
      throw new WireError(quantityProblem(customText(string)) ?? NOT_A_QUANTITY);
    return canonical;
  },
  toMembers: (value) => ({
    string: typeof value === 'number' ? String(value) : customText(value) || '0',
  }),
};

const INT_OR_STRING: CustomJson = {
  toJson: ({ type = 0, intVal = 0, strVal = '' }) => {
    if (type === 0) return intVal;
    if (type === 1) return strVal;
    throw new WireError('impossible IntOrString.Type');
  },
  toMembers: (value) =>
    typeof value === 'string'
      ? { type: 1, intVal: 0, strVal: value }
      : { type: 0, intVal: numberOf(value), strVal: '' },
};

const SCHEMA_OR_BOOL: CustomJson = {
  toJson: ({ schema, allows }) => schema ?? allows === true,
  toMembers: (value) =>
    isRecord(value) ? { allows: true, schema: value } : { allows: value === true },
};

/** A type with a list as its JSON. */
const LIST: CustomJson = {
  toJson: ({ items }) => items ?? [],
  toMembers: (value) => ({ items: value }),
};

/** A type with any JSON in a field. */
function raw(field: string): CustomJson {
  return {
    toJson: (fields) => fields[field] ?? null,
    toMembers: (value) => ({ [field]: value }),
  };
}

/** A type with a schema, or a list in another field. */
function schemaOr(field: string): CustomJson {
  return {
    toJson: (fields) => fields[field] ?? fields['schema'] ?? null,
    toMembers: (value) => (Array.isArray(value) ? { [field]: value } : { schema: value }),
  };
}

const MICROS = 1_000_000;

/** `2006-01-02T15:04:05Z`; null for Go's zero time. The fraction is dropped. */
function timeJson({ seconds }: Readonly<JsonObject>): string | null {
  if (seconds === undefined) return null;
  return timeText({ seconds: numberOf(seconds), nanos: 0 }, 'seconds');
}

/** `2006-01-02T15:04:05.000000Z` */
function microTimeJson({ seconds, nanos }: Readonly<JsonObject>): string | null {
  if (seconds === undefined && nanos === undefined) return null;
  const micros = Math.trunc(numberOf(nanos) / 1000);
  const carry = Math.floor(micros / MICROS);
  const whole = numberOf(seconds) + carry;
  return timeText({ seconds: whole, nanos: (micros - carry * MICROS) * 1000 }, 'micros');
}

function timeText(moment: Moment, layout: TimeLayout): string | null {
  const text = formatGoTime(moment, layout);
  if (text === undefined) throw new WireError('Time.MarshalJSON: year outside of range [0,9999]');
  return text;
}

/** Seconds since the Unix epoch and nanoseconds, which Go truncates to microseconds; none for the zero time. */
function timeMembers(value: unknown): JsonObject {
  const moment = typeof value === 'string' ? parseGoTime(value, 'seconds') : '';
  if (typeof moment === 'string') return {};
  return { seconds: moment.seconds, nanos: moment.nanos - (moment.nanos % 1000) };
}

export function customText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

/** The types with a JSON encoding of their own, by message name. */
export const CUSTOM_JSON: ReadonlyMap<string, CustomJson> = new Map([
  ['resource.Quantity', QUANTITY],
  ['intstr.IntOrString', INT_OR_STRING],
  ['meta.v1.Time', { toJson: timeJson, toMembers: timeMembers }],
  ['meta.v1.MicroTime', { toJson: microTimeJson, toMembers: timeMembers }],
  ['meta.v1.FieldsV1', raw('Raw')],
  ['meta.v1.Verbs', LIST],
  ['apiextensions.v1.JSON', raw('raw')],
  ['apiextensions.v1.JSONSchemaPropsOrArray', schemaOr('jSONSchemas')],
  ['apiextensions.v1.JSONSchemaPropsOrBool', SCHEMA_OR_BOOL],
  ['apiextensions.v1.JSONSchemaPropsOrStringArray', schemaOr('property')],
  ['authentication.v1.AttestationValue', LIST],
  ['authentication.v1.ExtraValue', LIST],
  ['authorization.v1.ExtraValue', LIST],
  ['certificates.v1.ExtraValue', LIST],
  ['runtime.RawExtension', raw('raw')],
]);
