import { JSON_SCAN_WASM } from './generated/json-scan.ts';
import { BACKSLASH, CLOSE_BRACE, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './json.ts';

const CLOSE_BRACKET = 0x5d;
const SPACE = 0x20;

/** Size of the part of a text that is scanned at once, in bytes. */
const BLOCK_BYTES = 64 * 1024;

/** Addresses in the memory of the WebAssembly module. */
export const SCAN_MEMORY = {
  /** State between two blocks: depth and greatest depth, inside of a string, after a backslash. */
  depth: 0,
  deepest: 4,
  inside: 8,
  escape: 16,
  input: 1024,
  /** Offsets that the scan found, at most one for each byte of the input. */
  tape: 2 * BLOCK_BYTES,
  pages: 6,
} as const;

interface ScanExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly scan: (length: number, limit: number, base: number) => number;
}

declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

/**
 * Scans the structure of JSON texts without parsing them: about a twentieth of the time of `JSON.parse`. A
 * text with balanced brackets can still be malformed.
 */
export class JsonScanner {
  readonly #scan: ScanExports['scan'];
  readonly #input: Uint8Array;
  readonly #state: Int32Array;
  readonly #blockTape: Int32Array;
  #tape: Int32Array;

  constructor() {
    const { exports } = new WebAssembly.Instance(
      new WebAssembly.Module(Buffer.from(JSON_SCAN_WASM, 'base64')),
    );
    const { scan, memory } = exports as ScanExports;
    this.#scan = scan;
    this.#input = new Uint8Array(memory.buffer, SCAN_MEMORY.input, BLOCK_BYTES);
    this.#state = new Int32Array(memory.buffer, 0, SCAN_MEMORY.input / 4);
    this.#blockTape = new Int32Array(memory.buffer, SCAN_MEMORY.tape, BLOCK_BYTES);
    this.#tape = this.#blockTape;
  }

  /** Offsets that the last scan found. Valid until the next scan. */
  get tape(): Int32Array {
    return this.#tape;
  }

  /** Nesting depth of the text of the last scan. */
  get deepest(): number {
    return this.#state[SCAN_MEMORY.deepest / 4] ?? 0;
  }

  /**
   * Finds the brackets, commas and colons outside of strings, from `start` to `end`.
   *
   * @param limit maximum nesting depth of what is written to the tape; the members of the outermost
   *   object have depth 1
   * @returns the number of offsets on the tape; -1 if brackets or quotes are not balanced
   */
  scan(bytes: Buffer, start: number, end: number, limit: number): number {
    this.#state.fill(0, 0, 8);
    const count =
      end - start <= BLOCK_BYTES
        ? this.#scanBlock(bytes, start, end, limit)
        : this.#scanBlocks(bytes, start, end, limit);
    const isBalanced =
      this.#state[SCAN_MEMORY.depth / 4] === 0 && this.#state[SCAN_MEMORY.inside / 4] === 0;
    return isBalanced ? count : -1;
  }

  #scanBlock(bytes: Buffer, start: number, end: number, limit: number): number {
    this.#tape = this.#blockTape;
    bytes.copy(this.#input, 0, start, end);
    return this.#scan(end - start, limit, start);
  }

  #scanBlocks(bytes: Buffer, start: number, end: number, limit: number): number {
    let tape = new Int32Array(BLOCK_BYTES);
    let total = 0;
    for (let at = start; at < end; at += BLOCK_BYTES) {
      const count = this.#scanBlock(bytes, at, Math.min(at + BLOCK_BYTES, end), limit);
      if (count < 0) return -1;
      if (total + count > tape.length) {
        const larger = new Int32Array(2 * tape.length);
        larger.set(tape);
        tape = larger;
      }
      tape.set(this.#blockTape.subarray(0, count), total);
      total += count;
    }
    this.#tape = tape;
    return total;
  }
}

let shared: JsonScanner | undefined;
let isSupported = true;

/**
 * Returns the scanner of this process; undefined if the processor has no SIMD instructions. Every scanner
 * reserves address space, so there is only one.
 */
export function sharedScanner(): JsonScanner | undefined {
  if (shared || !isSupported) return shared;
  try {
    shared = new JsonScanner();
  } catch {
    // Objects are parsed completely then.
    isSupported = false;
  }
  return shared;
}

/**
 * Iterates over the members of one object or array of a JSON text, by the offsets that `JsonScanner` found.
 * The text may be malformed: the iteration then ends without `isComplete`, or the text of a member is not
 * JSON. If the text of every member is JSON, so is the whole text.
 */
export class JsonCursor {
  #bytes: Buffer = Buffer.of();
  #tape: Int32Array = new Int32Array();
  /** Position on the tape: of the opening bracket, then of the sign that ends the last member. */
  #index = 0;
  #isObject = false;
  #isFirst = false;
  /** Offset of the bracket or comma before the member. */
  before = 0;
  /** Offset of the comma or bracket after the member. */
  after = 0;
  /** The name with its quotes. */
  nameStart = 0;
  nameEnd = 0;
  /** The value without spaces around it. */
  valueStart = 0;
  valueEnd = 0;
  /** Position on the tape of the value's opening bracket, if it is an object or array. */
  valueIndex = 0;
  /** The object or array has ended regularly; its closing bracket is at `after`. */
  isComplete = false;

  /** Starts with the object or array at `start`. Returns whether it is of this type. */
  enter(
    bytes: Buffer,
    tape: Int32Array,
    index: number,
    start: number,
    type: 'object' | 'array',
  ): boolean {
    this.#bytes = bytes;
    this.#tape = tape;
    this.#index = index;
    this.#isObject = type === 'object';
    this.#isFirst = true;
    this.after = start;
    this.isComplete = false;
    return tape[index] === start && bytes[start] === (this.#isObject ? OPEN_BRACE : OPEN_BRACKET);
  }

  /** Moves to the next member. Returns false after the last one, or if there is none. */
  next(): boolean {
    const bytes = this.#bytes;
    const tape = this.#tape;
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    this.before = this.after;
    if (!isFirst && bytes[this.before] !== COMMA) {
      this.isComplete = this.#isClosing(bytes[this.before]);
      return false;
    }
    let index = this.#index + 1;
    let start = this.#skipSpaces(this.before + 1);
    if (isFirst && start === tape[index] && this.#isClosing(bytes[start])) {
      this.after = start;
      this.isComplete = true;
      return false;
    }
    if (this.#isObject) {
      const colon = tape[index] ?? -1;
      if (bytes[colon] !== COLON) return false;
      this.nameStart = start;
      this.nameEnd = this.#skipSpacesBackwards(colon);
      start = this.#skipSpaces(colon + 1);
      index++;
    }
    this.valueIndex = index;
    this.valueStart = start;
    for (let level = 0; ; index++) {
      const sign = bytes[tape[index] ?? -1];
      if (sign === undefined) return false;
      if (sign === OPEN_BRACE || sign === OPEN_BRACKET) level++;
      else if (sign === COMMA) {
        if (level === 0) break;
      } else if (sign !== COLON && level-- === 0) break;
    }
    this.#index = index;
    this.after = tape[index] ?? -1;
    this.valueEnd = this.#skipSpacesBackwards(this.after);
    return true;
  }

  /**
   * Moves to the first member of this name (ASCII), written without escapes. Faster than `next` for each
   * member; sets only `before`, `nameStart`, `after` and `isLast`.
   */
  find(name: string): boolean {
    const bytes = this.#bytes;
    const tape = this.#tape;
    let level = 0;
    let isFound = false;
    let before = this.after;
    for (let index = this.#index + 1; ; index++) {
      const at = tape[index] ?? -1;
      const sign = bytes[at];
      if (sign === undefined) return false;
      if (sign === OPEN_BRACE || sign === OPEN_BRACKET) {
        level++;
      } else if (sign === COLON) {
        if (level > 0 || isFound) continue;
        const end = this.#skipSpacesBackwards(at);
        const start = end - name.length - 2;
        isFound = isString(bytes, start, end, name) && bytes[start - 1] !== BACKSLASH;
        this.nameStart = start;
      } else if (sign !== COMMA && level > 0) {
        level--;
      } else if (level === 0) {
        this.before = before;
        this.after = at;
        if (isFound || sign !== COMMA) return isFound;
        before = at;
      }
    }
  }

  /** Reports whether the member has this name (ASCII), written without escapes. */
  isNamed(name: string): boolean {
    return isString(this.#bytes, this.nameStart, this.nameEnd, name);
  }

  /** Whether the member is the last one. */
  get isLast(): boolean {
    return this.#bytes[this.after] !== COMMA;
  }

  #isClosing(sign: number | undefined): boolean {
    return sign === (this.#isObject ? CLOSE_BRACE : CLOSE_BRACKET);
  }

  #skipSpaces(from: number): number {
    const bytes = this.#bytes;
    let at = from;
    while (isSpace(bytes[at])) at++;
    return at;
  }

  #skipSpacesBackwards(from: number): number {
    const bytes = this.#bytes;
    let at = from;
    while (isSpace(bytes[at - 1])) at--;
    return at;
  }
}

/** Reports whether the bytes are this string in quotes. */
export function isString(bytes: Buffer, start: number, end: number, text: string): boolean {
  if (end - start !== text.length + 2 || bytes[start] !== QUOTE || bytes[end - 1] !== QUOTE) {
    return false;
  }
  for (let at = 0; at < text.length; at++) {
    if (bytes[start + 1 + at] !== text.charCodeAt(at)) return false;
  }
  return true;
}

/** Reports whether the bytes from `start` to `end` are spaces, as JSON allows between tokens. */
export function isBlank(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (!isSpace(bytes[at])) return false;
  return true;
}

function isSpace(byte: number | undefined): boolean {
  if (byte === undefined || byte > SPACE) return false;
  return byte === SPACE || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
