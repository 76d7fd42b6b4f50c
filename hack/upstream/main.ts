/**
 * Runs test suites of other projects against the embedded API server with its cluster controllers and against
 * Kubernetes' own control plane, and compares the outcomes.
 *
 *   npm run upstream [-- OPTION…]
 *
 *   --suite NAME     controller-runtime, kubernetes, apiextensions or operators; default: all
 *   --plane NAME     ours or real; for the other plane, the outcomes of its last complete run are used
 *   --focus REGEX    runs the tests with a matching name only
 *
 * Needs Go. The suites are built from their Go modules in the user's cache. Exits with 1 if only the real plane
 * passes a test and hack/upstream/reasons.json has no reason, or if a reason there is outdated.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { BinariesUnavailable, userCache } from '../envtest/binaries.ts';
import { compare, format } from './comparison.ts';
import { assetsOf, PLANES, startPlane } from './plane.ts';
import type { PlaneName } from './plane.ts';
import { needsCluster, programsOf, runProgram } from './run.ts';
import type { TestResult } from './run.ts';
import { SUITES } from './suites.ts';
import type { SuiteName } from './suites.ts';

const { values: options } = parseArgs({
  options: { suite: { type: 'string' }, plane: { type: 'string' }, focus: { type: 'string' } },
});

try {
  await main();
} catch (error) {
  const isUnavailable = error instanceof BinariesUnavailable;
  console.error('upstream:', isUnavailable ? `SKIPPED: ${error.message}` : error);
  process.exitCode = isUnavailable ? 0 : 2;
}

async function main(): Promise<void> {
  const suites = choice('suite', SUITES, options.suite);
  const planes = choice('plane', PLANES, options.plane);
  const outcomes: Record<PlaneName, TestResult[]> = { ours: [], real: [] };
  // The last runs first: if one is missing, nothing needs to run.
  for (const plane of PLANES.toSorted((name) => (planes.includes(name) ? 1 : -1))) {
    for (const suite of suites) {
      const results = planes.includes(plane)
        ? await run(suite, plane)
        : await lastRun(suite, plane);
      outcomes[plane].push(...results);
    }
  }
  const focus = new RegExp(options.focus ?? '');
  const real = outcomes.real.filter(({ name }) => focus.test(name));
  const comparison = compare(outcomes.ours, real);
  console.log(format(comparison));
  const unexplained = comparison.differences.filter(({ reason }) => reason === undefined);
  if (unexplained.length + comparison.stale.length > 0) process.exitCode = 1;
}

function choice<T extends string>(
  option: string,
  known: readonly T[],
  wanted: string | undefined,
): readonly T[] {
  const chosen = known.filter((name) => wanted === undefined || name === wanted);
  if (chosen.length > 0) return chosen;
  throw new Error(`--${option}: expected ${known.join(' or ')}, got ${wanted}`);
}

/** Runs each program of a suite on a new plane. Complete outcomes are kept for `--plane`. */
async function run(suite: SuiteName, name: PlaneName): Promise<readonly TestResult[]> {
  const results: TestResult[] = [];
  for (const program of programsOf(suite)) {
    const plane =
      suite === 'operators'
        ? await assetsOf(name, report)
        : await startPlane(name, needsCluster(suite, program, name), report);
    try {
      report(`running ${program} on ${name}`);
      const runOptions = { focus: options.focus, report };
      const start = performance.now();
      const tests = await runProgram(suite, program, plane, runOptions);
      const programSeconds = Math.round((performance.now() - start) / 1000);
      for (const test of tests) results.push({ ...test, programSeconds });
    } finally {
      await plane.stop();
    }
  }
  if (options.focus === undefined) {
    await mkdir(userCache('upstream'), { recursive: true });
    await writeFile(outcomesFile(suite, name), JSON.stringify(results, undefined, 1));
  }
  return results;
}

async function lastRun(suite: SuiteName, plane: PlaneName): Promise<readonly TestResult[]> {
  try {
    return JSON.parse(await readFile(outcomesFile(suite, plane), 'utf8')) as TestResult[];
  } catch (cause) {
    throw new Error(`${suite} has not run on ${plane}: omit --plane once`, { cause });
  }
}

function outcomesFile(suite: SuiteName, plane: PlaneName): string {
  return join(userCache('upstream'), `${suite}-${plane}.json`);
}

function report(line: string): void {
  console.error(`upstream: ${line}`);
}
