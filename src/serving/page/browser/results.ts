import { isProblem } from '../../object-condition.ts';
import type { CallView, SyncView } from '../../controller-view.ts';
import { duration } from '../../words.ts';

/** Meaning of a badge. */
export type Tone = 'good' | 'warning' | 'bad' | 'neutral';

/** Returns the outcome of a sync in words. */
export function outcomeOf({ end }: SyncView): string {
  if (!end) return 'still running';
  const { result, requeueAfterMs, reason } = end;
  const next = requeueAfterMs === undefined ? '' : `; again after ${duration(requeueAfterMs)}`;
  return `${result}${next}${reason ? ` (${reason})` : ''}`;
}

/** Returns the status and the error of a call, or `ok`. */
export function callResult({ code, error = '' }: Pick<CallView, 'code' | 'error'>): string {
  return `${code || ''} ${error}`.trim() || 'ok';
}

/** Returns whether a condition reports a problem. */
export function toneOfCondition(condition: {
  readonly type?: string;
  readonly status?: string;
}): Tone {
  if (condition.status === 'Unknown') return 'neutral';
  return isProblem(condition) ? 'warning' : 'good';
}

/** Tones of conditions and problems. */
export const TONES: Readonly<Record<string, Tone>> = {
  failing: 'bad',
  stalled: 'bad',
  notReady: 'warning',
  ready: 'good',
};
