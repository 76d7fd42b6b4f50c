/** What `npm run bench -- NAME` imports from `test/bench/NAME/main.ts`: a function called `main`. */
export type Benchmark = (call: BenchmarkCall) => Promise<void>;

export interface BenchmarkCall {
  /** What came after the name, without `--json`. */
  readonly args: readonly string[];
  /** Print one JSON document to stdout instead of tables; progress goes to stderr in either case. */
  readonly json: boolean;
}
