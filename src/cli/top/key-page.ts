import type { SyncRecord } from '../../manager/sync-history.ts';
import { formatCall } from '../../manager/sync-history.ts';
import { formatPostponement } from '../../manager/sync-log.ts';
import { CONDITIONS, foldSyncs, moment, stateOf, STATES } from '../../serving/words.ts';
import { formatCause } from '../../workqueue/queue-item.ts';
import type { Cause } from '../../workqueue/queue-item.ts';
import type { Span, Style } from './grid.ts';
import type { KeyReport, KeyStatus } from './snapshot.ts';
import { resultStyle } from './tables.ts';
import { durationCell, printable, wrap } from './text.ts';

/** Data of the page of a key, or why there is none. */
export type KeyPageData = KeyReport | { readonly controllers?: undefined; readonly error: string };

/** Width of the labels. */
const LABEL = 10;

/**
 * Returns the page of a key: its object, its state, and its last syncs, the newest first.
 *
 * @param nowMs time of the program
 */
export function keyPage(data: KeyPageData | undefined, width: number, nowMs: number): Span[][] {
  if (!data) return [[{ text: 'Loading ...', style: 'faint' }]];
  if (!data.controllers) return [[{ text: data.error, style: 'alarm' }]];
  const { controllers, owner, error = 'No sync of it is remembered' } = data;
  if (controllers.length === 0) {
    return wrap(`${error}.`, width).map((text) => [{ text, style: 'warning' }]);
  }
  return [
    ...objectLines(data, width, nowMs),
    ...controllers.flatMap((status, at) => {
      const lines = statusLines(status, owner, width);
      if (at > 0) lines.unshift([]);
      return lines;
    }),
  ];
}

/** What the conditions of the object report, and what its owned objects do if it is not ready. */
function objectLines({ object }: KeyReport, width: number, nowMs: number): Span[][] {
  if (!object) return [];
  const { condition, ownedProblems = [] } = object;
  const { state, since, message } = condition;
  if (state === 'unknown') return [];
  const when = since === undefined ? '' : ` since ${moment(since, nowMs)}`;
  const text = `${CONDITIONS[state]}${when}: ${message}`;
  const style = ({ ready: 'good', notReady: 'warning', stalled: 'alarm' } as const)[state];
  return [
    ...field('OBJECT', text, width, style),
    ...(state === 'ready' ? [] : ownedProblems).flatMap((problem) => field('', problem, width)),
  ];
}

function statusLines(status: KeyStatus, owner: KeyReport['owner'], width: number): Span[][] {
  const { controller, causes = [], hotLoop, history } = status;
  const lines = [
    ...field('QUEUE', controller, width, 'heading'),
    ...field('STATE', stateText(status), width, status.state === 'running' ? 'good' : 'plain'),
  ];
  if (owner) {
    const holder = owner.isThisProcess ? 'this process' : owner.holder || 'no process';
    lines.push(
      ...field(
        'LEASE',
        `${owner.lease}, held by ${holder}`,
        width,
        owner.isThisProcess ? 'plain' : 'warning',
      ),
    );
  }
  // The causes of a running sync are those of the last sync below.
  if (status.state !== 'running') lines.push(...causeLines('WHY', causes, width));
  if (hotLoop) {
    const { times, withinMs, object, fields } = hotLoop;
    const text = `${times} changes within ${durationCell(withinMs)} of ${object}: ${fields.join(', ')}`;
    lines.push(...field('HOT LOOP', text, width, 'alarm'));
  }
  if (!history) return [...lines, [], [{ text: 'no sync is remembered', style: 'faint' }]];
  const { syncs, failures, busyMs, last } = history;
  const totals = `${syncs}, of which ${failures} failed; ${durationCell(busyMs)} in total`;
  lines.push(...field('SYNCS', totals, width, failures > 0 ? 'warning' : 'plain'));
  for (const { sync, times, since } of foldSyncs(last)) {
    lines.push([], ...syncLines(sync, width));
    if (times > 1)
      lines.push(...field('', `${times} equal syncs since ${since}`, width, 'warning'));
  }
  return lines;
}

function stateText({ state, forMs, queuedMs, dueInMs, again, history }: KeyStatus): string {
  const since = forMs ?? queuedMs;
  const time =
    dueInMs === undefined
      ? since !== undefined && ` for ${durationCell(since)}`
      : `, due in ${durationCell(dueInMs)}`;
  const words = STATES[stateOf(state, history?.failingSince !== undefined)];
  return `${words}${time || ''}${again ? ', and queued again' : ''}`;
}

function syncLines(record: SyncRecord, width: number): Span[][] {
  const { startedAt, causes, omittedCauses, attempt, delayedMs, queuedMs, postponed } = record;
  const { calls, omittedCalls, reconcileID, end } = record;
  const waits = [
    ...(delayedMs > 0 ? [`delayed ${durationCell(delayedMs)}`] : []),
    `queued ${durationCell(queuedMs)}`,
    ...postponed.map(formatPostponement),
  ];
  const title: Span[] = [
    { text: startedAt, style: 'heading' },
    end
      ? { text: `  ${end.result}`, style: end.result === 'done' ? 'good' : resultStyle(end.result) }
      : { text: '  running', style: 'good' },
    {
      text: `${end ? `  ${durationCell(end.tookMs)}` : ''}${attempt > 1 ? `  attempt ${attempt}` : ''}`,
      style: 'plain',
    },
    { text: `  ${reconcileID}`, style: 'faint' },
  ];
  const lines = [
    title,
    ...causeLines('  why', causes, width),
    ...more(omittedCauses, width),
    ...field('  waited', waits.join(', '), width),
  ];
  for (const [at, call] of calls.entries()) {
    const style = call.error === undefined ? 'plain' : 'alarm';
    lines.push(...field(at === 0 ? '  calls' : '', formatCall(call), width, style));
  }
  lines.push(...more(omittedCalls, width));
  if (end?.error !== undefined) lines.push(...field('  error', end.error, width, 'alarm'));
  if (end?.requeueAfterMs !== undefined) {
    const reason = end.reason === undefined ? '' : `: ${end.reason}`;
    lines.push(...field('  next', `in ${durationCell(end.requeueAfterMs)}${reason}`, width));
  } else if (end?.reason !== undefined) {
    lines.push(...field('  reason', end.reason, width));
  }
  return lines;
}

function causeLines(label: string, causes: readonly Cause[], width: number): Span[][] {
  return causes.flatMap((cause, at) =>
    field(
      at === 0 ? label : '',
      formatCause(cause),
      width,
      cause.text.startsWith('retry after an error') ? 'alarm' : 'plain',
    ),
  );
}

function more(omitted: number, width: number): Span[][] {
  return omitted > 0 ? field('', `... and ${omitted} more`, width, 'faint') : [];
}

/** A label and a text of any length. */
function field(label: string, text: string, width: number, style: Style = 'plain'): Span[][] {
  return wrap(printable(text), Math.max(10, width - LABEL)).map((line, at) => [
    { text: (at === 0 ? label : '').padEnd(LABEL), style: 'faint' },
    { text: line, style },
  ]);
}
