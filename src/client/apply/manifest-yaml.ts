import { isNode, isScalar, LineCounter, parseAllDocuments, visit } from 'yaml';
import type { Document, ParseOptions, DocumentOptions, SchemaOptions, YAMLError } from 'yaml';

/** One YAML document of a file, or its syntax error. */
export type ManifestDocument =
  | {
      readonly kind: 'parsed';
      /** From 1. */
      readonly number: number;
      /** Line at which the content starts, from 1. */
      readonly line: number;
      /** Integers are bigint. */
      readonly value: unknown;
      /** Returns the line at which the value at `path` starts. */
      lineAt(path: readonly (string | number)[]): number | undefined;
    }
  | {
      readonly kind: 'malformed';
      readonly number: number;
      readonly line: number;
      readonly column: number;
      readonly message: string;
    };

/** Maximum number of alias copies, since aliases can contain aliases and grow exponentially. */
const MAX_ALIASES = 100;

const OPTIONS: ParseOptions & DocumentOptions & SchemaOptions = {
  // Kubernetes tools read YAML 1.1. Types that JSON does not have are left out.
  version: '1.1',
  customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || isJson(tag)),
  // Read `on:` and `8080:` as strings.
  stringKeys: true,
  intAsBigInt: true,
  // The library's check is quadratic; `duplicateKey` is linear.
  uniqueKeys: false,
  // The library's messages would quote the line, which can be part of a Secret.
  prettyErrors: false,
};

/**
 * Parses the documents of a text and skips empty ones. A text that starts with `{` can also consist of several
 * JSON objects.
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
    return { kind: 'malformed', number, ...place(error.pos[0]), message: describeYamlError(error) };
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
    // The library throws a ReferenceError for aliases, and V8 a RangeError if the stack overflows.
    if (!(thrown instanceof ReferenceError || thrown instanceof RangeError)) throw thrown;
    return { kind: 'malformed', number, ...place(start), message: describeThrown(thrown) };
  }
}

/** Returns the offset of the first duplicate key. */
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

const DUPLICATE_KEY = 'invalid YAML: this key occurs twice in the mapping';

/** Descriptions of errors. They do not quote the text, which can be part of a Secret. */
const DESCRIPTIONS: Readonly<Partial<Record<YAMLError['code'], string>>> = {
  BAD_ALIAS: 'an alias (*) is malformed',
  BAD_COLLECTION_TYPE: 'a tag (!) does not match the type of its value',
  BAD_DIRECTIVE: 'a directive (%) is malformed or unknown',
  BAD_DQ_ESCAPE: 'a string in double quotes contains an unknown escape (\\)',
  BAD_PROP_ORDER: 'an anchor (&) or tag (!) must follow the indicator that it belongs to',
  BAD_SCALAR_START: 'a value starts with a character that must be quoted',
  BLOCK_AS_IMPLICIT_KEY:
    'a mapping cannot start here; quote a value that contains ": ", or start the mapping on a new line',
  RESOURCE_EXHAUSTION: 'it is nested too deeply',
  TAB_AS_INDENT: 'this line is indented with a tab; use spaces',
  TAG_RESOLVE_FAILED: 'a tag (!) is unknown, or JSON has no such type',
  UNEXPECTED_TOKEN: 'unexpected text; check the indentation and the quotes before it',
};

/** Codes of errors whose library messages do not quote the text. */
const SAFE_MESSAGES = new Set<YAMLError['code']>([
  'BAD_INDENT',
  'BLOCK_IN_FLOW',
  'KEY_OVER_1024_CHARS',
  'MISSING_CHAR',
  'MULTILINE_IMPLICIT_KEY',
  'MULTIPLE_ANCHORS',
  'MULTIPLE_TAGS',
]);

function describeYamlError({ code, message }: YAMLError): string {
  const description = DESCRIPTIONS[code] ?? (SAFE_MESSAGES.has(code) ? message : undefined);
  return `invalid YAML: ${description ?? 'it is malformed here'}`;
}

function describeThrown({ name, message }: Error): string {
  if (name === 'RangeError') return 'invalid YAML: it is nested too deeply';
  return message.startsWith('Unresolved alias')
    ? 'invalid YAML: an alias (*) has no anchor (&) before it'
    : `invalid YAML: aliases (*) expand to more than ${MAX_ALIASES} copies of an anchor (&)`;
}

function isJson(tag: { readonly tag: string; readonly format?: string }): boolean {
  return tag.format !== 'TIME' && !/:(?:timestamp|binary|omap|pairs|set)$/.test(tag.tag);
}

/** A JSON object within a text. */
interface JsonPiece {
  readonly text: string;
  /** Line at which it starts, from 1. */
  readonly line: number;
}

/**
 * Splits a text into consecutive JSON objects, as `jq` prints them. Returns undefined for any other text,
 * including a single object. It examines braces and quotes only; the pieces are parsed later.
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
