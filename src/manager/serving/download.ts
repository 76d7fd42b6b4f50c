import type { Readable } from 'node:stream';

export interface DownloadRequest {
  readonly query: URLSearchParams;
  /** Aborts when nobody waits for the answer any more: the client has gone, or the server stops. */
  readonly signal: AbortSignal;
}

/** An answer that takes a while to make, or is too large to be held at once. */
export interface Download {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Readable;
  /**
   * What a browser calls it when it saves it.
   * @default it is shown
   */
  readonly fileName?: string;
}

/** Downloads by their paths. */
export type Downloads = ReadonlyMap<string, (request: DownloadRequest) => Promise<Download>>;
