import type { ContainerFiles } from './container-files.ts';
import type { SessionInput } from './session-input.ts';

/** What a command does next. */
export type ShellStep =
  | { readonly kind: 'output'; readonly text: string }
  /** Output that is not text. */
  | { readonly kind: 'data'; readonly bytes: Uint8Array }
  /** Output to the standard error. */
  | { readonly kind: 'error'; readonly text: string }
  /** A command waits for input. `isPrompt`: the shell itself. */
  | { readonly kind: 'read'; readonly isPrompt?: boolean }
  /** Text that the container writes to its termination message file. */
  | { readonly kind: 'message'; readonly text: string }
  | { readonly kind: 'sleep'; readonly ms: number }
  | { readonly kind: 'exit'; readonly code: number }
  /** The program runs until it is stopped. */
  | { readonly kind: 'serve' };

export type Steps = Generator<ShellStep, number, undefined>;

/** What the commands of a session can use: `kubectl exec` is one, the program of a container is none. */
export interface ShellSession {
  readonly input: SessionInput;
  readonly files: ContainerFiles;
  /** Whether a person types the commands. */
  readonly hasTerminal: boolean;
  /** Runs a command that the shell does not have. Undefined if there is no such command. */
  run(name: string, args: readonly string[], state: ShellState): Steps | undefined;
  /** Names of all commands. */
  readonly commands: string;
}

/** State of the shell that runs a command of a session. */
export interface ShellState {
  readonly variables: ReadonlyMap<string, string>;
  readonly folder: string;
  readonly nowMs: number;
  /** @throws {OverBudget} */
  readonly work: (characters: number) => void;
  readonly changeFolder: (path: string) => void;
}

/** Thrown by `exit`. */
export class Exit extends Error {
  readonly code: number;

  constructor(code: number) {
    super();
    this.code = code & 255;
  }
}

/** Thrown for a command or syntax that is not known: the program runs as a server does. */
export class Serve extends Error {
  constructor(command: string = 'its syntax or size') {
    super(command);
  }
}

/** Thrown by `break` and `continue`. */
export class LoopControl extends Error {
  readonly kind: string;

  constructor(kind: string) {
    super();
    this.kind = kind;
  }
}

/** Units of the budget for each character of a script that is parsed. */
export const PARSING = 40;
