import { formatCause } from '../../../workqueue/queue-item.ts';
import type { SyncView } from '../../controller-view.ts';
import {
  duration,
  mebibytes,
  percent,
  problemsOf,
  verdictLine,
  PROBLEMS,
  rate,
  readinessText,
  stateOf,
  stepAt,
  STATES,
} from '../../words.ts';
import type { Problem } from '../../verdict.ts';
import type { KeyState } from './key-state.ts';
import type { Overview } from './monitor.ts';
import { callResult, outcomeOf } from './results.ts';
import { roleOf } from './election.ts';

/** Returns the overview as text, for an incident report. */
export function overviewText({ status, queues, controllers, calls, steps }: Overview): string {
  const role = roleOf(status);
  const nowMs = Date.parse(status.now);
  const { verdict } = status;
  const { cpu, loop } = steps.at(-1) ?? {};
  const problemLines = (problem: Problem, at: number, all: readonly Problem[]) => [
    verdictLine(problem, nowMs),
    ...[stepAt(all, at), problem.command].flatMap((text) => (text ? [`  ${text}`] : [])),
  ];
  return [
    `${status.name ?? 'Controllers'} ${status.version}, ${status.now}, up ${duration(status.upMs)}`,
    ...(verdict ? problemsOf(verdict).flatMap(problemLines) : []),
    ...(verdict ? [readinessText(verdict)] : []),
    `${role.text}. ${role.note}`,
    `Memory ${mebibytes(status.process.residentBytes)}, CPU ${percent(cpu)}, event loop ${percent(loop)} busy`,
    '',
    ...controllers.map(
      ({ controller, queue, workers, syncsPerSecond, errorsPerSecond }) =>
        `${controller}: objects ready ${queue.objects?.ready ?? '?'}, not ready ${queue.objects?.notReady ?? '?'}, stalled ${queue.objects?.stalled ?? '?'}; keys waiting ${queue.ready.count} (oldest ${duration(queue.ready.oldestMs)}), delayed ${queue.delayed.count}; workers ${queue.processing.count}/${workers ?? '?'}, ${rate(syncsPerSecond)} syncs/s, ${rate(errorsPerSecond)} errors/s, last failure ${queue.lastFailure?.at ?? 'none'}, ${queue.hotLoops.length} hot loops`,
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
    ...queues.attention.map(
      ({ controller, key, problem, since, message }) =>
        `${PROBLEMS[problem]}: ${controller} ${key} since ${since ?? 'unknown'}: ${message}`,
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
  const words = STATES[stateOf(state, history?.failingSince !== undefined)];
  const syncs = (history?.last ?? []).toReversed().flatMap(syncLines);
  return [`${controller} ${key}: ${words}${next}`, ...syncs, ''].join('\n');
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
