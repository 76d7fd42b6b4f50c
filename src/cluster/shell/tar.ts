import { FileError } from './container-files.ts';

const BLOCK = 512;

/** A file or directory in a tar archive. */
export interface TarEntry {
  readonly path: string;
  /** Undefined for a directory. */
  readonly bytes: Uint8Array | undefined;
}

/** Reads a tar archive in parts. Links and special files are skipped. */
export class TarReader {
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  /** Number of bytes that the next entry needs. */
  #needed = BLOCK;
  /** Path of the next entry, from an extended header. */
  #longPath: string | undefined;
  #isComplete = false;

  /** Whether the end of the archive was read. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /**
   * Returns the entries that are complete.
   *
   * @throws {FileError} if it is not a tar archive
   */
  read(chunk: Uint8Array): TarEntry[] {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    const entries: TarEntry[] = [];
    if (this.#bytes < this.#needed) return entries;
    const bytes = concatenate(this.#chunks, this.#bytes);
    this.#needed = BLOCK;
    let at = 0;
    while (!this.#isComplete && at + BLOCK <= bytes.length) {
      const header = bytes.subarray(at, at + BLOCK);
      if (header.every((byte) => byte === 0)) {
        this.#isComplete = true;
        break;
      }
      const size = Number.parseInt(textIn(header, 124, 12).trim() || '0', 8);
      if (Number.isNaN(size) || size < 0)
        throw new FileError('This does not look like a tar archive');
      const end = at + BLOCK + Math.ceil(size / BLOCK) * BLOCK;
      if (end > bytes.length) {
        this.#needed = end - at;
        break;
      }
      const entry = this.#entry(header, bytes.slice(at + BLOCK, at + BLOCK + size));
      if (entry) entries.push(entry);
      at = end;
    }
    this.#chunks = [bytes.slice(at)];
    this.#bytes = bytes.length - at;
    return entries;
  }

  #entry(header: Uint8Array, content: Uint8Array): TarEntry | undefined {
    const type = textIn(header, 156, 1);
    if (type === 'L') this.#longPath = textIn(content, 0, content.length);
    if (type === 'x') this.#longPath = extendedPath(content) ?? this.#longPath;
    if (type === 'L' || type === 'x') return undefined;
    const prefix = textIn(header, 257, 5) === 'ustar' ? textIn(header, 345, 155) : '';
    const name = textIn(header, 0, 100);
    const path = this.#longPath ?? (prefix === '' ? name : `${prefix}/${name}`);
    this.#longPath = undefined;
    if (type === '5') return { path, bytes: undefined };
    return type === '' || type === '0' ? { path, bytes: content } : undefined;
  }
}

/** Returns an entry of an archive, which ends with `TAR_END`. */
export function tarEntry({ path, bytes }: TarEntry, modifiedMs: number): Uint8Array {
  const name = new TextEncoder().encode(bytes ? path : `${path}/`);
  if (name.length <= 100) return block(name, bytes ? '0' : '5', bytes, modifiedMs);
  const link = block(new TextEncoder().encode('././@LongLink'), 'L', name, modifiedMs);
  const entry = block(name.subarray(0, 100), bytes ? '0' : '5', bytes, modifiedMs);
  return concatenate([link, entry], link.length + entry.length);
}

function concatenate(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const all = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

export const TAR_END: Uint8Array = new Uint8Array(2 * BLOCK);

function block(
  name: Uint8Array,
  type: string,
  bytes: Uint8Array = new Uint8Array(),
  modifiedMs: number,
): Uint8Array {
  const all = new Uint8Array(BLOCK + Math.ceil(bytes.length / BLOCK) * BLOCK);
  all.set(name);
  const write = (at: number, text: string) => all.set(new TextEncoder().encode(text), at);
  const octal = (at: number, length: number, value: number) =>
    write(
      at,
      Math.floor(value)
        .toString(8)
        .padStart(length - 1, '0'),
    );
  octal(100, 8, type === '5' ? 0o755 : 0o644);
  octal(108, 8, 0);
  octal(116, 8, 0);
  octal(124, 12, bytes.length);
  octal(136, 12, modifiedMs / 1000);
  write(148, ' '.repeat(8));
  write(156, type);
  write(257, 'ustar');
  write(263, '00');
  octal(
    148,
    7,
    all.subarray(0, BLOCK).reduce((sum, byte) => sum + byte, 0),
  );
  write(154, '\0 ');
  all.set(bytes, BLOCK);
  return all;
}

/** Returns the path in a header of pax: lines of `LENGTH NAME=VALUE`. */
function extendedPath(content: Uint8Array): string | undefined {
  const line = new TextDecoder()
    .decode(content)
    .split('\n')
    .find((each) => /^\d+ path=/.test(each));
  return line?.slice(line.indexOf('=') + 1);
}

function textIn(bytes: Uint8Array, start: number, length: number): string {
  const field = bytes.subarray(start, start + length);
  const end = field.indexOf(0);
  return new TextDecoder().decode(end < 0 ? field : field.subarray(0, end));
}
