import { columnLines } from '../table-printer.ts';

/** What was found out about one thing. */
export interface CheckResult {
  /** What was looked at: `CRD counts.demo.mark8s.io`. */
  readonly check: string;
  /** `warning`: it works, or may. `skipped`: it could not be found out. Only `failed` counts. */
  readonly result: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly detail: string;
  /** What to do about it: a sentence, or a command. */
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

/** A table for people; under each row that is not well stands what to do. */
export function formatResults(results: readonly CheckResult[]): string[] {
  const [head = '', ...lines] = columnLines([
    ['CHECK', 'RESULT', 'DETAIL'],
    ...results.map(({ check, result, detail }) => [check, shown(result), visible(detail)]),
  ]);
  const table = lines.flatMap((line, at) => {
    const { next = [] } = results[at] ?? {};
    return [line].concat(next.map((step) => `    ${visible(step)}`));
  });
  return [head, ...table, verdict(results)];
}

/** What a script reads. */
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

/** A failure must be seen in a long table without colours. */
function shown(result: CheckResult['result']): string {
  return result === 'failed' ? 'FAILED' : result;
}

/** Of what servers and files say nothing drives the terminal, and nothing breaks the table. */
function visible(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll(/\p{Cc}/gu, '�');
}
