/** Part of a terminal that `Screen` uses. */
export interface ScreenTerminal {
  readonly columns: number;
  readonly rows: number;
  write(text: string): void;
  /** Enables or disables raw mode of the keyboard; absent: there is no keyboard. */
  readonly setRaw?: ((isRaw: boolean) => void) | undefined;
}

const ESC = '\u001b[';
/** Alternate screen, without cursor and without line wrapping. */
const ENTER = `${ESC}?1049h${ESC}?25l${ESC}?7l`;
const LEAVE = `${ESC}?7h${ESC}?25h${ESC}?1049l`;
/** Synchronised output: terminals that support it show the text between the two at once. */
const SYNC_START = `${ESC}?2026h`;
const SYNC_END = `${ESC}?2026l`;

/**
 * Draws on the whole terminal without flicker: each line is overwritten, and the rest of the previous line
 * is erased.
 */
export class Screen {
  readonly #terminal: ScreenTerminal;
  #isOpen = false;

  constructor(terminal: ScreenTerminal) {
    this.#terminal = terminal;
  }

  get size(): { readonly width: number; readonly height: number } {
    const { columns, rows } = this.#terminal;
    // A line in the last column would be erased by the erase sequence.
    return { width: Math.max(1, columns - 1), height: Math.max(1, rows) };
  }

  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#terminal.setRaw?.(true);
    this.#terminal.write(ENTER);
  }

  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    const text = lines.map((line) => `${line}${ESC}K`).join('\r\n');
    this.#terminal.write(`${SYNC_START}${ESC}H${text}${ESC}J${SYNC_END}`);
  }

  /** Restores the terminal; a second call does nothing. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#terminal.write(LEAVE);
    this.#terminal.setRaw?.(false);
  }
}
