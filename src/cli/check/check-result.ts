import { printableLine } from '../../util/printable.ts';
import { columnLines } from '../common/table-printer.ts';

/** Result of one check. */
export interface CheckResult {
  /** Name of the check: `CRD counts.demo.mark8s.io`. */
  readonly check: string;
  /** `warning`: the program works, or may work. `skipped`: unknown. Only `failed` changes the exit code. */
  readonly result: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly detail: string;
  /** Next steps: sentences or commands. */
  readonly next?: readonly string[];
}

export function ok(check: string, detail: string): CheckResult {
  return { check, result: 'ok', detail };
}

export function warning(check: string, detail: string, ...next: readonly string[]): CheckResult {
  return { check, result: 'warning', detail, next };
}

export function failed(check: string, detail: string, ...next: readonly string[]): CheckResult {
  return { check, result: 'failed', detail, next };
}

export function skipped(check: string, detail: string): CheckResult {
  return { check, result: 'skipped', detail };
}

export function allPassed(results: readonly CheckResult[]): boolean {
  return !results.some(({ result }) => result === 'failed');
}

/** Returns the results as a table, with the next steps below each failed check or warning. */
export function formatResults(results: readonly CheckResult[]): string[] {
  const [head = '', ...lines] = columnLines([
    ['CHECK', 'RESULT', 'DETAIL'],
    ...results.map(({ check, result, detail }) => [
      visible(check),
      wordOf(result),
      visible(detail),
    ]),
  ]);
  const table = lines.flatMap((line, at) => {
    const { next = [] } = results[at] ?? {};
    return [line].concat(next.map((step) => `    ${visible(step)}`));
  });
  return [head, ...table, verdict(results)];
}

/** Returns the results as JSON, for scripts. */
export function resultsJson(results: readonly CheckResult[]): string {
  return JSON.stringify({ ok: allPassed(results), checks: results }, undefined, 2);
}

function verdict(results: readonly CheckResult[]): string {
  const count = (result: CheckResult['result']) =>
    results.filter((row) => row.result === result).length;
  const failures = count('failed');
  if (failures === 0) return count('warning') === 0 ? 'All checks passed.' : 'No check failed.';
  return `${failures} of ${results.length} ${results.length === 1 ? 'check' : 'checks'} failed.`;
}

/** Capitals make a failure visible in a long table without colours. */
function wordOf(result: CheckResult['result']): string {
  return result === 'failed' ? 'FAILED' : result;
}

/** Returns text of servers and files as one line without control characters. */
function visible(text: string): string {
  return printableLine(text.replaceAll(/\s+/g, ' '));
}
