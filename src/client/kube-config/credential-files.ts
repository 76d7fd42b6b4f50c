import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import type { PemSource } from './cluster-config.ts';
import type { TlsMaterial } from '../transport/dial.ts';
import type { ReadFile } from '../read-file.ts';
import { ApiError } from '../../api/api-error.ts';

export type PemSources = { readonly [K in keyof TlsMaterial]?: PemSource | undefined };

/** Options of `PemFiles`. */
export interface PemFilesOptions {
  readonly sources: PemSources;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Logger;
  readonly readFile: ReadFile;
}

/** Age at which certificate and key files are read again, in milliseconds. */
const PEM_REREAD_MS = 5 * 60_000;
/** Age at which a token file is read again, in milliseconds. */
const TOKEN_REREAD_MS = 60_000;
/** The same, where the last reading gave nothing of use. */
const REREAD_AFTER_FAILURE_MS = 10_000;

/**
 * Certificates and keys that somebody may replace in their files. They change together: as long as
 * any of them cannot be read, is half written or does not fit the others, all stay as they are.
 */
export class PemFiles {
  readonly #options: PemFilesOptions;
  #material: TlsMaterial | undefined;
  #rereadAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<TlsMaterial> | undefined;

  constructor(options: PemFilesOptions) {
    this.#options = options;
  }

  /**
   * The same object as long as nothing has changed.
   *
   * @throws {ApiError} of kind `unauthorized` if a file is of no use and never was
   */
  async material(): Promise<TlsMaterial> {
    const { clock } = this.#options;
    if (this.#material && clock.monotonic() < this.#rereadAtMs) return this.#material;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  /** One side refused them: the next call reads the files again. */
  invalidate(): void {
    this.#rereadAtMs = Number.NEGATIVE_INFINITY;
  }

  async #read(): Promise<TlsMaterial> {
    const { sources, clock, log, readFile } = this.#options;
    let rereadMs = PEM_REREAD_MS;
    try {
      const read = await readAll(sources, readFile);
      if (!this.#material || !same(this.#material, read)) {
        requireUsable(read, sources);
        if (this.#material)
          log.info('TLS files have changed', { files: changed(read, this.#material, sources) });
        this.#material = read;
      }
    } catch (error) {
      if (!this.#material) throw error;
      rereadMs = REREAD_AFTER_FAILURE_MS;
      log.error(error, 'Failed to read TLS files, using what was read before');
    }
    this.#rereadAtMs = clock.monotonic() + rereadMs;
    return this.#material;
  }
}

async function readAll(sources: PemSources, readFile: ReadFile): Promise<TlsMaterial> {
  const read = await Promise.all(
    Object.entries(sources).map(async ([name, source]) =>
      source ? [[name, await readPem(source, readFile)] as const] : [],
    ),
  );
  return Object.fromEntries(read.flat());
}

async function readPem(source: PemSource, readFile: ReadFile): Promise<string> {
  if (source.kind === 'data') return source.pem;
  try {
    return await readFile(source.path);
  } catch (error) {
    throw credentialError(
      `Cannot read ${source.path}`,
      error,
      'Check the file names in the kubeconfig and who may read them.',
    );
  }
}

/**
 * Said here, where the file has a name, and not at the next connection. An empty authority above
 * all: TLS would take it for none, and trust whom Node trusts.
 */
function requireUsable({ ca, certificate, key }: TlsMaterial, sources: PemSources): void {
  if (ca !== undefined) {
    attempt(() => requireCertificates(ca), `No certificate authority in ${placeOf(sources.ca)}`);
  }
  if (certificate !== undefined && key !== undefined) {
    attempt(
      () => requirePair(certificate, key),
      `No certificate with its key in ${placeOf(sources.certificate)} and ${placeOf(sources.key)}`,
    );
  }
}

function attempt(check: () => unknown, happened: string): void {
  try {
    check();
  } catch (error) {
    throw credentialError(happened, error, 'Expected PEM; check what writes it.');
  }
}

const BEGIN = '-----BEGIN CERTIFICATE-----';
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** Each must be whole: TLS leaves out in silence what it cannot read, and what comes after it. */
function requireCertificates(pem: string): void {
  const begun = pem.split(BEGIN).length - 1;
  const whole = pem.match(CERTIFICATE) ?? [];
  if (begun === 0) throw new Error('there is none');
  if (whole.length < begun) throw new Error('it is cut off');
  for (const text of whole) void new X509Certificate(text);
}

function requirePair(certificate: string, key: string): void {
  requireCertificates(certificate);
  if (!new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))) {
    throw new Error('they do not belong together');
  }
}

function changed(now: TlsMaterial, before: TlsMaterial, sources: PemSources): readonly string[] {
  return (['ca', 'certificate', 'key'] as const).flatMap((name) =>
    now[name] === before[name] ? [] : placeOf(sources[name]),
  );
}

function placeOf(source: PemSource | undefined): string {
  return source?.kind === 'file' ? source.path : 'the configuration';
}

function same(a: TlsMaterial, b: TlsMaterial): boolean {
  return a.ca === b.ca && a.certificate === b.certificate && a.key === b.key;
}

/** No credentials could be had, so no request was sent. `cause` must carry nothing secret. */
export function credentialError(happened: string, cause: unknown, nextStep: string): ApiError {
  const why = cause instanceof Error ? `: ${cause.message}` : '';
  return new ApiError({ kind: 'unauthorized', message: `${happened}${why}. ${nextStep}`, cause });
}

/** Options of `TokenFile`. */
export interface TokenFileOptions {
  readonly path: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Logger;
  readonly readFile: ReadFile;
}

/**
 * A token that somebody else keeps fresh in a file, as kubelet does with a service account's. While
 * the file cannot be read, the last good token is used: it may well be valid still.
 */
export class TokenFile {
  readonly #path: string;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #log: Logger;
  readonly #readFile: ReadFile;
  #token: string | undefined;
  #rereadAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor({ path, clock, log, readFile }: TokenFileOptions) {
    this.#path = path;
    this.#clock = clock;
    this.#log = log;
    this.#readFile = readFile;
  }

  /** @throws {ApiError} of kind `unauthorized` if there is no token and never was */
  async token(): Promise<string> {
    if (this.#clock.monotonic() >= this.#rereadAtMs) {
      this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
      await this.#reading;
    }
    if (this.#token === undefined) throw this.#missing(undefined);
    return this.#token;
  }

  /** The server refused `token`: it is forgotten. One read since stays. */
  invalidate(token: string): void {
    if (this.#token !== token) return;
    this.#token = undefined;
    this.#rereadAtMs = Number.NEGATIVE_INFINITY;
  }

  async #read(): Promise<void> {
    try {
      const token = (await this.#readFile(this.#path)).trim();
      if (token === '') throw new Error('the file is empty');
      this.#token = token;
      this.#rereadAtMs = this.#clock.monotonic() + TOKEN_REREAD_MS;
    } catch (error) {
      if (this.#token === undefined) throw this.#missing(error);
      this.#rereadAtMs = this.#clock.monotonic() + REREAD_AFTER_FAILURE_MS;
      this.#log.error(error, 'Failed to read the token file, using the last good token', {
        file: this.#path,
      });
    }
  }

  #missing(cause: unknown): Error {
    return credentialError(
      `Cannot read the token file ${this.#path}`,
      cause,
      'Check that it exists, is readable and has a token in it.',
    );
  }
}
