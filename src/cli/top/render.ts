import { formatCause } from '../../workqueue/queue-item.ts';
import type { Cause } from '../../workqueue/queue-item.ts';
import { formatDuration } from '../../util/duration.ts';
import { cutLine, grid, paint } from './grid.ts';
import type { Cell, Column, Span, Style } from './grid.ts';
import type { InformerStatus, ProcessStatus } from '../../serving/debug-pages.ts';
import type { DaemonView, QueueView, View } from './daemon-monitor.ts';

export interface Size {
  /** Columns. */
  readonly width: number;
  /** Lines; `Infinity` shows everything. */
  readonly height: number;
}

/** Table of the view; shows as many rows as there is room for. */
interface Section {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
  /** Text if there are no rows. */
  readonly nothing: string;
  /** Rows to show before other sections get more. */
  readonly fair: number;
}

/** Returns the view as lines that fit in the terminal. */
export function render(view: View, { width, height }: Size, colour: boolean): string[] {
  const { daemon } = view;
  const head = headOf(view);
  const sections = daemon
    ? [queues(daemon), informers(daemon), hottest(daemon), slowest(daemon)]
    : [];
  const room = roomFor(sections, height - head.length);
  const body = sections.flatMap((section, at) => shown(section, room[at] ?? 0, width));
  return [...head, ...body].slice(0, height).map((line) => paint(cutLine(line, width), colour));
}

function headOf({ address, notice, daemon }: View): Span[][] {
  const title = [{ text: daemon?.status.name ?? 'program', style: 'heading' as const }];
  const lines: Span[][] = [
    [
      ...title,
      plain(
        daemon
          ? ` ${daemon.status.version} at ${address}, up ${roughly(daemon.status.upMs)}`
          : ` at ${address}`,
      ),
    ],
  ];
  if (daemon) lines.push(leaderLine(daemon.status), processLine(daemon));
  if (notice) lines.push([{ text: notice.text, style: notice.isError ? 'alarm' : 'good' }]);
  return lines;
}

function leaderLine({ election, now }: ProcessStatus): Span[] {
  if (!election) return [plain('no leader election')];
  const { identity, leases } = election;
  const held = leases.filter(({ holder }) => holder === identity);
  if (leases.length > 1) {
    const names = held.map(({ lease }) => lease.slice(lease.lastIndexOf('-') + 1)).join(',');
    return [
      plain(
        `owner of ${held.length} of ${leases.length} shards${names ? `: ${names}` : ''}; identity ${identity}`,
      ),
    ];
  }
  const [lease] = leases;
  if (!lease) return [{ text: `leader not known yet; identity ${identity}`, style: 'warning' }];
  if (lease.holder === '') return [{ text: `no leader; identity ${identity}`, style: 'warning' }];
  const sinceMs = Date.parse(now) - Date.parse(lease.acquireTime ?? '');
  const since = Number.isNaN(sinceMs) ? '' : ` for ${roughly(Math.max(0, sinceMs))}`;
  return held.length > 0
    ? [{ text: `leader${since}`, style: 'good' }, plain(`; identity ${identity}`)]
    : [
        { text: `standby; leader ${lease.holder}${since}`, style: 'warning' },
        plain(`; identity ${identity}`),
      ];
}

function processLine({ cpu, residentBytes, heapBytes, loopLagMs, windowMs }: DaemonView): Span[] {
  const isLate = loopLagMs !== undefined && loopLagMs > 200;
  const window = windowMs === undefined ? 'since the start' : `over the last ${roughly(windowMs)}`;
  return [
    plain(
      `cpu ${cpu === undefined ? '-' : `${Math.round(100 * cpu)}%`}, memory ${mebibytes(residentBytes)}, heap ${mebibytes(heapBytes)}, `,
    ),
    { text: `event loop lag p99 ${duration(loopLagMs)}`, style: isLate ? 'alarm' : 'plain' },
    { text: `; rates ${window}`, style: 'faint' },
  ];
}

const QUEUE_COLUMNS: readonly Column[] = [
  { title: 'QUEUE' },
  { title: 'READY', isNumber: true },
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

function queues({ queues }: DaemonView): Section {
  return {
    columns: QUEUE_COLUMNS,
    rows: queues.map(queueRow),
    nothing: 'no controllers',
    fair: 8,
  };
}

function queueRow(queue: QueueView): Cell[] {
  const { running, limit, errorsPerSecond, hotLoops } = queue;
  const isBusy = limit !== undefined && running >= limit;
  return [
    queue.controller,
    styled(String(queue.ready), queue.ready > 0 && isBusy ? 'warning' : 'plain'),
    String(queue.delayed),
    styled(`${running}/${limit ?? '?'}`, isBusy ? 'warning' : 'plain'),
    duration(queue.waitP50Ms),
    duration(queue.waitP99Ms),
    duration(queue.runP99Ms),
    rate(queue.addsPerSecond),
    rate(queue.retriesPerSecond),
    styled(rate(errorsPerSecond), errorsPerSecond ? 'alarm' : 'plain'),
    styled(String(hotLoops), hotLoops > 0 ? 'alarm' : 'plain'),
  ];
}

const INFORMER_COLUMNS: readonly Column[] = [
  { title: 'INFORMER' },
  { title: 'STATE' },
  { title: 'FOR', isNumber: true, spare: 3 },
  { title: 'OBJECTS', isNumber: true, spare: 1 },
  { title: 'ACTIVE', isNumber: true, spare: 2 },
  { title: 'ERROR', spare: 4 },
];

/** Informers with problems come first, because there may be no room for all. */
function informers({ status }: DaemonView): Section {
  const rank = (informer: InformerStatus) => (styleOf(informer) === 'plain' ? 1 : 0);
  return {
    columns: INFORMER_COLUMNS,
    rows: status.informers
      .toSorted((a, b) => rank(a) - rank(b))
      .map((informer) => {
        const { name, state, stateForMs, hasSynced, inactiveMs, objects, error = '' } = informer;
        return [
          name,
          styled(hasSynced ? state : `${state}, not synced`, styleOf(informer)),
          roughly(stateForMs),
          String(objects),
          `${roughly(inactiveMs)} ago`,
          styled(error, 'alarm'),
        ];
      }),
    nothing: 'no informers',
    fair: 6,
  };
}

function styleOf({ state, hasSynced, error }: InformerStatus): Style {
  if (state === 'stale') return 'alarm';
  return state === 'missing' || !hasSynced || error !== undefined ? 'warning' : 'plain';
}

const HOT_COLUMNS: readonly Column[] = [
  { title: 'HOTTEST KEY' },
  { title: 'QUEUE', spare: 2 },
  { title: 'SYNCS/MIN', isNumber: true },
  { title: 'WHY', spare: 1 },
];

function hottest({ hottest }: DaemonView): Section {
  return {
    columns: HOT_COLUMNS,
    rows: hottest.map(({ controller, key, syncsPerMinute, causes }) => [
      key,
      controller,
      syncsPerMinute < 10 ? syncsPerMinute.toFixed(1) : String(Math.round(syncsPerMinute)),
      why(causes),
    ]),
    nothing: 'no key was synced twice',
    fair: 3,
  };
}

const SLOW_COLUMNS: readonly Column[] = [
  { title: 'SLOWEST KEY' },
  { title: 'QUEUE', spare: 2 },
  { title: 'TOOK', isNumber: true },
  { title: 'RESULT', spare: 3 },
  { title: 'WHY', spare: 1 },
];

function slowest({ slowest }: DaemonView): Section {
  return {
    columns: SLOW_COLUMNS,
    rows: slowest.map(({ controller, key, tookMs, result, causes }) => [
      key,
      controller,
      duration(tookMs),
      styled(result, /error|panic/i.test(result) ? 'alarm' : 'plain'),
      why(causes),
    ]),
    nothing: 'no key was synced yet',
    fair: 3,
  };
}

/**
 * Distributes lines: a heading and one row for each section, then the fair number of rows, then the rest
 * from the top.
 */
function roomFor(sections: readonly Section[], height: number): number[] {
  let left = height;
  const rows = sections.map(({ rows: { length } }) => Math.max(1, length));
  const room = sections.map(() => 0);
  const grow = (limit: (at: number) => number) => {
    for (const at of sections.keys()) {
      const has = room[at] ?? 0;
      // The blank line and the heading are added with the first row.
      const overhead = has === 0 ? 2 : 0;
      const more = Math.min(limit(at) - has, left - overhead);
      if (more <= 0) continue;
      room[at] = has + more;
      left -= more + overhead;
    }
  };
  grow(() => 1);
  grow((at) => Math.min(rows[at] ?? 0, sections[at]?.fair ?? 0));
  grow((at) => rows[at] ?? 0);
  return room;
}

function shown({ columns, rows, nothing }: Section, room: number, width: number): Span[][] {
  if (room === 0) return [];
  if (rows.length === 0) return [[], ...grid(columns.slice(0, 1), [], width), [faint(nothing)]];
  if (rows.length <= room) return [[], ...grid(columns, rows, width)];
  const lines = grid(columns, rows.slice(0, Math.max(1, room - 1)), width);
  if (room === 1) return [[], ...lines];
  return [[], ...lines, [faint(`... and ${rows.length - room + 1} more`)]];
}

function why(causes: readonly Cause[]): string {
  return causes.map(formatCause).join('; ');
}

function styled(text: string, style: Style): Span {
  return { text, style };
}

function plain(text: string): Span {
  return { text, style: 'plain' };
}

function faint(text: string): Span {
  return { text, style: 'faint' };
}

function rate(perSecond: number | undefined): string {
  if (perSecond === undefined) return '-';
  return perSecond === 0 || perSecond >= 100 ? String(Math.round(perSecond)) : perSecond.toFixed(2);
}

/** Two digits are enough to compare. */
function duration(ms: number | undefined): string {
  if (ms === undefined) return '-';
  return formatDuration(ms < 1000 ? Number(ms.toPrecision(2)) : 100 * Math.round(ms / 100));
}

/** Formats a time by its two largest units. */
function roughly(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const units = [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
    ['s', 1],
  ] as const;
  const first = units.findIndex(([, size]) => seconds >= size);
  if (first === -1) return '0s';
  return units
    .slice(first, first + 2)
    .map(([unit, size], at) => {
      const above = at === 0 ? Infinity : (units[first]?.[1] ?? 1);
      return [Math.floor((seconds % above) / size), unit] as const;
    })
    .filter(([amount], at) => at === 0 || amount > 0)
    .map(([amount, unit]) => `${amount}${unit}`)
    .join('');
}

function mebibytes(bytes: number | undefined): string {
  return bytes === undefined ? '-' : `${Math.round(bytes / 2 ** 20)}MiB`;
}
