import { styleText } from 'node:util';
import { formatDuration } from '../../util/duration.ts';

type Style = Parameters<typeof styleText>[0];

/** Options of `DemoPrinter`. */
export interface DemoPrinterOptions {
  readonly print: (text: string) => void;
  /** Whether the terminal shows colours. */
  readonly colour: boolean;
  /** Milliseconds from an arbitrary origin. */
  readonly monotonic: () => number;
}

/** Prints the demo: headings, commands with their output, changes of objects, and checks. */
export class DemoPrinter {
  readonly #print: (text: string) => void;
  readonly #colour: boolean;
  readonly #monotonic: () => number;
  readonly #startMs: number;
  #passed = 0;
  #failed = 0;

  constructor(options: DemoPrinterOptions) {
    this.#print = options.print;
    this.#colour = options.colour;
    this.#monotonic = options.monotonic;
    this.#startMs = options.monotonic();
  }

  get passed(): number {
    return this.#passed;
  }

  get failed(): number {
    return this.#failed;
  }

  get elapsedMs(): number {
    return this.#monotonic() - this.#startMs;
  }

  /** Prints the heading of a section. */
  heading(text: string): void {
    this.#print(`\n${this.#styled(['bold', 'cyan'], `== ${text}`)}`);
  }

  note(text: string): void {
    this.#print(this.#styled('dim', text));
  }

  /** Prints a command. */
  command(line: string): void {
    this.#print(this.#styled('bold', `$ ${line}`));
  }

  /** Prints the output of a command. */
  output(lines: readonly string[]): void {
    for (const line of lines) this.#print(line);
  }

  /** Prints a change of an object, with the time since the start. */
  change(text: string): void {
    const seconds = (this.elapsedMs / 1000).toFixed(3).padStart(7);
    this.#print(this.#styled('dim', `${seconds}s  ${text}`));
  }

  /** Prints a check and returns whether it passed. `reason` says why it failed. */
  check(check: string, reason?: string): boolean {
    const holds = reason === undefined;
    if (holds) this.#passed++;
    else this.#failed++;
    this.#print(
      holds
        ? `${this.#styled('green', '✓')} ${check}`
        : `${this.#styled(['bold', 'red'], '✗')} ${check}: ${reason}`,
    );
    return holds;
  }

  /** Prints the last line: passed checks, figures and duration. */
  summary(summary: readonly string[]): void {
    const checks =
      this.#failed === 0
        ? this.#styled('green', `${this.#passed} checks passed`)
        : this.#styled('red', `${this.#failed} of ${this.#passed + this.#failed} checks failed`);
    this.#print(`\n${[checks, ...summary, formatDuration(Math.round(this.elapsedMs))].join(', ')}`);
  }

  #styled(style: Style, text: string): string {
    return this.#colour ? styleText(style, text, { validateStream: false }) : text;
  }
}
