import { columnLines } from '../table-printer.ts';

/** What was found out about one thing. */
export interface Row {
  /** What was looked at: `CRD counts.demo.mark8s.io`. */
  readonly check: string;
  /** `warning`: it works, or may. `skipped`: it could not be found out. Only `failed` counts. */
  readonly result: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly detail: string;
  /** What to do about it: a sentence, or a command. */
  readonly next?: readonly string[];
}

export function ok(check: string, detail: string): Row {
  return { check, result: 'ok', detail };
}

export function warning(check: string, detail: string, ...next: readonly string[]): Row {
  return { check, result: 'warning', detail, next };
}

export function failed(check: string, detail: string, ...next: readonly string[]): Row {
  return { check, result: 'failed', detail, next };
}

export function skipped(check: string, detail: string): Row {
  return { check, result: 'skipped', detail };
}

export function allPassed(rows: readonly Row[]): boolean {
  return !rows.some(({ result }) => result === 'failed');
}

/** A table for people; under each row that is not well stands what to do. */
export function rowLines(rows: readonly Row[]): string[] {
  const [head = '', ...lines] = columnLines([
    ['CHECK', 'RESULT', 'DETAIL'],
    ...rows.map(({ check, result, detail }) => [check, shown(result), visible(detail)]),
  ]);
  const table = lines.flatMap((line, at) => {
    const { next = [] } = rows[at] ?? {};
    return [line].concat(next.map((step) => `    ${visible(step)}`));
  });
  return [head, ...table, verdict(rows)];
}

/** What a script reads. */
export function rowsJson(rows: readonly Row[]): string {
  return JSON.stringify({ ok: allPassed(rows), checks: rows }, undefined, 2);
}

function verdict(rows: readonly Row[]): string {
  const count = (result: Row['result']) => rows.filter((row) => row.result === result).length;
  const failures = count('failed');
  if (failures === 0) return count('warning') === 0 ? 'All checks passed.' : 'No check failed.';
  return `${failures} of ${rows.length} ${rows.length === 1 ? 'check' : 'checks'} failed.`;
}

/** A failure must be seen in a long table without colours. */
function shown(result: Row['result']): string {
  return result === 'failed' ? 'FAILED' : result;
}

/** Of what servers and files say nothing drives the terminal, and nothing breaks the table. */
function visible(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll(/\p{Cc}/gu, '�');
}
