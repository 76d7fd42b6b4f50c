/** The terminal, as much of it as is needed. */
export interface ScreenTerminal {
  readonly columns: number;
  readonly rows: number;
  write(text: string): void;
  /** Has keys come one by one, unseen; false: as the terminal likes. Absent: there is no keyboard. */
  readonly setRaw?: ((isRaw: boolean) => void) | undefined;
}

const ESC = '\u001b[';
/** The other screen, so that this one is found as it was; no cursor; no wrapping of long lines. */
const ENTER = `${ESC}?1049h${ESC}?25l${ESC}?7l`;
const LEAVE = `${ESC}?7h${ESC}?25h${ESC}?1049l`;
/** What is written between the two is shown at once, where the terminal knows them. */
const BEGIN = `${ESC}?2026h`;
const END = `${ESC}?2026l`;

/**
 * The whole terminal, drawn again and again without flicker: each line is overwritten, and what is
 * left of the one before is erased behind it, so nothing is ever blank in between.
 */
export class Screen {
  readonly #terminal: ScreenTerminal;
  #isOpen = false;

  constructor(terminal: ScreenTerminal) {
    this.#terminal = terminal;
  }

  get size(): { readonly width: number; readonly height: number } {
    const { columns, rows } = this.#terminal;
    // A line that ends in the last column leaves the cursor nowhere, and erasing would eat its end.
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
    this.#terminal.write(`${BEGIN}${ESC}H${text}${ESC}J${END}`);
  }

  /** Gives the terminal back as it was; twice does nothing. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#terminal.write(LEAVE);
    this.#terminal.setRaw?.(false);
  }
}

/** `q`, Ctrl-C and Ctrl-D, as a keyboard without a line discipline gives them. */
const QUIT: ReadonlySet<string> = new Set(['q', 'Q', '\u0003', '\u0004']);

/** True if what was typed means to leave. Escape begins what arrows and mice say. */
export function isQuitKey(typed: string): boolean {
  return !typed.startsWith('\u001b') && Array.from(typed).some((key) => QUIT.has(key));
}
