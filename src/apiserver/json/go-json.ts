import { goQuote } from '../../util/go-quote.ts';
import { NumberText } from '../../util/number-text.ts';
import { utf8Bytes } from '../../util/bytes.ts';

/**
 * Reports errors like Go's `encoding/json`: the syntax error with its offset, and duplicate members of
 * objects. `JSON.parse` reports neither. It parses the text; this module produces error messages.
 */

/** An open container: a list, or an object with its keys so far. */
interface Frame {
  readonly isObject: boolean;
  /** Keys of an object with more than one. */
  keys?: Set<string>;
  /** Duplicate keys of the object. */
  duplicates?: Set<string>;
  /** Key or index of the current member. */
  key: string;
  index: number;
}

export interface JsonFindings {
  /** Syntax error; absent if the text is valid JSON. */
  readonly problem?: string;
  /** Duplicate and unknown fields in the order of the text: `duplicate field "spec.x"`. */
  readonly strictErrors: readonly string[];
}

/** Maximum number of reported duplicates, as in Go. */
export const MAX_DUPLICATES = 100;

/** @param unknown fields to look for: `unknown field "spec.x"` */
export function inspectJson(text: string, unknown: readonly string[] = []): JsonFindings {
  return new Inspection(text, unknown).run();
}

/** Returns Go's error for a kind without a type. */
export function notRegistered(kind: unknown, apiVersion: unknown): string {
  const [name, version] = [kind, apiVersion].map((each) => goQuote(textOrJson(each)));
  return `no kind ${name} is registered for version ${version} in scheme "pkg/runtime/scheme.go:111"`;
}

/** Returns a text, or another value as JSON. */
export function textOrJson(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Returns Go's name of the type of a JSON value. */
export function goTypeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (value instanceof NumberText) return 'number';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

class SyntaxProblem extends Error {}

/** One pass over a text, without recursion because clients control its depth. */
class Inspection {
  readonly #text: string;
  readonly #frames: Frame[] = [];
  readonly #strictErrors: string[] = [];
  readonly #unknown: Set<string>;
  #at = 0;

  constructor(text: string, unknown: readonly string[]) {
    this.#text = text;
    this.#unknown = new Set(unknown);
  }

  run(): JsonFindings {
    try {
      this.#document();
    } catch (error) {
      if (!(error instanceof SyntaxProblem)) throw error;
      return { problem: error.message, strictErrors: [] };
    }
    return { strictErrors: this.#strictErrors };
  }

  #document(): void {
    this.#value();
    for (let frame = this.#frames.at(-1); frame; frame = this.#frames.at(-1)) {
      this.#member(frame);
    }
    this.#space();
    if (this.#at < this.#text.length) throw this.#unexpected('after top-level value');
  }

  /** Continues after a value of `frame`, at its end or its next member. */
  #member(frame: Frame): void {
    this.#space();
    const isFirst = frame.index === 0;
    const end = frame.isObject ? '}' : ']';
    if (this.#peek() === end) {
      this.#at++;
      this.#frames.pop();
      return;
    }
    if (!isFirst) {
      if (this.#peek() !== ',') {
        throw this.#unexpected(
          frame.isObject ? 'after object key:value pair' : 'after array element',
        );
      }
      this.#at++;
    }
    if (frame.isObject) this.#key(frame);
    frame.index++;
    this.#value();
  }

  #key(frame: Frame): void {
    this.#space();
    if (this.#peek() !== '"') throw this.#unexpected('looking for beginning of object key string');
    const start = this.#at;
    this.#string();
    const text = this.#text.slice(start + 1, this.#at - 1);
    if (frame.index > 0) frame.keys ??= new Set([frame.key]);
    // Go reads half of a surrogate pair as U+FFFD.
    frame.key = text.includes('\\') ? (JSON.parse(`"${text}"`) as string).toWellFormed() : text;
    if (frame.keys?.has(frame.key)) this.#duplicate(frame);
    else {
      frame.keys?.add(frame.key);
      if (this.#unknown.size > 0) this.#lookFor(`unknown field ${goQuote(this.#path())}`);
    }
    this.#space();
    if (this.#peek() !== ':') throw this.#unexpected('after object key');
    this.#at++;
  }

  #lookFor(unknown: string): void {
    if (this.#unknown.delete(unknown)) this.#strictErrors.push(unknown);
  }

  /** Path of the current member: `spec`, `spec.tags[0]`. */
  #path(): string {
    let path = '';
    for (const [depth, { isObject, key, index }] of this.#frames.entries()) {
      if (!isObject) path += `[${index - 1}]`;
      else path += depth === 0 ? key : `.${key}`;
    }
    return path;
  }

  /** Records a duplicate. Builds its path, which may be long, only once for each key. */
  #duplicate(frame: Frame): void {
    frame.duplicates ??= new Set();
    if (frame.duplicates.has(frame.key) || this.#strictErrors.length >= MAX_DUPLICATES) return;
    frame.duplicates.add(frame.key);
    this.#strictErrors.push(`duplicate field ${goQuote(this.#path())}`);
  }

  #value(): void {
    this.#space();
    const character = this.#peek();
    switch (character) {
      case '{':
      case '[': {
        this.#at++;
        this.#frames.push({ isObject: character === '{', key: '', index: 0 });
        return;
      }
      case '"':
        return this.#string();
      case 't':
        return this.#literal('true');
      case 'f':
        return this.#literal('false');
      case 'n':
        return this.#literal('null');
      default:
        if (character !== '-' && !isDigit(character)) {
          throw this.#unexpected('looking for beginning of value');
        }
        this.#number();
    }
  }

  #string(): void {
    this.#at++;
    for (;;) {
      const character = this.#peek();
      if (character === '"') break;
      if (character !== '' && character < ' ') throw this.#unexpected('in string literal');
      if (character === '') throw this.#unexpected('');
      this.#at++;
      if (character === '\\') this.#escape();
    }
    this.#at++;
  }

  #escape(): void {
    const character = this.#peek();
    if (character === '' || !'bfnrtu"\\/'.includes(character)) {
      throw this.#unexpected('in string escape code');
    }
    this.#at++;
    if (character !== 'u') return;
    for (let digit = 0; digit < 4; digit++) {
      if (!/^[0-9a-fA-F]$/.test(this.#peek())) {
        throw this.#unexpected('in \\u hexadecimal character escape');
      }
      this.#at++;
    }
  }

  #literal(literal: string): void {
    for (const character of literal) {
      if (this.#peek() !== character) {
        throw this.#unexpected(`in literal ${literal} (expecting '${character}')`);
      }
      this.#at++;
    }
  }

  #number(): void {
    if (this.#peek() === '-') this.#at++;
    if (this.#peek() === '0') this.#at++;
    else this.#digits('in numeric literal');
    if (this.#peek() === '.') {
      this.#at++;
      this.#digits('after decimal point in numeric literal');
    }
    if (this.#peek().toLowerCase() !== 'e') return;
    this.#at++;
    if (this.#peek() === '+' || this.#peek() === '-') this.#at++;
    this.#digits('in exponent of numeric literal');
  }

  #digits(where: string): void {
    if (!isDigit(this.#peek())) throw this.#unexpected(where);
    while (isDigit(this.#peek())) this.#at++;
  }

  #space(): void {
    while (this.#peek() !== '' && ' \t\r\n'.includes(this.#peek())) this.#at++;
  }

  /** The next character, empty at the end. */
  #peek(): string {
    return this.#text.charAt(this.#at);
  }

  #unexpected(where: string): SyntaxProblem {
    const code = this.#text.codePointAt(this.#at);
    if (code === undefined) return new SyntaxProblem('unexpected end of JSON input');
    return new SyntaxProblem(`invalid character ${quoteCharacter(firstByte(code))} ${where}`);
  }
}

function isDigit(character: string): boolean {
  return character >= '0' && character <= '9' && character !== '';
}

/** A character in single quotes, as Go shows it. */
function quoteCharacter(character: string): string {
  if (character === "'") return "'\\''";
  return character === '"' ? "'\"'" : `'${goQuote(character).slice(1, -1)}'`;
}

/**
 * Returns the first byte of a character in UTF-8 as a character, as in Go, whose scanner reads bytes. A character below
 * U+0100 can be a byte itself, in a text that is no UTF-8.
 */
function firstByte(code: number): string {
  const character = String.fromCodePoint(code);
  return code < 0x100 ? character : String.fromCodePoint(utf8Bytes(character)[0] ?? 0);
}
