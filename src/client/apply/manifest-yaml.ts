import { isNode, isScalar, LineCounter, parseAllDocuments, visit } from 'yaml';
import type { Document, ParseOptions, DocumentOptions, SchemaOptions, YAMLError } from 'yaml';

/** One document of a file, as far as it is YAML. */
export type ManifestDocument =
  | {
      readonly kind: 'parsed';
      /** From 1. */
      readonly number: number;
      /** Where its content begins, from 1. */
      readonly line: number;
      /** Integers are bigint. */
      readonly value: unknown;
      /** Where what is at `path` begins. */
      lineAt(path: readonly (string | number)[]): number | undefined;
    }
  | {
      readonly kind: 'malformed';
      readonly number: number;
      readonly line: number;
      readonly column: number;
      readonly message: string;
    };

/** An alias stands for what may have aliases again: this bounds what comes of it. */
const MAX_ALIASES = 100;

const OPTIONS: ParseOptions & DocumentOptions & SchemaOptions = {
  // What Kubernetes' own tools read, save for types that JSON has not.
  version: '1.1',
  customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || isJson(tag)),
  // `on:` and `8080:` are keys like any other.
  stringKeys: true,
  intAsBigInt: true,
  // The library compares each key with all before it; `duplicateKey` is linear.
  uniqueKeys: false,
  // The library's messages would quote the line, which may be a Secret's.
  prettyErrors: false,
};

/**
 * The documents of a text that have content, in order. A text that begins with `{` may also be
 * several JSON objects one after another.
 */
export function parseDocuments(text: string): ManifestDocument[] {
  const pieces = splitJson(text) ?? [{ text, line: 1 }];
  const documents: ManifestDocument[] = [];
  for (const [first, piece] of pieces.entries()) {
    const lines = new LineCounter();
    const parsed = parseAllDocuments(piece.text, { ...OPTIONS, lineCounter: lines });
    const all = 'empty' in parsed ? [] : parsed;
    for (const [index, document] of all.entries()) {
      const place = (offset: number) => {
        const { line, col } = lines.linePos(offset);
        return { line: line + piece.line - 1, column: col };
      };
      const found = read(document, first + index + 1, place);
      if (found.kind === 'malformed' || !isEmpty(found.value)) documents.push(found);
    }
  }
  return documents;
}

type Place = (offset: number) => { readonly line: number; readonly column: number };

function read(document: Document.Parsed, number: number, place: Place): ManifestDocument {
  const [error] = [...document.errors, ...document.warnings];
  const start = document.contents?.range[0] ?? document.range[0];
  if (error) {
    return { kind: 'malformed', number, ...place(error.pos[0]), message: wordsFor(error) };
  }
  try {
    const duplicate = duplicateKey(document);
    if (duplicate !== undefined) {
      return { kind: 'malformed', number, ...place(duplicate), message: DUPLICATE_KEY };
    }
    return {
      kind: 'parsed',
      number,
      line: place(start).line,
      value: document.toJS({ maxAliasCount: MAX_ALIASES }),
      lineAt: (path) => {
        const node = document.getIn(path, true);
        return isNode(node) && node.range ? place(node.range[0]).line : undefined;
      },
    };
  } catch (thrown) {
    // So does the library tell of aliases, and V8 of a stack that is full.
    if (!(thrown instanceof ReferenceError || thrown instanceof RangeError)) throw thrown;
    return { kind: 'malformed', number, ...place(start), message: wordsForThrown(thrown) };
  }
}

/** Where the first key begins that its mapping has twice. */
function duplicateKey(document: Document.Parsed): number | undefined {
  let found: number | undefined;
  visit(document, {
    Map(_position, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value)) {
          found = key.range?.[0] ?? 0;
          return visit.BREAK;
        }
        seen.add(key.value);
      }
      return undefined;
    },
  });
  return found;
}

function isEmpty(value: unknown): boolean {
  return value === null || value === undefined;
}

const DUPLICATE_KEY = 'not YAML: the same key stands here a second time';

/** What is wrong, without any of the text: it may be a Secret's. */
const WORDS: Readonly<Partial<Record<YAMLError['code'], string>>> = {
  BAD_ALIAS: 'an alias (*) is malformed',
  BAD_COLLECTION_TYPE: 'a tag (!) does not fit what it stands before',
  BAD_DIRECTIVE: 'a directive (%) is malformed or unknown',
  BAD_DQ_ESCAPE: 'a text in double quotes has an escape (\\) that YAML does not know',
  BAD_PROP_ORDER: 'anchors (&) and tags (!) stand after the indicator they belong to',
  BAD_SCALAR_START: 'a value begins with a character that must be quoted',
  BLOCK_AS_IMPLICIT_KEY:
    'a mapping cannot begin here: a value with ": " in it must be quoted, one of several lines begins on its own',
  RESOURCE_EXHAUSTION: 'it is nested too deep',
  TAB_AS_INDENT: 'a tab indents this line; YAML is indented by spaces',
  TAG_RESOLVE_FAILED: 'a tag (!) is not known; JSON has no such type',
  UNEXPECTED_TOKEN:
    'this does not belong here; is the indentation right, or a quote missing before?',
};

/** Kinds of errors that the library describes in words of its own alone. */
const HARMLESS = new Set<YAMLError['code']>([
  'BAD_INDENT',
  'BLOCK_IN_FLOW',
  'KEY_OVER_1024_CHARS',
  'MISSING_CHAR',
  'MULTILINE_IMPLICIT_KEY',
  'MULTIPLE_ANCHORS',
  'MULTIPLE_TAGS',
]);

function wordsFor({ code, message }: YAMLError): string {
  const words = WORDS[code] ?? (HARMLESS.has(code) ? message : undefined);
  return `not YAML: ${words ?? 'this is malformed'}`;
}

function wordsForThrown({ name, message }: Error): string {
  if (name === 'RangeError') return 'not YAML: it is nested too deep';
  return message.startsWith('Unresolved alias')
    ? 'not YAML: an alias (*) has no anchor (&) before it'
    : `aliases (*) stand for too much: more than ${MAX_ALIASES} copies of an anchor (&) and what is in it`;
}

function isJson(tag: { readonly tag: string; readonly format?: string }): boolean {
  return tag.format !== 'TIME' && !/:(?:timestamp|binary|omap|pairs|set)$/.test(tag.tag);
}

/** A part of a text. */
interface JsonPiece {
  readonly text: string;
  /** Where it begins, from 1. */
  readonly line: number;
}

/**
 * The JSON objects that stand one after another in `text`, as `jq` prints them; undefined if it is
 * anything else, a single object included. Looks at braces and quotes only: whether the pieces are
 * JSON, their parser says.
 */
function splitJson(text: string): JsonPiece[] | undefined {
  const pieces: JsonPiece[] = [];
  let piece = { start: 0, line: 1 };
  let line = 1;
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (sign === '\n') line++;
    if (quoted) {
      if (sign === '\\') at++;
      else if (sign === '"') quoted = false;
    } else if (sign === '{') {
      if (depth++ === 0) piece = { start: at, line };
    } else if (depth === 0) {
      if (!isBlank(sign)) return undefined;
    } else if (sign === '"') {
      quoted = true;
    } else if (sign === '}' && --depth === 0) {
      pieces.push({ text: text.slice(piece.start, at + 1), line: piece.line });
    }
  }
  return depth === 0 && pieces.length > 1 ? pieces : undefined;
}

function isBlank(sign: string | undefined): boolean {
  return sign === ' ' || sign === '\n' || sign === '\r' || sign === '\t';
}
