import { formatCause } from '../../workqueue/queue-item.ts';
import type { Cause } from '../../workqueue/queue-item.ts';
import type { ObjectCounts } from '../../serving/attention.ts';
import { isFailedResult, moment, PROBLEMS, stateOf, STATES } from '../../serving/words.ts';
import type { InformerStatus } from '../../serving/debug-pages.ts';
import type { ProgramView, KeyView, QueueView } from './program-monitor.ts';
import type { Cell, GridColumn, Style } from './grid.ts';
import { durationCell, rateCell, roughly } from './text.ts';

/** A page of the view. */
export type PageId =
  | { readonly kind: 'overview' }
  | { readonly kind: 'queue'; readonly controller: string }
  /** Why a key runs. Without a controller, in all. */
  | { readonly kind: 'key'; readonly key: string; readonly controller?: string };

/** Table of a page; shows as many rows as there is room for. */
export interface TopTable {
  readonly id: string;
  readonly columns: readonly GridColumn[];
  readonly rows: readonly Row[];
  /** Text if there are no rows. */
  readonly nothing: string;
  /** Rows to show before other tables get more. */
  readonly fair: number;
}

export interface Row {
  /** Unique in the table. */
  readonly id: string;
  readonly cells: readonly Cell[];
  /** Page with more about the row. */
  readonly opens?: PageId;
}

/** Returns the tables of a page. Pages without tables show a text. */
export function tablesOf(program: ProgramView | undefined, page: PageId): TopTable[] {
  if (!program || page.kind === 'key') return [];
  if (page.kind === 'overview') {
    return [
      ...attention(program),
      queues(program),
      informers(program),
      hottest(program),
      slowest(program),
    ];
  }
  const isOfQueue = ({ controller }: { readonly controller: string }) =>
    controller === page.controller;
  const hotLoops = program.hotLoops.filter(isOfQueue);
  return [
    keys(program.keys.filter(isOfQueue)),
    ...(hotLoops.length > 0 ? [loops(hotLoops)] : []),
    hottest({ hottest: program.hottest.filter(isOfQueue) }),
    slowest({ slowest: program.slowest.filter(isOfQueue) }),
  ];
}

const QUEUE_COLUMNS: readonly GridColumn[] = [
  { title: 'QUEUE' },
  { title: 'READY', isNumber: true },
  { title: 'NOT READY', isNumber: true },
  { title: 'STALLED', isNumber: true },
  { title: 'WAITING', isNumber: true },
  { title: 'DELAYED', isNumber: true, spare: 2 },
  { title: 'WORKERS', isNumber: true },
  { title: 'WAIT P50', isNumber: true, spare: 5 },
  { title: 'P99', isNumber: true, spare: 1 },
  { title: 'SYNC P99', isNumber: true, spare: 3 },
  { title: 'ADDS/S', isNumber: true, spare: 2 },
  { title: 'RETRIES/S', isNumber: true, spare: 4 },
  { title: 'ERRORS/S', isNumber: true, spare: 3 },
  { title: 'HOT LOOPS', isNumber: true, spare: 6 },
];

function queues({ queues, status }: ProgramView): TopTable {
  const nowMs = Date.parse(status.now);
  return {
    id: 'queues',
    columns: QUEUE_COLUMNS,
    rows: queues.map((queue) => queueRow(queue, nowMs)),
    nothing: 'no controllers',
    fair: 8,
  };
}

function queueRow(queue: QueueView, nowMs: number): Row {
  const { controller, running, limit, errorsPerSecond, hotLoops } = queue;
  const isBusy = limit !== undefined && running >= limit;
  const perSecond = (value: number | undefined, style: Style = 'plain') =>
    number(value, rateCell(value), style);
  const objects = (state: keyof ObjectCounts, style: Style) => {
    const number = queue.objects?.[state] ?? 0;
    return count(number, number > 0 ? style : 'plain');
  };
  const lastFailure = queue.lastFailureAt && !errorsPerSecond ? queue.lastFailureAt : undefined;
  const time = (ms: number | undefined) => number(ms, durationCell(ms));
  return {
    id: controller,
    cells: [
      controller,
      objects('ready', 'plain'),
      objects('notReady', 'warning'),
      objects('stalled', 'alarm'),
      count(queue.ready, queue.ready > 0 && isBusy ? 'warning' : 'plain'),
      count(queue.delayed),
      number(running, `${running}/${limit ?? '?'}`, isBusy ? 'warning' : 'plain'),
      time(queue.waitP50Ms),
      time(queue.waitP99Ms),
      time(queue.runP99Ms),
      perSecond(queue.addsPerSecond),
      perSecond(queue.retriesPerSecond),
      lastFailure === undefined
        ? perSecond(errorsPerSecond, errorsPerSecond ? 'alarm' : 'plain')
        : number(0, `last ${moment(lastFailure, nowMs)}`),
      count(hotLoops, hotLoops > 0 ? 'alarm' : 'plain'),
    ],
    opens: { kind: 'queue', controller },
  };
}

/** Cause of a retry, as the worker pool writes it. */
const RETRY = /^retry after an error: /;

const KEY_COLUMNS: readonly GridColumn[] = [
  { title: 'KEY' },
  { title: 'STATE', spare: 2 },
  { title: 'FOR', isNumber: true, spare: 1 },
  { title: 'DUE IN', isNumber: true, spare: 1 },
  { title: 'WHY', spare: 1 },
];

function keys(keys: readonly KeyView[]): TopTable {
  return {
    id: 'keys',
    columns: KEY_COLUMNS,
    rows: keys.map(({ controller, key, state, forMs, dueInMs, causes }) => ({
      ...keyRow(controller, key),
      // A running key may also be queued.
      id: `${state} ${key}`,
      cells: [
        key,
        cellOf(
          STATES[
            stateOf(
              state,
              causes.some(({ text }) => RETRY.test(text)),
            )
          ],
          state === 'running' ? 'good' : 'plain',
        ),
        number(forMs, forMs === undefined ? '' : durationCell(forMs)),
        number(dueInMs, dueInMs === undefined ? '' : durationCell(dueInMs)),
        cellOf(why(causes), causes.some(({ text }) => RETRY.test(text)) ? 'alarm' : 'plain'),
      ],
    })),
    nothing: 'no key is queued or running',
    fair: 12,
  };
}

const ATTENTION_COLUMNS: readonly GridColumn[] = [
  { title: 'NEEDS ATTENTION' },
  { title: 'QUEUE', spare: 2 },
  { title: 'PROBLEM' },
  { title: 'SINCE', spare: 1 },
  { title: 'MESSAGE' },
];

/** Keys that fail, and objects that are stalled or not ready. The table is absent without them. */
function attention({ attention, status }: ProgramView): TopTable[] {
  const nowMs = Date.parse(status.now);
  const rows = attention.map(({ controller, key, problem, since, message }) => {
    const style = PROBLEM_STYLES[problem];
    const when = since === undefined ? '' : moment(since, nowMs);
    const cells = [key, controller, cellOf(PROBLEMS[problem], style), when, message];
    return { ...keyRow(controller, key), cells };
  });
  if (rows.length === 0) return [];
  return [{ id: 'attention', columns: ATTENTION_COLUMNS, rows, nothing: '', fair: 6 }];
}

const PROBLEM_STYLES: Readonly<Record<keyof typeof PROBLEMS, Style>> = {
  failing: 'alarm',
  stalled: 'alarm',
  notReady: 'warning',
  recovered: 'plain',
};

const LOOP_COLUMNS: readonly GridColumn[] = [
  { title: 'HOT LOOP' },
  { title: 'CHANGES', isNumber: true },
  { title: 'WITHIN', isNumber: true, spare: 1 },
  { title: 'OBJECT', spare: 2 },
  { title: 'FIELDS' },
];

function loops(hotLoops: ProgramView['hotLoops']): TopTable {
  return {
    id: 'loops',
    columns: LOOP_COLUMNS,
    rows: hotLoops.map(({ controller, key, times, withinMs, object, fields }, at) => ({
      ...keyRow(controller, key),
      id: `${key} ${object} ${at}`,
      cells: [
        key,
        count(times, 'alarm'),
        number(withinMs, durationCell(withinMs)),
        object,
        fields.join(', '),
      ],
    })),
    nothing: '',
    fair: 3,
  };
}

const INFORMER_COLUMNS: readonly GridColumn[] = [
  { title: 'INFORMER' },
  { title: 'STATE' },
  { title: 'FOR', isNumber: true, spare: 3 },
  { title: 'OBJECTS', isNumber: true, spare: 1 },
  { title: 'ACTIVE', isNumber: true, spare: 2 },
  { title: 'ERROR', spare: 4 },
];

/** Informers with problems come first, because there may be no room for all. */
function informers({ status }: ProgramView): TopTable {
  const rank = (informer: InformerStatus) => (styleOf(informer) === 'plain' ? 1 : 0);
  return {
    id: 'informers',
    columns: INFORMER_COLUMNS,
    rows: status.informers
      // Informers with different selectors may have the same name.
      .map((informer, at) => ({ ...informer, id: `${informer.name} ${at}` }))
      .toSorted((a, b) => rank(a) - rank(b))
      .map((informer) => {
        const {
          id,
          name,
          state,
          stateForMs,
          hasSynced,
          inactiveMs,
          objects,
          error = '',
        } = informer;
        return {
          id,
          cells: [
            name,
            cellOf(hasSynced ? state : `${state}, not synced`, styleOf(informer)),
            number(stateForMs, roughly(stateForMs)),
            count(objects),
            number(inactiveMs, `${roughly(inactiveMs)} ago`),
            cellOf(error, 'alarm'),
          ],
        };
      }),
    nothing: 'no informers',
    fair: 6,
  };
}

function styleOf({ state, hasSynced, error }: InformerStatus): Style {
  if (state === 'stale') return 'alarm';
  return state === 'missing' || !hasSynced || error !== undefined ? 'warning' : 'plain';
}

const HOT_COLUMNS: readonly GridColumn[] = [
  { title: 'HOTTEST KEY' },
  { title: 'QUEUE', spare: 2 },
  { title: 'SYNCS/MIN', isNumber: true },
  { title: 'WHY', spare: 1 },
];

function hottest({ hottest }: Pick<ProgramView, 'hottest'>): TopTable {
  return {
    id: 'hottest',
    columns: HOT_COLUMNS,
    rows: hottest.map(({ controller, key, syncsPerMinute: each, causes }) => ({
      ...keyRow(controller, key),
      cells: [
        key,
        controller,
        number(each, each < 10 ? each.toFixed(1) : String(Math.round(each))),
        why(causes),
      ],
    })),
    nothing: 'no key was synced twice',
    fair: 3,
  };
}

const SLOW_COLUMNS: readonly GridColumn[] = [
  { title: 'SLOWEST KEY' },
  { title: 'QUEUE', spare: 2 },
  { title: 'TOOK', isNumber: true },
  { title: 'RESULT', spare: 3 },
  { title: 'WHY', spare: 1 },
];

function slowest({ slowest }: Pick<ProgramView, 'slowest'>): TopTable {
  return {
    id: 'slowest',
    columns: SLOW_COLUMNS,
    rows: slowest.map(({ controller, key, tookMs, result, causes }) => ({
      ...keyRow(controller, key),
      cells: [
        key,
        controller,
        number(tookMs, durationCell(tookMs)),
        cellOf(result, resultStyle(result)),
        why(causes),
      ],
    })),
    nothing: 'no key was synced yet',
    fair: 3,
  };
}

/** Returns the style of a sync result. */
export function resultStyle(result: string): Style {
  return isFailedResult(result) ? 'alarm' : 'plain';
}

function keyRow(controller: string, key: string): Omit<Row, 'cells'> {
  return { id: `${controller} ${key}`, opens: { kind: 'key', controller, key } };
}

function why(causes: readonly Cause[]): string {
  return causes.map(formatCause).join('; ');
}

function cellOf(text: string, style: Style): Cell {
  return { text, style };
}

function count(value: number, style: Style = 'plain'): Cell {
  return number(value, String(value), style);
}

/** Number that is sorted by its value. Unknown numbers are sorted as the lowest. */
function number(value: number | undefined, text: string, style: Style = 'plain'): Cell {
  return { text, style, value: value ?? -Infinity };
}
