import type { Clock } from '../../util/clock.ts';
import { systemClock } from '../../util/clock.ts';
import { goQuote } from '../../util/go-quote.ts';
import { messageOf } from '../../util/values.ts';
import { isLoopback, parseBindAddress } from '../../serving/bind-address.ts';
import type { CommandContext } from '../program.ts';
import { EXIT_FAILURE, EXIT_OK, UsageError } from '../errors.ts';
import type { OptionValues } from '../flags/option.ts';
import type { TOP_OPTIONS } from '../flags/options.ts';
import { fetchSnapshot } from '../top/snapshot.ts';
import { render } from '../top/render.ts';
import { DaemonMonitor } from '../top/daemon-monitor.ts';

/** Width of the output if standard output is not a terminal. */
const WIDTH = 160;

/**
 * Shows what a daemon does and refreshes the view until the user quits. If standard output is not a
 * terminal, prints once.
 *
 * @returns 1 if a single print received no response
 * @throws {UsageError} on an invalid address
 */
export async function top(
  flags: Pick<OptionValues<typeof TOP_OPTIONS>, 'address' | 'interval' | 'once'>,
  context: Pick<CommandContext, 'print' | 'warn' | 'signal' | 'colour'>,
): Promise<number> {
  const address = loopbackAddress(flags.address);
  const clock = systemClock;
  if (flags.once || !process.stdout.isTTY) return once(address, clock, context);
  await watch(address, flags.interval, clock, context);
  return EXIT_OK;
}

async function once(
  address: string,
  clock: Clock,
  { print, warn, signal, colour }: Pick<CommandContext, 'print' | 'warn' | 'signal' | 'colour'>,
): Promise<number> {
  const monitor = new DaemonMonitor(address);
  try {
    monitor.record(await fetchSnapshot(address, () => clock.monotonic(), signal));
  } catch (error) {
    warn(
      `Error: Cannot show ${address}: ${messageOf(error)}. Set --address to the daemon's --debug-bind-address.`,
    );
    return EXIT_FAILURE;
  }
  const size = { width: process.stdout.columns ?? WIDTH, height: Infinity };
  for (const line of render(monitor.view(clock.monotonic()), size, colour)) print(line);
  return EXIT_OK;
}

async function watch(
  address: string,
  intervalMs: number,
  clock: Clock,
  { signal, colour }: Pick<CommandContext, 'signal' | 'colour'>,
): Promise<void> {
  const { stdin, stdout } = process;
  const quit = new AbortController();
  const end = AbortSignal.any([signal, quit.signal]);
  const monitor = new DaemonMonitor(address);
  const screen = new Screen({
    get columns() {
      return stdout.columns;
    },
    get rows() {
      return stdout.rows;
    },
    write: (text) => void stdout.write(text),
    setRaw: stdin.isTTY ? (isRaw) => void stdin.setRawMode(isRaw) : undefined,
  });
  const draw = () => {
    const { width, height } = screen.size;
    const view = monitor.view(clock.monotonic());
    const lines = render(view, { width, height: height - 1 }, colour);
    const blank = Array<string>(Math.max(0, height - 1 - lines.length)).fill('');
    screen.draw([...lines, ...blank, 'q: quit'.slice(0, width)].slice(0, height));
  };
  const onKey = (typed: Buffer) => {
    if (isQuitKey(typed.toString())) quit.abort();
  };
  const restore = () => screen.close();
  // Restores the terminal even if the process exits early.
  process.once('exit', restore);
  stdout.on('resize', draw);
  screen.open();
  if (stdin.isTTY) stdin.on('data', onKey).resume();
  try {
    while (!end.aborted) {
      try {
        monitor.record(await fetchSnapshot(address, () => clock.monotonic(), end));
      } catch (error) {
        if (end.aborted) break;
        monitor.recordFailure(messageOf(error), clock.monotonic());
      }
      draw();
      await clock.sleep(intervalMs, end);
    }
  } finally {
    stdout.off('resize', draw);
    stdin.off('data', onKey).pause();
    screen.close();
    process.off('exit', restore);
  }
}

/** The pages contain object names and messages, which must not be sent unencrypted over a network. */
function loopbackAddress(address: string): string {
  const refused = () =>
    new UsageError(
      `invalid value ${goQuote(address)} for --address: must be a loopback address HOST:PORT, as in 127.0.0.1:6060. For a Pod, use kubectl port-forward`,
    );
  let parsed: ReturnType<typeof parseBindAddress>;
  try {
    parsed = parseBindAddress(address);
  } catch {
    throw refused();
  }
  const { host = '127.0.0.1', port } = parsed;
  const name = host.includes(':') ? `[${host}]` : host;
  if (!isLoopback(name)) throw refused();
  return `${name}:${port}`;
}

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

/** `q`, Ctrl-C and Ctrl-D in raw mode. */
const QUIT: ReadonlySet<string> = new Set(['q', 'Q', '\u0003', '\u0004']);

/** Returns whether the input contains a quit key. Arrow keys and mouse events start with Escape. */
export function isQuitKey(typed: string): boolean {
  return !typed.startsWith('\u001b') && Array.from(typed).some((key) => QUIT.has(key));
}
