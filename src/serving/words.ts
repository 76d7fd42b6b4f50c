import type { AttentionItem } from './attention.ts';
import type { ListedKey } from './key-list.ts';
import type { SyncView } from './controller-view.ts';
import type { Problem, Verdict } from './verdict.ts';

/** Formats a duration by its two largest units: `12ms`, `1.5s`, `3m 4s`, `2h 5m`. */
export function duration(ms: number | undefined): string {
  if (ms === undefined || !Number.isFinite(ms)) return '–';
  if (ms < 1) return ms <= 0 ? '0ms' : '<1ms';
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${seconds % 60}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
  return `${Math.floor(minutes / 60 / 24)}d ${Math.floor(minutes / 60) % 24}h`;
}

/** Formats bytes as mebibytes. */
export function mebibytes(bytes: number | undefined): string {
  return bytes === undefined ? '–' : `${Math.round(bytes / 2 ** 20)} MiB`;
}

/** Formats a rate with at most two decimals. */
export function rate(perSecond: number | undefined): string {
  if (perSecond === undefined) return '–';
  if (perSecond === 0 || perSecond >= 100) return String(Math.round(perSecond));
  return perSecond < 0.005 ? '<0.01' : perSecond.toFixed(perSecond < 10 ? 2 : 1);
}

/** Formats a share of 1: `12 %`. */
export function percent(share: number | undefined): string {
  return share === undefined ? '–' : `${Math.round(100 * share)} %`;
}

/** Formats an amount with its noun: `1 key`, `3 keys`. */
export function countText(amount: number, noun: string): string {
  return `${amount} ${noun}${amount === 1 ? '' : 's'}`;
}

/** Formats a time of day with milliseconds. */
export function timeOfDay(rfc3339: string): string {
  const date = new Date(rfc3339);
  if (Number.isNaN(date.getTime())) return rfc3339;
  const two = (amount: number) => String(amount).padStart(2, '0');
  const ms = String(date.getMilliseconds()).padStart(3, '0');
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${ms}`;
}

/** Formats a time as `15:04:05`, with the date if it is another day. */
export function moment(rfc3339: string, nowMs: number): string {
  const time = timeOfDay(rfc3339).slice(0, 8);
  const date = new Date(rfc3339);
  return date.toDateString() === new Date(nowMs).toDateString()
    ? time
    : `${date.toDateString().slice(4, 10)} ${time}`;
}

/** Formats what is wrong: `API server unreachable since 15:04:05`. */
export function verdictHeading({ text, since }: Problem, nowMs: number): string {
  return since === undefined ? text : `${text} since ${moment(since, nowMs)}`;
}

/** Formats a problem with its reason: `API server unreachable since 15:04:05: connection refused`. */
export function verdictLine(problem: Problem, nowMs: number): string {
  return verdictHeading(problem, nowMs) + (problem.detail ? `: ${problem.detail}` : '');
}

/** Returns what is wrong with a program, the worst first; without a problem, that nothing is. */
export function problemsOf({ problems, isReady }: Verdict): readonly Problem[] {
  if (problems.some(({ tone }) => tone !== 'neutral') || !isReady) return problems;
  const text = 'Nothing is wrong';
  const detail = 'the checks pass, no key fails, and no object reports that it is not ready';
  return [...problems, { tone: 'neutral', text, detail }];
}

/** Returns what to do about a problem, unless the problem before it has the same step. */
export function stepAt(problems: readonly Problem[], at: number): string | undefined {
  const step = problems[at]?.step;
  return step === problems[at - 1]?.step ? undefined : step;
}

/** Formats whether `/readyz` passes. */
export function readinessText({ isReady }: Verdict): string {
  return isReady ? '/readyz passes' : '/readyz fails';
}

/** Words for what needs attention. */
export const PROBLEMS: Readonly<Record<AttentionItem['problem'], string>> = {
  failing: 'fails',
  stalled: 'stalled',
  notReady: 'not ready',
  recovered: 'recovered',
};

/** Words for the conditions of objects. */
export const CONDITIONS: Readonly<Record<NonNullable<ListedKey['condition']>, string>> = {
  ready: 'ready',
  notReady: 'not ready',
  stalled: 'stalled',
  unknown: 'no condition',
};

/** Words for the states of keys. */
export const STATES = {
  running: 'syncing',
  ready: 'waits for a worker',
  retry: 'waits after an error',
  delayed: 'waits for a time',
  idle: 'idle',
} as const;

/** Returns the state of a key, with the reason of a delay. */
export function stateOf(state: string, isFailing: boolean): keyof typeof STATES {
  if (state === 'delayed' && isFailing) return 'retry';
  return state in STATES ? (state as keyof typeof STATES) : 'idle';
}

/** Returns whether a sync with this result failed. */
export function isFailedResult(result: string | undefined): boolean {
  return result !== undefined && /error|panic/i.test(result);
}

/** Equal syncs of a key that follow each other. */
export interface FoldedSync<S> {
  /** The last one. */
  readonly sync: S;
  readonly times: number;
  /** Start of the first one, RFC 3339. */
  readonly since: string;
}

/** Folds syncs with the same causes, calls and result that follow each other. The newest one comes first. */
export function foldSyncs<S extends Pick<SyncView, 'startedAt' | 'causes' | 'calls' | 'end'>>(
  syncs: readonly S[],
): FoldedSync<S>[] {
  const folded: FoldedSync<S>[] = [];
  let former: string | undefined;
  for (const sync of syncs.toReversed()) {
    const last = folded.at(-1);
    const content = contentOf(sync);
    if (last && content === former) {
      folded[folded.length - 1] = { ...last, times: last.times + 1, since: sync.startedAt };
    } else folded.push({ sync, times: 1, since: sync.startedAt });
    former = content;
  }
  return folded;
}

/** A text that is equal for equal syncs. A running sync is unlike all others. */
function contentOf({
  startedAt,
  causes,
  calls,
  end,
}: Pick<SyncView, 'startedAt' | 'causes' | 'calls' | 'end'>): string {
  return JSON.stringify([
    end ? [end.result, end.error, end.reason] : startedAt,
    causes.map(({ text, changes }) => [text, changes]),
    calls.map(({ verb, resource, at, code, error }) => [verb, resource, at, code, error]),
  ]);
}
