import { readFile } from 'node:fs/promises';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { PemSource } from './cluster-config.ts';
import { credentialError } from './credential-error.ts';
import type { TlsMaterial } from './dial.ts';

export type PemSources = { readonly [K in keyof TlsMaterial]?: PemSource | undefined };

export interface PemFilesOptions {
  readonly sources: PemSources;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Logger;
}

/** How old what was read from files may become, in milliseconds. */
const REREAD_MS = 5 * 60_000;

/**
 * Certificates and keys that somebody may replace in their files. They change together: as long as
 * any of them cannot be read, all stay as they are.
 */
export class PemFiles {
  readonly #sources: PemSources;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #log: Logger;
  #material: TlsMaterial | undefined;
  #rereadAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<TlsMaterial> | undefined;

  constructor({ sources, clock, log }: PemFilesOptions) {
    this.#sources = sources;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * The same object as long as nothing has changed.
   *
   * @throws {ApiError} of kind `unauthorized` if a file cannot be read and never could
   */
  async material(): Promise<TlsMaterial> {
    if (this.#material && this.#clock.monotonic() < this.#rereadAtMs) return this.#material;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  /** The server refused them: the next call reads the files again. */
  invalidate(): void {
    this.#rereadAtMs = Number.NEGATIVE_INFINITY;
  }

  async #read(): Promise<TlsMaterial> {
    try {
      const read = await readAll(this.#sources);
      if (!this.#material || !same(this.#material, read)) this.#material = read;
    } catch (error) {
      if (!this.#material) throw error;
      this.#log.error(error, 'Failed to read TLS files, using what was read before');
    }
    this.#rereadAtMs = this.#clock.monotonic() + REREAD_MS;
    return this.#material;
  }
}

async function readAll(sources: PemSources): Promise<TlsMaterial> {
  const read = await Promise.all(
    Object.entries(sources).map(async ([name, source]) =>
      source ? [[name, await readPem(source)] as const] : [],
    ),
  );
  return Object.fromEntries(read.flat());
}

async function readPem(source: PemSource): Promise<string> {
  if (source.kind === 'data') return source.pem;
  try {
    return await readFile(source.path, 'utf8');
  } catch (error) {
    throw credentialError(
      `Cannot read ${source.path}`,
      error,
      'Check the file names in the kubeconfig and who may read them.',
    );
  }
}

function same(a: TlsMaterial, b: TlsMaterial): boolean {
  return a.ca === b.ca && a.certificate === b.certificate && a.key === b.key;
}
