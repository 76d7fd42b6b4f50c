import { stringify } from 'yaml';
import type { RuleGroup } from '../../test/support/observability.ts';
import type { Scrape } from '../../test/support/scraped-daemons.ts';
import { GoProgram, whyNoProgram } from '../go-program.ts';

/** An alert when it first fired, with the labels and annotations from Prometheus. */
export interface Fired {
  readonly alert: string;
  readonly atMs: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Evaluation {
  /** Errors in the rules; if there are any, nothing is evaluated. */
  readonly ruleErrors: readonly string[];
  readonly fired: readonly Fired[];
  /** Rules and queries that could not be evaluated. */
  readonly errors: readonly string[];
  /** Number of series of each query at the end. */
  readonly series: Readonly<Record<string, number>>;
}

/** Returns why the program in this folder cannot be built on this machine; undefined if it can. */
export const whyNoPrometheus = (): Promise<string | undefined> => whyNoProgram(import.meta.dirname);

/** The Prometheus engine as a program, built from its Go module. */
export class Prometheus {
  readonly #program: GoProgram;

  private constructor(program: GoProgram) {
    this.#program = program;
  }

  static async build(): Promise<Prometheus> {
    return new Prometheus(await GoProgram.build(import.meta.dirname));
  }

  /** Evaluates all rules at each time of `scrapes`, and the queries at the end. */
  async evaluate(
    groups: readonly RuleGroup[],
    scrapes: readonly Scrape[],
    queries: readonly string[] = [],
  ): Promise<Evaluation> {
    const input = { rules: stringify({ groups }), queries, scrapes };
    return JSON.parse(await this.#program.run([], JSON.stringify(input)));
  }

  remove(): Promise<void> {
    return this.#program.remove();
  }
}
