import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import type { RuleGroup } from '../../test/support/observability.ts';
import type { Scrape } from '../../test/support/scraped-daemons.ts';

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
export async function whyNoPrometheus(): Promise<string | undefined> {
  try {
    await go('mod', 'download');
    return undefined;
  } catch (error) {
    return `cannot download its Go modules: ${error instanceof Error ? error.message.trim() : String(error)}`;
  }
}

/** The Prometheus engine as a program, built from its Go module. The first build takes minutes. */
export class Prometheus {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async build(): Promise<Prometheus> {
    const folder = await mkdtemp(join(tmpdir(), 'promql-'));
    await go('build', '-trimpath', '-o', join(folder, 'promql'), '.');
    return new Prometheus(folder);
  }

  /** Evaluates all rules at each time of `scrapes`, and the queries at the end. */
  async evaluate(
    groups: readonly RuleGroup[],
    scrapes: readonly Scrape[],
    queries: readonly string[] = [],
  ): Promise<Evaluation> {
    const child = spawn(join(this.#folder, 'promql'), [], { stdio: ['pipe', 'pipe', 'inherit'] });
    const input = { rules: stringify({ groups }), queries, scrapes };
    child.stdin.end(JSON.stringify(input));
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
    if (code !== 0) throw new Error(`The program ended with ${code}`);
    return JSON.parse(output) as Evaluation;
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

async function go(...args: readonly string[]): Promise<void> {
  await promisify(execFile)('go', args, {
    cwd: import.meta.dirname,
    env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false', GOWORK: 'off' },
  });
}
