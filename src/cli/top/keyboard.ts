import type { Clock } from '../../util/clock.ts';

/** Key of the keyboard: a name from the table below, or a character. */
export type Key = string;

/** Escape sequences of VT220, xterm, rxvt and the Linux console, without the initial Escape. */
const SEQUENCES: ReadonlyMap<string, Key> = new Map(
  Object.entries({
    up: ['[A', 'OA'],
    down: ['[B', 'OB'],
    right: ['[C', 'OC'],
    left: ['[D', 'OD'],
    home: ['[H', 'OH', '[1~', '[7~'],
    end: ['[F', 'OF', '[4~', '[8~'],
    pageUp: ['[5~'],
    pageDown: ['[6~'],
    backTab: ['[Z'],
  }).flatMap(([key, sequences]) => sequences.map((sequence): [string, Key] => [sequence, key])),
);

const CONTROLS: ReadonlyMap<string, Key> = new Map([
  ['\r', 'enter'],
  ['\n', 'enter'],
  ['\t', 'tab'],
  ['\u007f', 'backspace'],
  ['\b', 'backspace'],
  ['\u0002', 'pageUp'],
  ['\u0003', 'interrupt'],
  ['\u0004', 'interrupt'],
  ['\u0006', 'pageDown'],
  ['\u000c', 'redraw'],
  ['\u0015', 'clear'],
  ['\u001a', 'suspend'],
]);

const ESC = '\u001b';
const START_OF_SEQUENCE = String.raw`${ESC}(?:\[[0-?]*[ -/]*|O)?$`;
/** A sequence, a single character, or the start of a sequence at the end of the input. */
const TOKEN = new RegExp(
  String.raw`${ESC}(?:\[[0-?]*[ -/]*[@-~]|O.)|${START_OF_SEQUENCE}|[^]`,
  'gu',
);
const INCOMPLETE = new RegExp(`^${START_OF_SEQUENCE}`);

/** Time after which an Escape is a key of its own, in milliseconds: slow connections split sequences. */
const ESCAPE_MS = 50;

/** Turns the input of a terminal in raw mode into keys. Unknown sequences are ignored. */
export class Keyboard {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #onKey: (key: Key) => void;
  #incomplete = '';
  #cancel = () => {};

  constructor(clock: Pick<Clock, 'after'>, onKey: (key: Key) => void) {
    this.#clock = clock;
    this.#onKey = onKey;
  }

  /** @param input decoded text, in parts of any length */
  push(input: string): void {
    this.#cancel();
    const tokens = (this.#incomplete + input).match(TOKEN) ?? [];
    const last = tokens.at(-1);
    this.#incomplete = last !== undefined && INCOMPLETE.test(last) ? last : '';
    for (const token of this.#incomplete ? tokens.slice(0, -1) : tokens) this.#emit(token);
    if (!this.#incomplete) return;
    this.#cancel = this.#clock.after(ESCAPE_MS, () => {
      const rest = this.#incomplete;
      this.#incomplete = '';
      this.#emit(rest);
    });
  }

  /** Forgets an incomplete sequence. */
  close(): void {
    this.#cancel();
    this.#incomplete = '';
  }

  #emit(token: string): void {
    const key = keyOf(token);
    if (key !== undefined) this.#onKey(key);
  }
}

function keyOf(token: string): Key | undefined {
  if (token === ESC) return 'escape';
  // Modifiers, as in `[1;5A` for Ctrl and the upper arrow, are ignored.
  if (token.startsWith(ESC)) return SEQUENCES.get(token.slice(1).replace(/1?;\d+/, ''));
  return CONTROLS.get(token) ?? (token >= ' ' ? token : undefined);
}
