/** The function `main` that `npm run bench -- NAME` imports from `test/bench/NAME/main.ts`. */
export type Benchmark = (call: BenchmarkCall) => Promise<void>;

export interface BenchmarkCall {
  /** The arguments after the name, without `--json`. */
  readonly args: readonly string[];
  /** Print one JSON document to stdout instead of tables. Progress is printed to stderr in both cases. */
  readonly json: boolean;
}
