const INTERRUPT = 3;
const END = 4;
const BACKSPACE = 8;
const NEWLINE = 10;
const RETURN = 13;
const DELETE = 127;

/** Where a terminal sends what was typed. */
export interface LineEvents {
  readonly line: (bytes: Uint8Array) => void;
  readonly echo: (bytes: Uint8Array) => void;
  readonly interrupt: () => void;
  readonly end: () => void;
}

/** Line discipline of a terminal: edits a line, echoes it, and passes it on when it is complete. */
export class LineDiscipline {
  readonly #events: LineEvents;
  #line: number[] = [];

  constructor(events: LineEvents) {
    this.#events = events;
  }

  type(bytes: Uint8Array): void {
    const { line, interrupt, end } = this.#events;
    const echo = (text: string) => this.#events.echo(new TextEncoder().encode(text));
    for (const byte of bytes) {
      if (byte === INTERRUPT) {
        echo('^C\r\n');
        this.#line = [];
        interrupt();
      } else if (byte === END) {
        if (this.#line.length === 0) end();
        else this.#pass(line);
      } else if (byte === BACKSPACE || byte === DELETE) {
        if (this.#line.length > 0) echo('\b \b');
        // A character has several bytes, of which the first is not a continuation.
        for (let removed; (removed = this.#line.pop()) !== undefined;) {
          if ((removed & 0xc0) !== 0x80) break;
        }
      } else if (byte === NEWLINE || byte === RETURN) {
        echo('\r\n');
        this.#line.push(NEWLINE);
        this.#pass(line);
      } else {
        this.#line.push(byte);
        this.#events.echo(Uint8Array.of(byte));
      }
    }
  }

  #pass(line: LineEvents['line']): void {
    line(Uint8Array.from(this.#line));
    this.#line = [];
  }
}

/** Returns output as a terminal shows it: each newline starts a line. */
export function terminalOutput(text: string): string {
  return text.replaceAll(/\r?\n/g, '\r\n');
}
