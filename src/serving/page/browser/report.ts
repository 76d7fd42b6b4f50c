import { formatCause } from '../../../workqueue/queue-item.ts';
import type { SyncView } from '../../queue-pages.ts';
import { duration, mebibytes, percent, rate } from './format.ts';
import type { KeyState } from './key-state.ts';
import type { Overview } from './monitor.ts';
import { callResult, outcomeOf } from './results.ts';
import { roleOf } from './election.ts';

/** Returns the overview as text, for an incident report. */
export function overviewText({ status, queues, controllers, calls, cpu, loop }: Overview): string {
  const role = roleOf(status);
  return [
    `${status.name ?? 'Controllers'} ${status.version}, ${status.now}, up ${duration(status.upMs)}`,
    `${role.text}. ${role.note}`,
    `Memory ${mebibytes(status.process.residentBytes)}, CPU ${percent(cpu)}, event loop ${percent(loop)} busy`,
    '',
    ...controllers.map(
      (row) =>
        `${row.controller}: ready ${row.ready} (oldest ${duration(row.oldestMs)}), delayed ${row.delayed}, workers ${row.running}/${row.workers ?? '?'}, ${rate(row.syncsPerSecond)} syncs/s, ${rate(row.errorsPerSecond)} errors/s, ${row.hotLoops} hot loops`,
    ),
    '',
    ...status.informers.map(
      ({ name, state, hasSynced, objects, inactiveMs, error }) =>
        `${name}: ${state}${hasSynced ? '' : ', not synced'}, ${objects} objects, active ${duration(inactiveMs)} ago${error === undefined ? '' : `, ${error}`}`,
    ),
    '',
    ...calls.map(
      ({ verb, codes, p99Ms }) =>
        `${verb}: ${codes.map(({ code, total }) => `${code} ${total}`).join(', ')}; p99 ${duration(p99Ms)}`,
    ),
    '',
    ...queues.failing.map(
      ({ controller, key, failures, syncs, hasRecovered, startedAt, error }) =>
        `${hasRecovered ? 'recovered' : 'failing'}: ${controller} ${key}: ${failures} of ${syncs} syncs failed, last at ${startedAt}: ${error}`,
    ),
    ...queues.slowest
      .slice(0, 5)
      .map(
        ({ controller, key, tookMs, result }) =>
          `slow: ${controller} ${key}: ${duration(tookMs)}, ${result}`,
      ),
    ...queues.hottest
      .slice(0, 5)
      .map(
        ({ controller, key, syncsPerMinute }) =>
          `hot: ${controller} ${key}: ${rate(syncsPerMinute)} syncs/min`,
      ),
    '',
  ].join('\n');
}

/** Returns the state and the last syncs of a key as text. */
export function keyText(key: string, { controller, state, dueInMs, history }: KeyState): string {
  const next = dueInMs === undefined ? '' : `, next sync in ${duration(dueInMs)}`;
  const syncs = (history?.last ?? []).toReversed().flatMap(syncLines);
  return [`${controller} ${key}: ${state}${next}`, ...syncs, ''].join('\n');
}

function syncLines(sync: SyncView): string[] {
  const { startedAt, reconcileID, attempt, delayedMs, queuedMs, causes, calls, end } = sync;
  const took = end ? `, took ${duration(end.tookMs)}` : '';
  const lines = [
    '',
    `${startedAt} sync ${reconcileID}, attempt ${attempt}: ${outcomeOf(sync)}${took}`,
    `  waited ${duration(delayedMs)} delayed, ${duration(queuedMs)} for a worker`,
  ];
  if (end?.error !== undefined) lines.push(`  error: ${end.error}`);
  for (const cause of causes) {
    lines.push(`  cause: ${formatCause(cause)}`);
    for (const { field, before = 'absent', after = 'absent' } of cause.changes ?? []) {
      lines.push(`    ${field}: ${before} -> ${after}`);
    }
  }
  for (const call of calls) {
    const { verb, resource, at, ms } = call;
    const words = [verb, resource, at, callResult(call), duration(ms)].filter(
      (word) => word !== '',
    );
    lines.push(`  call: ${words.join(' ')}`);
  }
  return lines;
}
