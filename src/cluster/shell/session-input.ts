/** Maximum number of bytes that wait for a command. */
const MAX_WAITING = 1024 * 1024;

const NEWLINE = 10;

/** Input of a command: bytes that have arrived and were not taken. */
export class SessionInput {
  #bytes = new Uint8Array();
  #isEnded: boolean;
  #changed = Promise.withResolvers<void>();

  /** @param isEnded whether there is no input */
  constructor(isEnded: boolean) {
    this.#isEnded = isEnded;
  }

  /** Whether nothing more arrives, and all was taken. */
  get isEnded(): boolean {
    return this.#isEnded && this.#bytes.length === 0;
  }

  /** Resolves when something arrives, is taken, or the input ends. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  get isFull(): boolean {
    return this.#bytes.length >= MAX_WAITING;
  }

  push(bytes: Uint8Array): void {
    const all = new Uint8Array(this.#bytes.length + bytes.length);
    all.set(this.#bytes);
    all.set(bytes, this.#bytes.length);
    this.#bytes = all;
    this.#change();
  }

  end(): void {
    this.#isEnded = true;
    this.#change();
  }

  /** Returns all that has arrived. */
  take(): Uint8Array {
    const bytes = this.#bytes;
    this.#bytes = new Uint8Array();
    this.#change();
    return bytes;
  }

  /** Returns a line without its end, or undefined if none has arrived. The last line may have no end. */
  takeLine(): string | undefined {
    const end = this.#bytes.indexOf(NEWLINE);
    if (end < 0 && !(this.#isEnded && this.#bytes.length > 0)) return undefined;
    const line = this.#bytes.subarray(0, end < 0 ? this.#bytes.length : end);
    // No copy: input can have many short lines.
    this.#bytes = this.#bytes.subarray(end < 0 ? this.#bytes.length : end + 1);
    this.#change();
    return new TextDecoder().decode(line);
  }

  #change(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers<void>();
    resolve();
  }
}
