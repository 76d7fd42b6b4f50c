import { EVENT_ID, SCALAR_STYLE, YAMLException, getScalarValue } from 'js-yaml';
import type { Event } from 'js-yaml';
import { copyJson } from './copy-json.ts';
import { MAX_DUPLICATES } from './go-json.ts';
import { goYamlBoolean, goYamlDocuments, goYamlEvents, hasAliases } from '../../util/go-yaml.ts';
import { MAX_DEPTH, requireDepth, requireShallow, WidthError } from '../../util/json-value.ts';

/** The content of a YAML text. */
export interface YamlText {
  /**
   * @throws {YAMLException} if a value is malformed
   * @throws {NestingError} if the text is nested more deeply than `MAX_DEPTH`
   * @throws {WidthError} if it has more than `maxValues` members and items
   */
  readonly documents: readonly unknown[];
  /** Duplicate keys, such as `line 7: key "a" already set in map`. */
  readonly duplicates: readonly string[];
}

/** Values that a node of a collection counts. */
const WEIGHTS: Readonly<Record<number, number>> = {
  [EVENT_ID.SEQUENCE]: 1,
  [EVENT_ID.MAPPING]: 0.5,
};

/**
 * Parses YAML like a kube-apiserver, with the booleans and octal numbers of YAML 1.1; the last of duplicate keys wins.
 * Takes time linear in the length. Rejects aliases that expand to many values, because a few lines can expand to gigabytes.
 *
 * The documents are made when they are first read, so that both halves of the work can be separate steps.
 *
 * @throws {YAMLException} if it is malformed, also by `documents`
 */
export function parseYaml(source: string, maxValues: number = Infinity): YamlText {
  // One more level, so that deep YAML gets the same error as deep JSON.
  const events = goYamlEvents(source, MAX_DEPTH + 1);
  let documents: readonly unknown[] | undefined;
  return {
    get documents() {
      documents ??= documentsOf(source, events, maxValues);
      return documents;
    },
    // Most callers need the documents only.
    get duplicates() {
      return duplicatesIn(source, events);
    },
  };
}

function documentsOf(source: string, events: Event[], maxValues: number): readonly unknown[] {
  // A node in a list is a value, and one in a mapping a key or a value.
  const weights: number[] = [];
  let values = 0;
  for (const event of events) {
    if (event.type === EVENT_ID.POP) {
      weights.pop();
      continue;
    }
    values += weights.at(-1) ?? 0;
    if (values > maxValues) throw new WidthError(maxValues);
    if (event.type === EVENT_ID.SCALAR) requireCharacters(source, event);
    else if (event.type !== EVENT_ID.ALIAS) {
      weights.push(WEIGHTS[event.type] ?? 0);
      requireDepth(weights.length - 1);
    }
  }
  try {
    const read = goYamlDocuments(source, events);
    if (!hasAliases(events)) return read;
    // Aliases nest what is not nested in the text.
    for (const document of read) requireShallow(document, maxValues);
    // The decoder changes objects in place.
    return copyJson(read);
  } catch (error) {
    throw error instanceof RangeError ? new WidthError(maxValues) : error;
  }
}

/** An escape of a backslash, or of a character by its number. */
const ESCAPES = /\\\\|\\(?:u([\da-fA-F]{4})|U([\da-fA-F]{8}))/g;

/** @throws {YAMLException} if an escape is half of a surrogate pair, or beyond Unicode */
function requireCharacters(
  source: string,
  { style, valueStart, valueEnd }: Extract<Event, { type: typeof EVENT_ID.SCALAR }>,
): void {
  if (style !== SCALAR_STYLE.DOUBLE_QUOTED) return;
  for (const { 1: short, 2: long, index } of source.slice(valueStart, valueEnd).matchAll(ESCAPES)) {
    const code = Number.parseInt(short ?? long ?? '0', 16);
    if ((code < 0xd800 || code > 0xdfff) && code <= 0x10ffff) continue;
    const why = 'found invalid Unicode character escape code';
    YAMLException.throwAt(source, valueStart + index, why);
  }
}

/** An open collection: a mapping has its keys so far. */
interface Frame {
  readonly keys?: Set<string>;
  /** Whether the next node of the mapping is a key. */
  atKey: boolean;
}

/** Returns the duplicate keys of the mappings. A node in a mapping is a key or a value in turn. */
function duplicatesIn(source: string, events: readonly Event[]): string[] {
  const duplicates: string[] = [];
  const frames: Frame[] = [];
  let line = 1;
  let lineAt = 0;
  for (const event of events) {
    if (event.type === EVENT_ID.POP) {
      frames.pop();
      continue;
    }
    const frame = frames.at(-1);
    if (frame?.keys && frame.atKey && event.type === EVENT_ID.SCALAR) {
      const text = getScalarValue(source, event);
      const boolean = event.style === SCALAR_STYLE.PLAIN ? goYamlBoolean(text) : undefined;
      const key = boolean === undefined ? JSON.stringify(text) : String(boolean);
      if (frame.keys.has(key) && duplicates.length < MAX_DUPLICATES) {
        line += source.slice(lineAt, event.valueStart).split('\n').length - 1;
        lineAt = event.valueStart;
        duplicates.push(`line ${line}: key ${key} already set in map`);
      }
      frame.keys.add(key);
    }
    if (frame) frame.atKey = !frame.atKey;
    if (event.type === EVENT_ID.MAPPING) frames.push({ keys: new Set(), atKey: true });
    else if (event.type !== EVENT_ID.SCALAR && event.type !== EVENT_ID.ALIAS) {
      frames.push({ atKey: false });
    }
  }
  return duplicates;
}
