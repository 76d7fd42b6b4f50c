/**
 * Writes klog's output for the curated calls, for tests on machines without Go:
 *
 *     node hack/klog/vectors.ts            write test/unit/cli/klog-vectors.jsonl
 *     node hack/klog/vectors.ts --check    fail if the file is outdated
 *
 * Run it after a change of curated.ts, of main.go or of a version in go.mod. `npm run test:real` checks the
 * file if Go is installed.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LogCall } from './call.ts';
import { CURATED, ORDINARY_CALL } from './curated.ts';
import type { Curated } from './curated.ts';
import { withRealKlog } from './real-klog.ts';
import type { RealKlog } from './real-klog.ts';

/** A curated call and klog's output for it. */
export interface Vector extends Curated {
  /** The text by klog in a process with the id 4866. */
  readonly text: string;
  /**
   * The JSON line as an object without its time and caller. null if nothing is logged, or if our line differs:
   * zap replaces every date by the current time.
   */
  readonly json: Readonly<Record<string, unknown>> | null;
}

export const VECTORS: string = join(import.meta.dirname, '../../test/unit/cli/klog-vectors.jsonl');

export const PID = 4866;

/** Returns the content of the vectors file. */
export async function vectorsText(klog: RealKlog): Promise<string> {
  const calls = CURATED.map(({ call }): LogCall => Object.assign({}, ORDINARY_CALL, call));
  const { pid, lines } = await klog.lines(calls);
  return CURATED.map(({ about, call, differs }, index) => {
    const { text = '', json = '' } = lines[index] ?? {};
    const vector: Vector = {
      about,
      call,
      ...(differs && { differs }),
      text: withPid(text, pid),
      json: differs?.json ? null : comparable(json),
    };
    return `${visible(JSON.stringify(vector))}\n`;
  }).join('');
}

/** Returns `text` with our process id in place of the original one. */
function withPid(text: string, pid: number): string {
  const ids = [pid, PID].map((id) => ` ${String(id).padStart(7)} `);
  return text.replace(ids[0] ?? '', ids[1] ?? '');
}

/** Parses a JSON line, without the members that differ between runs. */
export function comparable(line: string): Record<string, unknown> | null {
  if (line === '') return null;
  const { ts: _ts, caller: _caller, ...rest }: Record<string, unknown> = JSON.parse(line);
  return rest;
}

/** Escapes characters that are invisible or hard to review. */
function visible(json: string): string {
  return json.replaceAll(
    /[^\x20-\x7E]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

if (import.meta.main) {
  const wanted = await withRealKlog(vectorsText);
  if (!process.argv.includes('--check')) writeFileSync(VECTORS, wanted);
  else if (readFileSync(VECTORS, 'utf8') !== wanted) {
    console.error(`${VECTORS} is stale: run node hack/klog/vectors.ts`);
    process.exitCode = 1;
  }
}
