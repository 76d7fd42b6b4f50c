import { utf8Bytes, utf8Length } from './bytes.ts';
import type { ResponseBody } from './http.ts';

/** A body that exists completely before the response. */
export class CompleteBody implements ResponseBody {
  readonly content: string | Uint8Array;
  #isRead = false;

  /** @param content text is sent in UTF-8, which Node.js encodes faster together with the headers */
  constructor(content: string | Uint8Array) {
    this.content = content;
  }

  get byteLength(): number {
    return typeof this.content === 'string' ? utf8Length(this.content) : this.content.byteLength;
  }

  received(): Uint8Array | undefined {
    if (this.#isRead) return undefined;
    this.#isRead = true;
    return typeof this.content === 'string' ? utf8Bytes(this.content) : this.content;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    const bytes = this.received();
    if (bytes) yield bytes;
  }
}
