/** Bytes of all files of a container. */
const MAX_BYTES = 16 * 1024 * 1024;
const MAX_FILES = 10_000;

const DIRECTORIES = [
  '/',
  '/dev',
  '/etc',
  '/home',
  '/mnt',
  '/opt',
  '/root',
  '/run',
  '/srv',
  '/tmp',
  '/usr',
  '/var',
];

/** Thrown if a file cannot be read or written. The message is that of a Linux program. */
export class FileError extends Error {}

/** Files that commands of `exec` wrote in a container. The files of its image and its volumes are not there. */
export class ContainerFiles {
  readonly #files = new Map<string, Uint8Array>();
  readonly #directories: Set<string>;
  #bytes = 0;

  /** @param directories besides the usual ones */
  constructor(directories: readonly string[] = []) {
    this.#directories = new Set([...DIRECTORIES, ...directories.map((path) => absolutePath(path))]);
  }

  isDirectory(path: string): boolean {
    const folder = absolutePath(path);
    if (this.#directories.has(folder)) return true;
    return this.paths().some((each) => each.startsWith(`${folder}/`));
  }

  isFile(path: string): boolean {
    return this.#files.has(absolutePath(path));
  }

  /** Returns the absolute paths of all files. */
  paths(): string[] {
    return [...this.#files.keys(), ...this.#directories].toSorted();
  }

  /** @throws {FileError} */
  read(path: string): Uint8Array {
    const bytes = this.#files.get(absolutePath(path));
    if (bytes) return bytes;
    throw new FileError(this.isDirectory(path) ? 'Is a directory' : 'No such file or directory');
  }

  /** @throws {FileError} */
  write(path: string, bytes: Uint8Array, append: boolean = false): void {
    const file = absolutePath(path);
    if (this.isDirectory(file)) throw new FileError('Is a directory');
    if (!this.isDirectory(folderOf(file))) throw new FileError('No such file or directory');
    const before = this.#files.get(file) ?? new Uint8Array();
    const added = append ? bytes.length : bytes.length - before.length;
    if (this.#bytes + added > MAX_BYTES || this.#files.size >= MAX_FILES) {
      throw new FileError('No space left on device');
    }
    const content = new Uint8Array(append ? before.length + bytes.length : bytes.length);
    if (append) content.set(before);
    content.set(bytes, content.length - bytes.length);
    this.#files.set(file, content);
    this.#bytes += added;
  }

  makeDirectory(path: string): void {
    if (this.#directories.size >= MAX_FILES) throw new FileError('No space left on device');
    const folder = absolutePath(path);
    this.#directories.add(folder);
    if (folder !== '/') this.makeDirectory(folderOf(folder));
  }

  /** Removes a file, or a directory with its files. Returns whether there was one. */
  remove(path: string): boolean {
    const file = absolutePath(path);
    let found = false;
    for (const each of this.paths()) {
      if (each !== file && !each.startsWith(`${file}/`)) continue;
      this.#bytes -= this.#files.get(each)?.length ?? 0;
      this.#files.delete(each);
      this.#directories.delete(each);
      found = true;
    }
    return found;
  }
}

/** Returns an absolute path without `.`, `..` and empty parts. A relative one starts at the root. */
export function absolutePath(path: string, folder: string = '/'): string {
  const parts: string[] = [];
  for (const part of `${path.startsWith('/') ? '' : folder}/${path}`.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf('/')));
}
