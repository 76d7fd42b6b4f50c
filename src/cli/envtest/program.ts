/** A program in the folder of `envtest-assets`. Returns the exit code. */
export type EnvtestProgram = (args: readonly string[], context: EnvtestContext) => Promise<number>;

export interface EnvtestContext {
  /** Aborts when the program has to stop. */
  readonly signal: AbortSignal;
  /** Writes a line to standard output. */
  readonly print: (line: string) => void;
  /** Writes a line to standard error. */
  readonly warn: (line: string) => void;
}
