/** A measurement of one contestant: numbers by the key of their column. */
export type Sample = Readonly<Record<string, number>>;

/** A column of a workload's table. */
export interface Column {
  /** Of the number in a sample. */
  readonly key: string;
  readonly title: string;
  /** @default 0 */
  readonly digits?: number;
  /**
   * Whether another column has the ratio to the baseline.
   * @default false
   */
  readonly ratio?: boolean;
}

/** What a case has started for its samples: servers, mostly. */
export interface Setting extends AsyncDisposable {
  /** @throws {Unavailable} if the contestant cannot run here @throws {Error} if its result is wrong */
  sample(contestant: string): Promise<Sample>;
}

/** Contestants that are compared with each other. */
export interface Case {
  /** Unique in the workload: `2,000 Foos, 10 workers`. */
  readonly name: string;
  /** The baseline comes first. */
  readonly contestants: readonly string[];
  /**
   * Builds the programs of the contestants and starts servers. Called once for all rounds.
   *
   * @param contestants those that are measured
   */
  open(contestants: readonly string[]): Promise<Setting>;
}

/** Numbers and words from the command line, with the defaults of the workload. */
export type Options = Readonly<Record<string, string>>;

/** A benchmark: a file of `workloads/`, which exports it as `workload`. */
export interface Workload {
  /** Description in the list of benchmarks, one sentence. */
  readonly description: string;
  /** Defaults of the options, apart from `rounds` and `contestants`. */
  readonly options: Options;
  /** Overrides of the defaults with `--short`. */
  readonly short: Options;
  /** @default 5 */
  readonly rounds?: number;
  readonly columns: readonly Column[];
  /**
   * Panels of the page's chart.
   * @default none
   */
  readonly chart?: readonly ChartPanel[];
  cases(options: Options): readonly Case[];
}

/** A panel with a bar for each contestant of the first case, or for each case. */
export interface ChartPanel {
  /** Of the column. */
  readonly key: string;
  readonly title: string;
  /** @default 'contestant' */
  readonly by?: 'case';
}

/** Returns the numbers of an option with commas. @throws {TypeError} */
export function numbersIn(options: Options, name: string): readonly number[] {
  const given = options[name] ?? '';
  return given.split(',').map((text) => {
    const number = Number(text);
    if (text !== '' && Number.isSafeInteger(number) && number >= 0) return number;
    throw new TypeError(`--${name}: expected integers, got ${given}`);
  });
}

export function numberIn(options: Options, name: string): number {
  const [number = Number.NaN] = numbersIn(options, name);
  return number;
}

/** `100,000` */
export function grouped(number: number): string {
  return number.toLocaleString('en-US');
}
