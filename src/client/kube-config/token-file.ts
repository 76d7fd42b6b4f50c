import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { credentialError } from './credential-error.ts';
import type { ReadFile } from '../read-file.ts';

export interface TokenFileOptions {
  readonly path: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Logger;
  readonly readFile: ReadFile;
}

/** How long a token is used before its file is read again, in milliseconds. */
const REREAD_MS = 60_000;
/** The same, after a read that failed. */
const REREAD_AFTER_FAILURE_MS = 10_000;

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
      this.#rereadAtMs = this.#clock.monotonic() + REREAD_MS;
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
