/** Receives a response in parts. */
export interface ResponseSink {
  /** Called for each response head, also of informational responses (below 200), which the response follows. */
  onHead(head: ResponseHead): void;
  onData(bytes: Uint8Array): void;
  /** @param isReusable whether the connection can carry another request */
  onComplete(isReusable: boolean): void;
}

/** Status and headers of a response. */
export interface ResponseHead {
  readonly status: number;
  /** Lower-case names; the values of a repeated header are joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A response is not HTTP/1.1. */
export class ResponseSyntaxError extends Error {
  override readonly name = 'ResponseSyntaxError';
}

/** Maximum size of a response head, and of all chunk extensions and trailers of a response, in bytes. */
const MAX_HEAD_BYTES = 64 * 1024;
const MAX_SIZE_DIGITS = 12;

/** Maximum number of informational responses before a response, and maximum size of their heads in bytes. */
export const MAX_INFORMATIONAL = 20;
const MAX_INFORMATIONAL_BYTES = MAX_HEAD_BYTES;

const HEAD_END = Buffer.from('\r\n\r\n');
const STATUS_LINE = /HTTP\/1\.([01]) ([1-9]\d\d)(?: [^\r\n]*)?\r\n/y;
const HEADER_LINE = /([!#$%&'*+.^_`|~\w-]+):[ \t]*([^\r\n\0]*)\r\n/y;

const TAB = 9;
const LF = 10;
const CR = 13;
const SPACE = 32;
const SEMICOLON = 59;

type State =
  | 'idle'
  | 'head'
  | 'until-close'
  /** In a body of declared length. */
  | 'body'
  | 'chunk-size'
  | 'chunk-extension'
  /** Before the line feed of the line with the size of a chunk. */
  | 'chunk-line-end'
  | 'chunk'
  /** Before the carriage return, or the line feed, after a chunk. */
  | 'after-chunk'
  | 'after-chunk-end'
  | 'trailers';

/**
 * A parser of HTTP/1.1 responses (RFC 9112) on one connection, one after another. It is strict where leniency
 * would permit that two parties disagree about the end of a response. Trailers are ignored.
 *
 * It delivers the chunks of a chunked body that arrive together as one piece, because a server sends each event
 * of a watch as a chunk.
 */
export class ResponseParser {
  readonly #sink: ResponseSink;
  #state: State = 'idle';
  /** The beginning of a head that is not complete. */
  #partial: Buffer | undefined;
  /** Missing bytes of the body or of the chunk. */
  #missing = 0;
  #isReusable = false;
  #sizeDigits = 0;
  /** Bytes of the line with the size of a chunk, or of the trailers. */
  #framingBytes = 0;
  #trailerLength = 0;
  #informational = 0;
  #informationalBytes = 0;

  constructor(sink: ResponseSink) {
    this.#sink = sink;
  }

  /** Expects a response. */
  start(): void {
    this.#state = 'head';
    this.#framingBytes = 0;
    this.#trailerLength = 0;
    this.#informational = 0;
    this.#informationalBytes = 0;
  }

  /**
   * Parses received bytes. It may change them.
   *
   * @throws {ResponseSyntaxError} if they are not a response; the connection is then unusable
   */
  parse(received: Buffer): void {
    let bytes = received;
    let position = 0;
    while (this.#state === 'head') {
      if (this.#partial) {
        bytes = Buffer.concat([this.#partial, bytes]);
        this.#partial = undefined;
      }
      const end = bytes.indexOf(HEAD_END, position);
      if ((end < 0 ? bytes.length : end) - position > MAX_HEAD_BYTES) {
        throw new ResponseSyntaxError(`the response head is longer than ${MAX_HEAD_BYTES} bytes`);
      }
      if (end < 0) {
        if (position < bytes.length) this.#partial = bytes.subarray(position);
        return;
      }
      this.#head(bytes.toString('latin1', position, end + 2));
      position = end + HEAD_END.length;
    }
    if (position < bytes.length) position = this.#body(bytes, position);
    if (position < bytes.length) throw new ResponseSyntaxError('data follows the response');
  }

  /** Ends the response with the connection. Returns false if it is not complete. */
  end(): boolean {
    if (this.#state === 'until-close') this.#complete();
    return this.#state === 'idle';
  }

  #head(text: string): void {
    STATUS_LINE.lastIndex = 0;
    const [, minor = '', code = ''] = STATUS_LINE.exec(text) ?? [];
    if (code === '') {
      throw new ResponseSyntaxError('the response does not start with an HTTP/1.1 status line');
    }
    const status = Number(code);
    const headers: Record<string, string> = Object.create(null);
    let position = STATUS_LINE.lastIndex;
    while (position < text.length) {
      HEADER_LINE.lastIndex = position;
      const match = HEADER_LINE.exec(text);
      if (!match) throw new ResponseSyntaxError('the response has a malformed header');
      position = HEADER_LINE.lastIndex;
      const [, given = '', padded = ''] = match;
      const name = given.toLowerCase();
      const value = padded.trimEnd();
      const present = headers[name];
      headers[name] = present === undefined ? value : `${present}, ${value}`;
    }
    const body = status < 200 || status === 204 || status === 304 ? 0 : lengthOf(headers);
    this.#isReusable = minor === '1' && !/\bclose\b/i.test(headers['connection'] ?? '');
    if (status === 101) throw new ResponseSyntaxError('the server changed the protocol');
    if (status < 200) this.#countInformational(text.length);
    this.#sink.onHead({ status, headers });
    // The response follows an informational one.
    if (status < 200) return;
    if (body === 'chunked') {
      this.#expectChunk();
      return;
    }
    this.#missing = body;
    if (body === 0) {
      this.#complete();
    } else if (Number.isFinite(body)) {
      this.#state = 'body';
    } else {
      this.#state = 'until-close';
      this.#isReusable = false;
    }
  }

  #countInformational(bytes: number): void {
    this.#informationalBytes += bytes;
    if (
      ++this.#informational > MAX_INFORMATIONAL ||
      this.#informationalBytes > MAX_INFORMATIONAL_BYTES
    ) {
      throw new ResponseSyntaxError('too many informational responses precede the response');
    }
  }

  /** Parses a part of a body and returns the position of its end. */
  #body(bytes: Buffer, start: number): number {
    if (this.#state === 'idle') return start;
    if (this.#state !== 'body' && this.#state !== 'until-close') return this.#chunks(bytes, start);
    const end = Math.min(bytes.length, start + this.#missing);
    this.#missing -= end - start;
    this.#sink.onData(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end));
    if (this.#missing === 0) this.#complete();
    return end;
  }

  /** Parses a part of a chunked body: moves the content of its chunks together and delivers it as one piece. */
  #chunks(bytes: Buffer, start: number): number {
    let position = start;
    let from = start;
    let to = start;
    let isComplete = false;
    while (position < bytes.length && !isComplete) {
      if (this.#state !== 'chunk') {
        isComplete = this.#framing(bytes[position++] ?? 0);
        continue;
      }
      const end = Math.min(bytes.length, position + this.#missing);
      this.#missing -= end - position;
      if (from === to) from = to = position;
      if (to !== position) bytes.copyWithin(to, position, end);
      to += end - position;
      position = end;
      if (this.#missing === 0) this.#state = 'after-chunk';
    }
    if (to > from) this.#sink.onData(bytes.subarray(from, to));
    if (isComplete) this.#complete();
    return position;
  }

  /** Parses a byte between the contents of chunks. Returns whether it ends the body. */
  #framing(byte: number): boolean {
    switch (this.#state) {
      case 'chunk-size': {
        const digit = hexDigit(byte);
        if (digit >= 0) {
          if (++this.#sizeDigits > MAX_SIZE_DIGITS)
            throw new ResponseSyntaxError('a chunk is too long');
          this.#missing = this.#missing * 16 + digit;
          return false;
        }
        if (this.#sizeDigits === 0) throw malformedChunk();
        if (byte === CR) this.#state = 'chunk-line-end';
        else if (byte === SEMICOLON || byte === SPACE || byte === TAB)
          this.#state = 'chunk-extension';
        else throw malformedChunk();
        return false;
      }
      case 'chunk-extension':
        this.#countFraming();
        if (byte === LF) throw malformedChunk();
        if (byte === CR) this.#state = 'chunk-line-end';
        return false;
      case 'chunk-line-end':
        if (byte !== LF) throw malformedChunk();
        this.#state = this.#missing === 0 ? 'trailers' : 'chunk';
        return false;
      case 'after-chunk':
        if (byte !== CR) throw malformedChunk();
        this.#state = 'after-chunk-end';
        return false;
      case 'after-chunk-end':
        if (byte !== LF) throw malformedChunk();
        this.#expectChunk();
        return false;
      default:
        this.#countFraming();
        if (byte !== LF) {
          if (byte !== CR) this.#trailerLength++;
          return false;
        }
        if (this.#trailerLength === 0) return true;
        this.#trailerLength = 0;
        return false;
    }
  }

  #expectChunk(): void {
    this.#state = 'chunk-size';
    this.#missing = 0;
    this.#sizeDigits = 0;
  }

  #countFraming(): void {
    if (++this.#framingBytes > MAX_HEAD_BYTES) {
      throw new ResponseSyntaxError('the chunk extensions or trailers are too long');
    }
  }

  #complete(): void {
    this.#state = 'idle';
    this.#sink.onComplete(this.#isReusable);
  }
}

function malformedChunk(): ResponseSyntaxError {
  return new ResponseSyntaxError('the response has a malformed chunk');
}

/** Returns the value of a hexadecimal digit, or -1. */
function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const letter = byte | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}

/** Returns the length of a body by its headers. @throws {ResponseSyntaxError} if it is ambiguous */
function lengthOf(headers: ResponseHead['headers']): number | 'chunked' {
  const encoding = headers['transfer-encoding'];
  const length = headers['content-length'];
  if (encoding !== undefined) {
    if (encoding.toLowerCase() === 'chunked' && length === undefined) return 'chunked';
    throw new ResponseSyntaxError('the response has an unknown transfer-encoding');
  }
  if (length === undefined) return Number.POSITIVE_INFINITY;
  if (/^\d{1,15}$/.test(length)) return Number(length);
  throw new ResponseSyntaxError('the response has a malformed content-length');
}
