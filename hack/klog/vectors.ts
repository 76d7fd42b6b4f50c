/**
 * Writes what the real klog makes of the curated calls, for tests that have no Go to ask it:
 *
 *     node hack/klog/vectors.ts            write test/unit/cli/klog-vectors.jsonl
 *     node hack/klog/vectors.ts --check    fail if it is not what would be written
 *
 * Run it after a change of curated.ts, of main.go or of a version in go.mod; `npm run test:real`
 * checks it, where there is a Go.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LogCall } from './call.ts';
import { CURATED, ORDINARY_CALL } from './curated.ts';
import type { Curated } from './curated.ts';
import { withRealKlog } from './real-klog.ts';
import type { RealKlog } from './real-klog.ts';

/** A curated call and what the real ones make of it. */
export interface Vector extends Curated {
  /** As klog writes it in a process with the id 4866. */
  readonly text: string;
  /**
   * The line of JSON as an object, without its time and its caller; null if nothing is shown, and
   * where ours is another: zap takes the present time for any date.
   */
  readonly json: Readonly<Record<string, unknown>> | null;
}

export const VECTORS: string = join(import.meta.dirname, '../../test/unit/cli/klog-vectors.jsonl');

export const PID = 4866;

/** What belongs into the file of vectors. */
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

/** `text` with our id in place of the one it was written by. */
function withPid(text: string, pid: number): string {
  const ids = [pid, PID].map((id) => ` ${String(id).padStart(7)} `);
  return text.replace(ids[0] ?? '', ids[1] ?? '');
}

/** A line of JSON without what no two runs have in common. */
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
