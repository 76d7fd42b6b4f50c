import { readFileSync } from 'node:fs';
import type { TestResult } from './run.ts';

/** A difference between the planes that is accepted. */
interface Reason {
  /** Regular expression of the full names of tests. */
  readonly tests: string;
  readonly reason: string;
}

const REASONS = new URL('reasons.json', import.meta.url);

/** A test that only the real plane passes. */
interface Difference {
  readonly test: TestResult;
  readonly failure: string;
  readonly reason: string | undefined;
}

export interface Comparison {
  readonly table: readonly TableRow[];
  readonly differences: readonly Difference[];
  /** Patterns of reasons that match no difference, although a test that they match ran. */
  readonly stale: readonly string[];
}

/** Numbers of the tests of a group. */
interface TableRow {
  readonly suite: string;
  readonly group: string;
  /** Tests that the real plane passes. */
  readonly real: number;
  /** Those of them that ours passes. */
  readonly ours: number;
  /** Durations of the program with these tests, in seconds. */
  readonly oursSeconds: number | undefined;
  readonly realSeconds: number | undefined;
}

/** Compares the outcomes of the same tests. Tests that the real plane fails or skips are not counted. */
export function compare(ours: readonly TestResult[], real: readonly TestResult[]): Comparison {
  const reasons = JSON.parse(readFileSync(REASONS, 'utf8')) as readonly Reason[];
  const patterns = reasons.map(({ tests, reason }) => ({ pattern: new RegExp(tests), reason }));
  const byKey = new Map(ours.map((test) => [keyOf(test), test]));
  const expected = real.filter(({ failure }) => failure === undefined);
  const differences = expected.flatMap((test) => {
    const own = byKey.get(keyOf(test));
    const failure = own ? own.failure : 'did not run';
    if (failure === undefined) return [];
    const reason = patterns.find(({ pattern }) => pattern.test(test.name))?.reason;
    return [{ test, failure, reason }];
  });
  const failed = new Set(differences.map(({ test }) => test));
  const groups = Map.groupBy(expected, ({ suite, group }) => `${suite} ${group}`);
  const table = [...groups.values()].map((tests) => ({
    suite: tests[0]?.suite ?? '',
    group: tests[0]?.group ?? '',
    real: tests.length,
    ours: tests.filter((test) => !failed.has(test)).length,
    oursSeconds: tests.map((test) => byKey.get(keyOf(test))).find(Boolean)?.programSeconds,
    realSeconds: tests[0]?.programSeconds,
  }));
  const stale = patterns
    .filter(({ pattern }) => expected.some(({ name }) => pattern.test(name)))
    .filter(({ pattern }) => !differences.some(({ test }) => pattern.test(test.name)))
    .map(({ pattern }) => pattern.source);
  return { table: table.toSorted(byName), differences, stale };
}

/** Returns the comparison as text. */
export function format({ table, differences, stale }: Comparison): string {
  const cells = [
    ['suite', 'group', 'ours', 'real', 'ours (s)', 'real (s)'],
    ...table.map(({ suite, group, ours, real, oursSeconds = '', realSeconds = '' }) =>
      [suite, group, ours, real, oursSeconds, realSeconds].map(String),
    ),
  ];
  const widths = [0, 1, 2, 3, 4, 5].map((at) =>
    Math.max(...cells.map((row) => row[at]?.length ?? 0)),
  );
  const rows = cells.map((row) =>
    row.map((cell, at) => (at < 2 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))),
  );
  const lines = rows.map((row) => row.join('  '));
  if (differences.length > 0) lines.push('', 'Tests that only the real plane passes:');
  for (const { test, failure, reason } of differences) {
    lines.push(`- ${test.group}: ${test.name}`, `  failure: ${failure}`);
    lines.push(`  reason: ${reason ?? 'UNKNOWN'}`);
  }
  if (stale.length > 0) lines.push('', 'Reasons without a failing test; delete them:');
  return [...lines, ...stale.map((pattern) => `- ${pattern}`)].join('\n');
}

function keyOf({ suite, group, name }: TestResult): string {
  return `${suite}\n${group}\n${name}`;
}

function byName(one: TableRow, other: TableRow): number {
  return `${one.suite} ${one.group}` < `${other.suite} ${other.group}` ? -1 : 1;
}
