import { utf8Bytes } from './bytes.ts';

/** The first 32 bits of the fractional part of a root of a prime. */
function fraction(prime: number, root: 2 | 3): number {
  // 52 bits of the mantissa are sufficient: the whole part of a root of the first 64 primes has 5 bits at most.
  const value = root === 2 ? Math.sqrt(prime) : Math.cbrt(prime);
  return Math.floor((value % 1) * 2 ** 32) | 0;
}

const PRIMES: number[] = [];
for (let number = 2; PRIMES.length < 64; number++) {
  if (PRIMES.every((prime) => number % prime !== 0)) PRIMES.push(number);
}

const START = Int32Array.from(PRIMES.slice(0, 8), (prime) => fraction(prime, 2));
const ROUND_CONSTANTS = Int32Array.from(PRIMES, (prime) => fraction(prime, 3));
const BLOCK_BYTES = 64;
const LENGTH_BYTES = 8;

/**
 * Returns the SHA-256 digest (FIPS 180-4) of bytes, or of a text in UTF-8. The digest of Web Crypto is asynchronous, and
 * `node:crypto` exists in Node.js only.
 */
export function sha256(content: Uint8Array | string): Uint8Array {
  const bytes = typeof content === 'string' ? utf8Bytes(content) : content;
  const state = START.slice();
  const whole = bytes.byteLength - (bytes.byteLength % BLOCK_BYTES);
  const message = new DataView(bytes.buffer, bytes.byteOffset);
  for (let at = 0; at < whole; at += BLOCK_BYTES) addBlock(state, message, at);
  const rest = bytes.byteLength - whole;
  const end = new Uint8Array(rest + 1 + LENGTH_BYTES > BLOCK_BYTES ? 2 * BLOCK_BYTES : BLOCK_BYTES);
  end.set(bytes.subarray(whole));
  end[rest] = 0x80;
  // The length in bits, of which 53 are sufficient.
  let length = bytes.byteLength * 8;
  for (let at = end.length - 1; length > 0; at--, length = Math.floor(length / 256)) {
    end[at] = length % 256;
  }
  const padded = new DataView(end.buffer);
  for (let at = 0; at < end.length; at += BLOCK_BYTES) addBlock(state, padded, at);
  const digest = new Uint8Array(32);
  for (let at = 0; at < 32; at++) digest[at] = (state[at >> 2] ?? 0) >>> (24 - 8 * (at & 3));
  return digest;
}

/** The schedule of the current block. */
const w = new Int32Array(64);

/** Updates the state by the block of the message at an offset. The letters are those of the standard. */
function addBlock(state: Int32Array, message: DataView, start: number): void {
  for (let t = 0; t < 16; t++) {
    w[t] = message.getInt32(start + 4 * t);
  }
  for (let t = 16; t < 64; t++) {
    const early = w[t - 15] ?? 0;
    const late = w[t - 2] ?? 0;
    const s0 = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3);
    const s1 = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10);
    w[t] = ((w[t - 16] ?? 0) + s0 + (w[t - 7] ?? 0) + s1) | 0;
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let t = 0; t < 64; t++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (ROUND_CONSTANTS[t] ?? 0) + (w[t] ?? 0)) | 0;
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state.set([a, b, c, d, e, f, g, h].map((word, at) => word + (state[at] ?? 0)));
}

function rotate(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}
