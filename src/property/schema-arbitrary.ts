import { goJson } from '../util/go-format.ts';
import { hasFormat } from '../api/formats.ts';
import type { JsonSchema } from '../api/json-schema.ts';
import { own } from '../util/json-value.ts';
import { validateString } from '../apiserver/schema/validate-scalar.ts';
import { isRecord } from '../util/values.ts';
import type { FastCheck, FastCheckArbitrary } from './fast-check.ts';

/** Options of `schemaArbitrary`. */
export interface SchemaArbitraryOptions {
  /** Arbitraries that replace those of the schema, by path: `spec.schedule`, `spec.ports[].name`, `spec.labels.*`. */
  readonly values: Readonly<Record<string, FastCheckArbitrary>>;
  /** Whether required fields can be missing. */
  readonly partial: boolean;
}

/** Lets a value shrink to one of the first arbitrary. */
const SHRINK = { withCrossShrink: true };
/** Items, fields and characters beyond the required number. */
const MORE = 4;
const MORE_CHARACTERS = 16;
/** Attempts to generate a text that fits its schema. */
const MAX_ATTEMPTS = 10_000;

/**
 * Returns an arbitrary of the values that a schema describes. It follows types, enumerations, bounds, patterns, formats,
 * keys of lists and required fields. Compositions (`anyOf`) and rules in CEL are left to the caller, who skips invalid values.
 *
 * @param path path of the value, as in `options.values`
 * @throws {RangeError} for a pattern without a counterpart in JavaScript; `values` has an entry for its path then
 */
export function schemaArbitrary(
  fc: FastCheck,
  schema: JsonSchema,
  path: string,
  options: SchemaArbitraryOptions,
): FastCheckArbitrary {
  const given = options.values[path];
  if (given) return given;
  const values = new SchemaValues(fc, options).of(schema, path);
  return schema.nullable ? fc.oneof(SHRINK, fc.constant(null), values, values) : values;
}

class SchemaValues {
  readonly #fc: FastCheck;
  readonly #options: SchemaArbitraryOptions;

  constructor(fc: FastCheck, options: SchemaArbitraryOptions) {
    this.#fc = fc;
    this.#options = options;
  }

  of(schema: JsonSchema, path: string): FastCheckArbitrary {
    const fc = this.#fc;
    const { enum: choices } = schema;
    if (choices && choices.length > 0) return fc.constantFrom(...choices);
    if (schema['x-kubernetes-int-or-string']) {
      return fc.oneof(SHRINK, this.#integer(schema), this.#text(schema, path));
    }
    switch (schema.type) {
      case 'boolean':
        return fc.boolean();
      case 'integer':
        return this.#integer(schema);
      case 'number':
        return fc.oneof(SHRINK, this.#integer(schema), this.#number(schema));
      case 'string':
        return this.#text(schema, path);
      case 'array':
        return this.#list(schema, path);
      case 'object':
        return this.#object(schema, path);
      default:
        return json(fc);
    }
  }

  #below(schema: JsonSchema, path: string): FastCheckArbitrary {
    return schemaArbitrary(this.#fc, schema, path, this.#options);
  }

  #integer(schema: JsonSchema): FastCheckArbitrary<number> {
    const { multipleOf: factor = 1, exclusiveMinimum, exclusiveMaximum } = schema;
    const limit = schema.format === 'int32' ? 2 ** 31 - 1 : Number.MAX_SAFE_INTEGER;
    const { minimum = -limit, maximum = limit } = schema;
    const min = Math.ceil(minimum / factor);
    const max = Math.floor(maximum / factor);
    return this.#fc
      .integer({
        min: exclusiveMinimum && min * factor === minimum ? min + 1 : min,
        max: exclusiveMaximum && max * factor === maximum ? max - 1 : max,
      })
      .map((value) => value * factor);
  }

  #number(schema: JsonSchema): FastCheckArbitrary<number> {
    const { multipleOf, exclusiveMinimum = false, exclusiveMaximum = false } = schema;
    if (multipleOf !== undefined) return this.#integer(schema);
    const { minimum = -1e9, maximum = Math.max(minimum, 1e9) } = schema;
    return (
      this.#fc
        .double({
          min: Math.min(minimum, maximum),
          max: maximum,
          minExcluded: exclusiveMinimum,
          maxExcluded: exclusiveMaximum,
          noNaN: true,
        })
        // JSON has no negative zero.
        .map((value) => (value === 0 ? 0 : value))
    );
  }

  #text(schema: JsonSchema, path: string): FastCheckArbitrary<string> {
    const fc = this.#fc;
    const { pattern, format, minLength = 0 } = schema;
    const most = minLength + MORE_CHARACTERS;
    const maxLength = Math.min(schema.maxLength ?? most, most);
    let texts: FastCheckArbitrary<string>;
    if (pattern !== undefined) texts = this.#matching(pattern, path);
    else texts = arbitraryOfFormat(fc, format) ?? fc.string({ minLength, maxLength });
    let attempts = 0;
    return texts.filter((text) => {
      if (validateString(text, { ...schema, type: 'string' }, path) === undefined) {
        attempts = 0;
        return true;
      }
      if (++attempts < MAX_ATTEMPTS) return false;
      throw new RangeError(
        `checkConversion: no text for the schema of ${path} was found: give an arbitrary in values`,
      );
    });
  }

  #matching(pattern: string, path: string): FastCheckArbitrary<string> {
    try {
      return this.#fc.stringMatching(new RegExp(pattern));
    } catch (error) {
      throw new RangeError(
        `checkConversion: the pattern of ${path} is not one of JavaScript: give an arbitrary in values`,
        { cause: error },
      );
    }
  }

  #list(schema: JsonSchema, path: string): FastCheckArbitrary {
    const { items = {}, minItems = 0 } = schema;
    const bounds = {
      minLength: minItems,
      maxLength: Math.min(schema.maxItems ?? Infinity, minItems + MORE),
    };
    const values = this.#below(items, `${path}[]`);
    const type = schema['x-kubernetes-list-type'];
    if (type === 'map') {
      const keys = schema['x-kubernetes-list-map-keys'] ?? [];
      const selector = (item: unknown) =>
        goJson(keys.map((key) => keyValue(item, key, items.properties?.[key])));
      // A key identifies the item, also in a partial object.
      const complete = values.filter(
        (item) =>
          isRecord(item) &&
          keys.every((key) => key in item || items.properties?.[key]?.default !== undefined),
      );
      return this.#fc.uniqueArray(complete, { ...bounds, selector });
    }
    if (type === 'set' || schema.uniqueItems) {
      return this.#fc.uniqueArray(values, { ...bounds, selector: goJson });
    }
    return this.#fc.array(values, bounds);
  }

  #object(schema: JsonSchema, path: string): FastCheckArbitrary {
    const fc = this.#fc;
    const { properties = {}, additionalProperties } = schema;
    const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true;
    const declared = this.#fields(schema, path);
    const isMap = typeof additionalProperties === 'object';
    if (!isMap && !isOpen && additionalProperties !== true) return declared;
    const { minProperties = 0, maxProperties = Infinity } = schema;
    const others = fc.dictionary(
      fc
        .stringMatching(/^[a-z][a-zA-Z0-9._-]{0,8}$/)
        .filter((name) => !Object.hasOwn(properties, name)),
      isMap ? this.#below(additionalProperties, path === '' ? '*' : `${path}.*`) : json(fc),
      {
        minKeys: isMap ? minProperties : 0,
        maxKeys: Math.min(maxProperties, (isMap ? minProperties : 0) + MORE),
        noNullPrototype: true,
      },
    );
    return fc.tuple(others, declared).map((parts) => Object.assign({}, ...parts) as unknown);
  }

  #fields(schema: JsonSchema, path: string): FastCheckArbitrary {
    const fc = this.#fc;
    const { properties = {}, required = [] } = schema;
    const isResource = schema['x-kubernetes-embedded-resource'] === true;
    const names = Object.keys(properties).filter(
      (name) => !isResource || !Object.hasOwn(RESOURCE, name),
    );
    const fields = Object.fromEntries(
      names.map((name) => [
        name,
        this.#below(properties[name] ?? {}, path === '' ? name : `${path}.${name}`),
      ]),
    );
    const requiredKeys = names.filter(
      (name) =>
        !this.#options.partial &&
        required.includes(name) &&
        properties[name]?.default === undefined,
    );
    const values = fc.record(fields, { requiredKeys, noNullPrototype: true });
    return isResource ? values.map((value) => ({ ...RESOURCE, ...value })) : values;
  }
}

const RESOURCE = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'embedded' } };

function keyValue(item: unknown, key: string, schema: JsonSchema | undefined): unknown {
  return (isRecord(item) ? own(item, key) : undefined) ?? schema?.default ?? null;
}

function json(fc: FastCheck): FastCheckArbitrary {
  // As in JSON text, which has no negative zero.
  return fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);
}

/** Last second of a year with four digits, in seconds since the Unix epoch. */
const LAST_SECOND = 253_402_300_799;

/** Returns texts of a format; undefined if any text may be in the format. */
function arbitraryOfFormat(
  fc: FastCheck,
  format: string | undefined,
): FastCheckArbitrary<string> | undefined {
  if (format === undefined) return undefined;
  const key = format.replaceAll('-', '');
  const seconds = fc.integer({ min: 0, max: LAST_SECOND });
  switch (key) {
    case 'datetime':
      return seconds.map((at) => new Date(1000 * at).toISOString().replace('.000', ''));
    case 'date':
      return seconds.map((at) => new Date(1000 * at).toISOString().slice(0, 10));
    case 'byte':
      return fc
        .string({ minLength: 1, maxLength: 8 })
        .map((text) => Buffer.from(text).toString('base64'));
    default: {
      const pattern = PATTERNS[key];
      if (pattern) return fc.stringMatching(pattern);
      return hasFormat(format, '\n') ? undefined : fc.constantFrom(...(SAMPLES[key] ?? ['']));
    }
  }
}

const HEX = '[0-9a-f]';
const OCTET = '(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const IPV4 = `${OCTET}(\\.${OCTET}){3}`;
const LABEL = '[a-z]([a-z0-9]{0,8}[a-z0-9])?';

/** Patterns of texts of a format, by its name without dashes. They need not cover the whole format. */
const PATTERNS: Readonly<Record<string, RegExp>> = {
  bsonobjectid: new RegExp(`^${HEX}{24}$`),
  cidr: new RegExp(`^${IPV4}/([1-2]?[0-9]|3[0-2])$`),
  duration: /^([1-9][0-9]{0,3}h)?([1-5]?[0-9]m)?([1-5]?[0-9]s)$/,
  email: new RegExp(`^${LABEL}@${LABEL}\\.(com|org)$`),
  hexcolor: new RegExp(`^#${HEX}{6}$`),
  hostname: new RegExp(`^${LABEL}(\\.${LABEL})?\\.(com|org)$`),
  ipv4: new RegExp(`^${IPV4}$`),
  ipv6: new RegExp(`^(${HEX}{1,4}:){7}${HEX}{1,4}$`),
  k8slongname: new RegExp(`^${LABEL}(\\.${LABEL})?$`),
  k8sshortname: new RegExp(`^${LABEL}$`),
  mac: new RegExp(`^(${HEX}{2}:){5}${HEX}{2}$`),
  ssn: /^[0-9]{3}-[0-9]{2}-[0-9]{4}$/,
  uri: new RegExp(`^https://${LABEL}\\.org(/${LABEL})?$`),
  uuid: new RegExp(`^${HEX}{8}-${HEX}{4}-${HEX}{4}-${HEX}{4}-${HEX}{12}$`),
  uuid3: new RegExp(`^${HEX}{8}-${HEX}{4}-3${HEX}{3}-8${HEX}{3}-${HEX}{12}$`),
  uuid4: new RegExp(`^${HEX}{8}-${HEX}{4}-4${HEX}{3}-8${HEX}{3}-${HEX}{12}$`),
  uuid5: new RegExp(`^${HEX}{8}-${HEX}{4}-5${HEX}{3}-8${HEX}{3}-${HEX}{12}$`),
};

/** Texts of formats with a checksum. */
const SAMPLES: Readonly<Record<string, readonly string[]>> = {
  creditcard: ['4111111111111111', '5500005555555559'],
  isbn: ['0306406152', '9780306406157'],
  isbn10: ['0306406152', '0198526636'],
  isbn13: ['9780306406157', '9783161484100'],
  rgbcolor: ['rgb(0,0,0)', 'rgb(12,34,56)'],
};
