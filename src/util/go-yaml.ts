import {
  CHOMPING_MODE,
  CORE_SCHEMA,
  EVENT_ID,
  NOT_RESOLVED,
  constructFromEvents,
  defineMappingTag,
  defineScalarTag,
  floatCoreTag,
  parseEvents,
} from 'js-yaml';
import type { Event, Schema } from 'js-yaml';
import { isRecord } from './values.ts';

/**
 * YAML as Go's parser reads it, which Kubernetes uses: it keeps the booleans and the octal numbers of YAML 1.1, and the
 * last of duplicate keys wins.
 */

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...['y', 'yes', 'on', 'true'].map((word): [string, boolean] => [word, true]),
  ...['n', 'no', 'off', 'false'].map((word): [string, boolean] => [word, false]),
]);

/** Returns the value of a word in lower case, in upper case, or with an upper-case initial. */
export function goYamlBoolean(text: string): boolean | undefined {
  return /^(?:[a-z]+|[A-Z]+|[A-Z][a-z]+)$/.test(text)
    ? BOOLEANS.get(text.toLowerCase())
    : undefined;
}

/** Returns the events of a text. A block scalar at the end of the text has no line feed that the text does not have. */
export function goYamlEvents(source: string, maxDepth: number): Event[] {
  const events = parseEvents(source, { maxDepth });
  if (source.endsWith('\n')) return events;
  for (const event of events) {
    if (event.type !== EVENT_ID.SCALAR || event.valueEnd < source.length) continue;
    if (event.chomping === CHOMPING_MODE.CLIP) event.chomping = CHOMPING_MODE.STRIP;
  }
  return events;
}

const GO_YAML: Schema = CORE_SCHEMA.withTags(
  defineScalarTag<boolean>('tag:yaml.org,2002:bool', {
    implicit: true,
    implicitFirstChars: 'yYnNoOtTfF'.split(''),
    resolve: (text) => goYamlBoolean(text) ?? NOT_RESOLVED,
    identify: (value) => typeof value === 'boolean',
  }),
  {
    ...floatCoreTag,
    resolve: (text, isExplicit, name) =>
      floatCoreTag.resolve(text.replaceAll('_', ''), isExplicit, name),
  },
  defineScalarTag<number>('tag:yaml.org,2002:int', {
    implicit: true,
    implicitFirstChars: '+-0123456789'.split(''),
    resolve: (text) => {
      const [, sign, digits = ''] =
        /^([-+]?)(0[xX][\da-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]+|0|[1-9][\d_]*)$/.exec(text) ?? [];
      if (digits === '') return NOT_RESOLVED;
      const value = Number(digits.replaceAll('_', '').replace(/^0(?=\d)/, '0o'));
      if (Number.isNaN(value)) return NOT_RESOLVED;
      return sign === '-' ? -value : value;
    },
    identify: (value) => Number.isInteger(value),
  }),
);

/** The key `<<`, unless it is quoted. */
const MERGE = Symbol('<<');

type Fields = Record<string, unknown>;

/** Also merges mappings as Go does: in the order of the keys, so that a merge replaces the keys before it. */
const WITH_MERGES: Schema = GO_YAML.withTags(
  defineScalarTag<symbol>('go-merge', {
    implicit: true,
    implicitFirstChars: ['<'],
    resolve: (text) => (text === '<<' ? MERGE : NOT_RESOLVED),
    identify: () => false,
  }),
  // Go ignores tags that it does not know.
  defineScalarTag<string>('!', {
    matchByTagPrefix: true,
    resolve: (text) => text,
    identify: () => false,
  }),
  defineMappingTag<Fields>('tag:yaml.org,2002:map', {
    create: () => ({}),
    addPair(fields, key, value) {
      if (key !== MERGE) return define(fields, String(key), value);
      // Of several mappings, the first has precedence.
      const sources = Array.isArray(value) ? (value as unknown[]).toReversed() : [value];
      for (const source of sources) {
        if (!isRecord(source)) return 'the value of a merge key << must be a map or a list of maps';
        for (const [name, each] of Object.entries(source)) define(fields, name, each);
      }
      return '';
    },
    has: () => false,
    keys: Object.keys,
    get: (fields, key) => fields[String(key)],
    identify: isRecord,
  }),
);

function define(fields: Fields, key: string, value: unknown): '' {
  Object.defineProperty(fields, key, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
  return '';
}

/**
 * Returns the first document, as Go's parser does: it does not read the others.
 *
 * @throws {YAMLException} if the document is malformed
 * @throws {RangeError} if an alias contains itself, or aliases expand to more than 100,000 values
 */
export function parseGoYaml(text: string): unknown {
  const source = firstDocument(text);
  const [document] = goYamlDocuments(source, goYamlEvents(source, 1000));
  return document;
}

/** Maximum number of aliases, and of the values to which they expand. */
const MAX_ALIASES = 100;
const MAX_VALUES = 100_000;

/**
 * Returns the documents of parsed YAML, in which aliases share a value.
 *
 * @throws {YAMLException} if a value is malformed
 * @throws {RangeError} if an alias contains itself, or aliases expand to more than 100,000 values
 */
export function goYamlDocuments(source: string, events: Event[]): readonly unknown[] {
  const options = { source, schema: WITH_MERGES, json: true, maxAliases: MAX_ALIASES };
  const documents = constructFromEvents(events, options);
  if (hasAliases(events)) requireSmall(documents);
  return documents;
}

export function hasAliases(events: readonly Event[]): boolean {
  return events.some(({ type }) => type === EVENT_ID.ALIAS);
}

/** A few lines of aliases of aliases expand to gigabytes. */
function requireSmall(document: unknown): void {
  const sizes = new Map<object, number>();
  const sizeOf = (value: unknown): number => {
    if (typeof value !== 'object' || value === null) return 1;
    const known = sizes.get(value);
    if (known !== undefined) return known;
    sizes.set(value, Infinity);
    const size = Object.values(value).reduce<number>((sum, each) => sum + sizeOf(each), 1);
    sizes.set(value, size);
    return size;
  };
  if (sizeOf(document) > MAX_VALUES) throw new RangeError('the aliases expand to too many values');
}

/** Returns the text before the second document, which can be malformed. */
function firstDocument(text: string): string {
  const start = /^\uFEFF?(?:(?:[ \t]*#.*|[ \t]*|%.*)\r?\n)*---(?=\s|$)/.exec(text)?.[0].length ?? 0;
  const end = /^(?:---|\.\.\.)(?=\s|$)/m.exec(text.slice(start));
  return end ? text.slice(0, start + end.index) : text;
}
