import type { ProcessStreams } from '../../api/kubelet.ts';
import { rejectOnAbort } from '../../util/abort.ts';
import type { Clock } from '../../util/clock.ts';
import type { ContainerFiles } from './container-files.ts';
import { SESSION_COMMANDS, runCommand } from './session-commands.ts';
import { SessionInput } from './session-input.ts';
import { interpret } from './shell.ts';
import type { ShellStep } from './shell-steps.ts';
import { LineDiscipline, terminalOutput } from './line-discipline.ts';
import { OverBudget, WorkBudget } from './work-budget.ts';

/** A command in a running container. */
export interface ExecCommand {
  readonly command: readonly string[];
  readonly environment: ReadonlyMap<string, string>;
  readonly files: ContainerFiles;
  readonly tty: boolean;
  readonly clock: Clock;
  /** Aborts when the container ends. */
  readonly gone: AbortSignal;
}

/** Exit codes of a process that a signal ends: 128 and the number of the signal. */
const KILLED = 137;
const INTERRUPTED = 130;

const OVER_BUDGET = 'sh: this command needs too much work for the simulated container\n';

/** Interprets a command as `interpret` does, with the streams of a client. Resolves to its exit code. */
export async function runSession(exec: ExecCommand, streams: ProcessStreams): Promise<number> {
  const { command, environment, files, tty, clock, gone } = exec;
  const input = new SessionInput(!streams.stdin);
  const end = new AbortController();
  const interrupts = new Interrupts();
  const output = new SessionOutput(streams, tty);
  const over = AbortSignal.any([streams.signal, gone, end.signal, interrupts.signal]);
  const session = {
    input,
    files,
    hasTerminal: tty,
    commands: SESSION_COMMANDS,
    run: (name: string, args: readonly string[], state: Parameters<typeof runCommand>[3]) =>
      runCommand(name, args, { input, files }, state),
  };
  const startedMs = clock.now();
  const steps = interpret(command, environment, new WorkBudget(), () => startedMs, session);
  const received = receive(streams.stdin, input, tty ? { output, interrupts } : undefined, over);
  try {
    for (const step of steps) {
      interrupts.isWaiting = step.kind === 'sleep' || (step.kind === 'read' && !step.isPrompt);
      if (step.kind === 'exit') return step.code;
      if (step.kind === 'sleep') await clock.sleep(step.ms, over);
      else if (step.kind === 'read')
        await rejectOnAbort(input.changed, over).catch(() => undefined);
      else await output.write(step);
      if (interrupts.signal.aborted) return INTERRUPTED;
      if (over.aborted) return KILLED;
    }
    return 0;
  } catch (error) {
    if (!(error instanceof OverBudget)) throw error;
    await output.write({ kind: 'error', text: OVER_BUDGET });
    return KILLED;
  } finally {
    end.abort();
    await received;
  }
}

/** What Ctrl-C does: it ends the session if a command waits, and nothing at a prompt. */
class Interrupts {
  readonly #abort = new AbortController();
  isWaiting = false;

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  interrupt(): void {
    if (this.isWaiting) this.#abort.abort();
  }
}

/** Writes the output of a command to the client. */
class SessionOutput {
  readonly #streams: ProcessStreams;
  readonly #tty: boolean;

  constructor(streams: ProcessStreams, tty: boolean) {
    this.#streams = streams;
    this.#tty = tty;
  }

  async write(step: ShellStep): Promise<void> {
    const { stdout, stderr } = this.#streams;
    const text = (all: string) => new TextEncoder().encode(this.#tty ? terminalOutput(all) : all);
    if (step.kind === 'output') await stdout?.(text(step.text));
    // A terminal has one output.
    if (step.kind === 'error') await (this.#tty ? stdout : stderr)?.(text(step.text));
    if (step.kind !== 'data') return;
    await stdout?.(this.#tty ? text(new TextDecoder().decode(step.bytes)) : step.bytes);
  }

  echo(bytes: Uint8Array): void {
    this.#streams.stdout?.(bytes).catch(() => undefined);
  }
}

/** Passes the input of the client on, until it ends or the session is over. */
async function receive(
  stdin: AsyncIterable<Uint8Array> | undefined,
  input: SessionInput,
  terminal: { readonly output: SessionOutput; readonly interrupts: Interrupts } | undefined,
  over: AbortSignal,
): Promise<void> {
  if (!stdin) return;
  const typed =
    terminal &&
    new LineDiscipline({
      line: (bytes) => input.push(bytes),
      echo: (bytes) => terminal.output.echo(bytes),
      end: () => input.end(),
      interrupt: () => {
        terminal.interrupts.interrupt();
        input.push(new TextEncoder().encode('\n'));
      },
    });
  const chunks = stdin[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await rejectOnAbort(chunks.next(), over);
      if (done) break;
      if (typed) typed.type(value);
      else input.push(value);
      while (input.isFull) await rejectOnAbort(input.changed, over);
    }
  } catch (error) {
    if (!over.aborted) throw error;
  }
  input.end();
}
