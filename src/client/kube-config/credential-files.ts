import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import type { PemSource } from './cluster-config.ts';
import type { TlsMaterial } from '../transport/dial.ts';
import type { ReadFile } from './read-file.ts';
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
/** Age at which files are read again after a failed read, in milliseconds. */
const REREAD_AFTER_FAILURE_MS = 10_000;

/**
 * Certificates and keys in files that can be replaced, for example by cert-manager. They change together: if a
 * file cannot be read, is incomplete, or does not match the others, the previous ones stay in use.
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
   * Returns the certificates and keys; the same object as long as they are unchanged, and no promise while they
   * need not be read again.
   *
   * @throws {ApiError} of kind `unauthorized` if a file cannot be used and there is no previous version
   */
  material(): TlsMaterial | Promise<TlsMaterial> {
    const { clock } = this.#options;
    if (this.#material && clock.monotonic() < this.#rereadAtMs) return this.#material;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  /** Makes the next call read the files again, after either side rejected a certificate. */
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
          log.info('TLS files changed', { files: changed(read, this.#material, sources) });
        this.#material = read;
      }
    } catch (error) {
      if (!this.#material) throw error;
      rereadMs = REREAD_AFTER_FAILURE_MS;
      log.error(error, 'Failed to read TLS files, using the previous ones');
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
      'Check the file names in the kubeconfig and the permissions of the files.',
    );
  }
}

/**
 * Checks certificates and keys here, so that errors name the file. This also rejects an empty CA file: with an
 * empty CA, TLS would trust the CAs that Node trusts.
 */
function requireUsable({ ca, certificate, key }: TlsMaterial, sources: PemSources): void {
  if (ca !== undefined) {
    attempt(
      () => requireCertificates(ca),
      `No usable certificate authority in ${placeOf(sources.ca)}`,
    );
  }
  if (certificate !== undefined && key !== undefined) {
    attempt(
      () => requirePair(certificate, key),
      `No usable certificate and key in ${placeOf(sources.certificate)} and ${placeOf(sources.key)}`,
    );
  }
}

function attempt(check: () => unknown, summary: string): void {
  try {
    check();
  } catch (error) {
    throw credentialError(summary, error, 'Expected PEM; check the program that writes the file.');
  }
}

const CERTIFICATE_HEADER = '-----BEGIN CERTIFICATE-----';
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** Requires complete certificates, because TLS silently ignores one that is not, and all after it. */
function requireCertificates(pem: string): void {
  const started = pem.split(CERTIFICATE_HEADER).length - 1;
  const complete = pem.match(CERTIFICATE) ?? [];
  if (started === 0) throw new Error('the file contains no certificate');
  if (complete.length < started) throw new Error('a certificate is incomplete');
  for (const text of complete) void new X509Certificate(text);
}

/** @throws {Error} if the key does not belong to the certificate, or one of them is no PEM */
export function requirePair(certificate: string, key: string): void {
  requireCertificates(certificate);
  if (!new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))) {
    throw new Error('the key does not match the certificate');
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

/** Creates the error for missing credentials; no request was sent. `cause` must not contain secrets. */
export function credentialError(summary: string, cause: unknown, nextStep: string): ApiError {
  const why = cause instanceof Error ? `: ${cause.message}` : '';
  return new ApiError({ kind: 'unauthorized', message: `${summary}${why}. ${nextStep}`, cause });
}

/** Options of `TokenFile`. */
export interface TokenFileOptions {
  readonly path: string;
  /** Token until the file can be read. */
  readonly fallback?: string | undefined;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Logger;
  readonly readFile: ReadFile;
}

/**
 * A token in a file that another program renews, as kubelet renews service account tokens. If the file cannot be
 * read, the last token stays in use, because it may still be valid.
 */
export class TokenFile {
  readonly #path: string;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #log: Logger;
  readonly #readFile: ReadFile;
  #token: string | undefined;
  #rereadAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor({ path, fallback, clock, log, readFile }: TokenFileOptions) {
    this.#path = path;
    this.#token = fallback;
    this.#clock = clock;
    this.#log = log;
    this.#readFile = readFile;
  }

  /**
   * Returns the token; no promise while the file need not be read again.
   *
   * @throws {ApiError} of kind `unauthorized` if the file cannot be read and there is no previous token
   */
  token(): string | Promise<string> {
    const token = this.#token;
    return token !== undefined && this.#clock.monotonic() < this.#rereadAtMs
      ? token
      : this.#freshToken();
  }

  async #freshToken(): Promise<string> {
    if (this.#clock.monotonic() >= this.#rereadAtMs) {
      this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
      await this.#reading;
    }
    if (this.#token === undefined) throw this.#missing(undefined);
    return this.#token;
  }

  /** Discards `token` after the server rejected it. A newer token stays. */
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
      'Check that it exists, is readable and contains a token.',
    );
  }
}
