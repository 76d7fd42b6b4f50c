import { JSON_SCAN_WASM } from './generated/json-scan.ts';

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
