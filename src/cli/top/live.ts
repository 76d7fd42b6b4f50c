import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/values.ts';
import { ProgramMonitor } from './program-monitor.ts';
import type { KeyPageData } from './key-page.ts';
import { Keyboard } from './keyboard.ts';
import { currentPage, press, START } from './model.ts';
import type { TopState } from './model.ts';
import { renderScreen } from './render.ts';
import type { Drawn } from './render.ts';
import { Screen } from './screen.ts';
import { fetchKey, fetchMonitorSnapshot } from './snapshot.ts';
import type { PageId } from './tables.ts';

export interface LiveOptions {
  readonly address: string;
  /** Time between two requests, in milliseconds. */
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly colour: boolean;
}

/** Shows a program on the terminal of this process until the user quits, and restores the terminal. */
export async function showLive(options: LiveOptions): Promise<void> {
  const { stdin, stdout } = process;
  const live = new LiveView(
    options,
    new Screen({
      get columns() {
        return stdout.columns || 80;
      },
      get rows() {
        return stdout.rows || 24;
      },
      write: (text) => void stdout.write(text),
      setRaw: stdin.isTTY ? (isRaw) => void stdin.setRawMode(isRaw) : undefined,
    }),
  );
  const onInput = (text: string) => live.type(text);
  const quit = () => live.quit();
  if (stdin.isTTY) {
    stdin.setEncoding('utf8').on('data', onInput).on('end', quit).on('error', quit).resume();
  }
  stdout.on('resize', live.draw);
  // Restores the terminal even if the process exits early; before an error is logged, so that it stays
  // visible.
  process.once('exit', live.close).on('uncaughtExceptionMonitor', live.close);
  const stopSuspending = suspendOnSignal(live);
  try {
    await live.run();
  } finally {
    stopSuspending();
    live.close();
    process.off('exit', live.close).off('uncaughtExceptionMonitor', live.close);
    stdout.off('resize', live.draw);
    stdin.off('data', onInput).off('end', quit).off('error', quit).pause();
  }
}

/** Returns a function that removes the signal handlers. */
function suspendOnSignal(live: LiveView): () => void {
  // Windows has no job control.
  if (process.platform === 'win32') return () => undefined;
  const suspend = () => {
    live.close();
    // Without a handler, the signal stops the processes of the job.
    process.off('SIGTSTP', suspend);
    process.kill(0, 'SIGTSTP');
    // The job continues here. A process without a shell is not stopped at all.
    setImmediate(resume);
  };
  const resume = () => {
    process.off('SIGTSTP', suspend).on('SIGTSTP', suspend);
    live.reopen();
  };
  live.onSuspend = suspend;
  process.on('SIGTSTP', suspend).on('SIGCONT', resume);
  return () => process.off('SIGTSTP', suspend).off('SIGCONT', resume);
}

/** Refreshes the data, applies keys to the state, and draws both. */
class LiveView {
  onSuspend = () => {};
  readonly #options: LiveOptions;
  readonly #screen: Screen;
  readonly #monitor: ProgramMonitor;
  readonly #keyboard: Keyboard;
  readonly #quit = new AbortController();
  #state: TopState = START;
  #drawn: Drawn = { text: [], tables: [], lines: 0, height: 1 };
  /** Data of the last page of a key. */
  #key: { readonly page: PageId; readonly data: KeyPageData } | undefined;
  /** Ends the pause before the next request. */
  #wake = () => {};
  #isDue = true;

  constructor(options: LiveOptions, screen: Screen) {
    this.#options = options;
    this.#screen = screen;
    this.#monitor = new ProgramMonitor(options.address);
    this.#keyboard = new Keyboard(options.clock, (key) => this.#onKey(key));
  }

  /** Resolves when the user quits or the process is stopped. */
  async run(): Promise<void> {
    const { clock, signal, intervalMs } = this.#options;
    const end = AbortSignal.any([signal, this.#quit.signal]);
    end.addEventListener('abort', () => this.#wake(), { once: true });
    this.#screen.open();
    this.draw();
    while (!end.aborted) {
      this.#isDue = false;
      await this.#refresh(end);
      this.draw();
      const pause = new AbortController();
      this.#wake = () => pause.abort();
      if (!this.#isDue && !end.aborted) await clock.sleep(intervalMs, pause.signal);
    }
  }

  type(text: string): void {
    this.#keyboard.push(text);
  }

  quit(): void {
    this.#quit.abort();
  }

  readonly draw = (): void => {
    const { clock, colour } = this.#options;
    const view = this.#monitor.view(clock.monotonic());
    const { id } = currentPage(this.#state);
    const key = this.#key?.page === id ? this.#key.data : undefined;
    this.#drawn = renderScreen(view, this.#state, key, this.#screen.size, colour);
    this.#screen.draw(this.#drawn.text);
  };

  /** Draws on a terminal that another program may have changed. */
  reopen(): void {
    if (this.#quit.signal.aborted) return;
    this.#screen.close();
    this.#screen.open();
    this.draw();
  }

  readonly close = (): void => {
    this.#keyboard.close();
    this.#screen.close();
  };

  #onKey(key: string): void {
    if (key === 'suspend') return this.onSuspend();
    if (key === 'redraw') return this.reopen();
    const before = currentPage(this.#state).id;
    const next = press(this.#state, key, this.#drawn);
    if (!next) return this.quit();
    const isResumed = this.#state.isPaused && !next.isPaused;
    this.#state = next;
    if (isResumed || currentPage(next).id !== before) {
      this.#isDue = true;
      this.#wake();
    }
    this.draw();
  }

  async #refresh(end: AbortSignal): Promise<void> {
    const { address, clock } = this.#options;
    const { id } = currentPage(this.#state);
    const known = this.#key?.page === id ? this.#key.data : undefined;
    const { isPaused } = this.#state;
    const snapshot = async () => {
      try {
        this.#monitor.record(await fetchMonitorSnapshot(address, () => clock.monotonic(), end));
      } catch (error) {
        if (!end.aborted) this.#monitor.recordFailure(messageOf(error), clock.monotonic());
      }
    };
    const key = async () => {
      if (id.kind !== 'key') return;
      try {
        this.#key = { page: id, data: await fetchKey(address, id, end) };
      } catch (error) {
        // The last data stays on the screen; the head shows that the program does not respond.
        this.#key = { page: id, data: known ?? { error: messageOf(error) } };
      }
    };
    await Promise.all([...(isPaused ? [] : [snapshot()]), ...(isPaused && known ? [] : [key()])]);
  }
}
