/** Generates values of fields from the schemas of built-in kinds: valid ones, limits, and values of other types. */
import { MICRO_TIME, QUANTITY, TIME } from '../../src/api/formats.ts';
import type { JsonSchema } from '../../src/api/json-schema.ts';
import type { Choices } from './choices.ts';
import type { Json } from './requests.ts';
import { changedText } from './texts.ts';

/** A field of an object by its path, in which an item of a list has an index, and a value for it. */
export type Change = readonly [path: readonly string[], value: Json];

const TEXTS: readonly string[] = [
  'a',
  'b-c',
  'x.example.com',
  'example.com/x',
  'A',
  'a_b',
  '/p',
  '/p/../q',
  'a/b/c',
  '80',
  '10.0.0.1',
  '::1',
  'http',
  'https://x.example.com/p?q',
  '*',
  'true',
  '50%',
  'self.a > 1',
];
const TEXT_LIMITS: readonly string[] = [
  '',
  ' ',
  '-',
  '.',
  'é',
  'a\nb',
  '\u0000',
  'x'.repeat(64),
  'x'.repeat(254),
  '$(a)',
  '010.0.0.1',
];
const TIMES: readonly Json[] = [
  '2020-01-01T00:00:00Z',
  '2020-01-01T09:00:00.123456+09:00',
  '0001-01-01T00:00:00Z',
];
const TIME_LIMITS: readonly Json[] = [
  null,
  '',
  '2020-01-01t00:00:00z',
  '2020-02-30T00:00:00Z',
  '2020-01-01T00:00:00.000000Z',
  '2020-01-01',
];
const QUANTITIES: readonly Json[] = ['1', '1Gi', '500m', '0', 2, 0.5];
const QUANTITY_LIMITS: readonly Json[] = [
  '-1',
  '1e3',
  '0.0001',
  '1e400',
  '1K',
  '',
  '5.',
  ' 1',
  null,
];
const INTEGERS: readonly number[] = [0, 1, 2, 5, 80];
const INTEGER_LIMITS: readonly Json[] = [
  -1,
  100,
  65_536,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 53,
  1e19,
];
/** Values that have the type of few fields. */
const OTHERS: readonly Json[] = [
  null,
  {},
  [],
  '',
  'x',
  '1',
  0,
  1,
  1.5,
  true,
  false,
  [null],
  ['x'],
  [{}],
  { a: 'x' },
  { a: null },
];

/** Levels of a generated value. */
const DEPTH = 5;

export class SchemaValues {
  readonly #choices: Choices;

  constructor(choices: Choices) {
    this.#choices = choices;
  }

  /** Returns a change of a field of `object`; more than half of the fields are near those that it has. */
  change(schema: JsonSchema, object: Json): Change {
    const path: string[] = [];
    let node = schema;
    let current = object;
    for (;;) {
      const members = membersOf(node);
      if (members.length === 0 || (path.length > 1 && this.#choices.chance(0.2))) break;
      const known = members.filter(([name]) => current?.[name] !== undefined);
      const [name, member] = this.#choices.one(
        known.length > 0 && this.#choices.chance(0.6) ? known : members,
      );
      path.push(name);
      node = member;
      current = current?.[name];
    }
    return [path, this.#value(node, DEPTH)];
  }

  #value(schema: JsonSchema, depth: number): Json {
    const roll = this.#choices.number();
    const valid = this.#valid(schema, depth);
    if (roll < 0.1 && typeof valid === 'string') return changedText(valid, this.#choices);
    if (roll < 0.65) return valid;
    return roll < 0.85 ? this.#limit(schema, depth) : structuredClone(this.#choices.one(OTHERS));
  }

  #valid(schema: JsonSchema, depth: number): Json {
    if (schema.enum) return this.#choices.one(schema.enum);
    if (isQuantity(schema)) return this.#choices.one(QUANTITIES);
    if (schema.format === 'int-or-string') return this.#choices.one<Json>([80, 'http', '50%', 0]);
    switch (schema.type) {
      case 'string':
        if (isTime(schema)) return this.#choices.one(TIMES);
        return schema.format === 'byte' ? 'YQ==' : this.#choices.one(TEXTS);
      case 'integer':
      case 'number':
        return this.#choices.one(INTEGERS);
      case 'boolean':
        return this.#choices.chance(0.5);
      case 'array': {
        const { items = {} } = schema;
        const count = depth > 0 ? 1 + this.#choices.below(2) : 0;
        return Array.from({ length: count }, () => this.#valid(items, depth - 1));
      }
      case 'object':
        return this.#object(schema, depth);
      case undefined:
      default:
        return { a: 1 };
    }
  }

  /** Returns an object with the required members, and some others. */
  #object(schema: JsonSchema, depth: number): Json {
    const { required = [], properties } = schema;
    const chance = depth > 0 ? 0.2 : 0;
    const wanted = membersOf(schema).filter(
      ([name]) => required.includes(name) || this.#choices.chance(properties ? chance : 0.6),
    );
    return Object.fromEntries(
      wanted.map(([name, member]) => [
        name,
        this.#choices.chance(0.92)
          ? this.#valid(member, depth - 1)
          : this.#limit(member, depth - 1),
      ]),
    );
  }

  #limit(schema: JsonSchema, depth: number): Json {
    if (isQuantity(schema)) return this.#choices.one(QUANTITY_LIMITS);
    if (schema.format === 'int-or-string')
      return this.#choices.one<Json>([
        '',
        '101%',
        '-1%',
        -1,
        65_536,
        2 ** 31,
        'a_b',
        'x'.repeat(16),
      ]);
    switch (schema.type) {
      case 'string':
        if (isTime(schema)) return this.#choices.one(TIME_LIMITS);
        return this.#choices.one(schema.format === 'byte' ? ['', 'YQ', '!'] : TEXT_LIMITS);
      case 'integer':
      case 'number':
        return this.#choices.one(INTEGER_LIMITS);
      case 'array': {
        const item = this.#valid(schema.items ?? {}, depth - 1);
        return this.#choices.one<Json>([[], [null], [item, item], null]);
      }
      case 'object':
        return this.#choices.one<Json>([
          {},
          null,
          { unknown: 1 },
          { ...this.#object(schema, depth), unknown: 1 },
        ]);
      case 'boolean':
      case undefined:
      default:
        return null;
    }
  }
}

/** The members of an object, two keys of a map, or an item of a list; none of other values. */
function membersOf(schema: JsonSchema): (readonly [string, JsonSchema])[] {
  const { properties, additionalProperties, items } = schema;
  if (properties) return Object.entries(properties);
  if (typeof additionalProperties === 'object')
    return ['a', 'b/c'].map((name) => [name, additionalProperties]);
  return items ? [['0', items]] : [];
}

function isTime({ format }: JsonSchema): boolean {
  return format === TIME || format === MICRO_TIME;
}

function isQuantity({ oneOf = [] }: JsonSchema): boolean {
  return oneOf.some(({ format }) => format === QUANTITY);
}
