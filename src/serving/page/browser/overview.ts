import type { InformerStatus, ProcessStatus } from '../../debug-pages.ts';
import { bars, meter, sparkline } from './charts.ts';
import { h } from './dom.ts';
import { leasesCard, roleOf } from './election.ts';
import type { Content, Element_ } from './dom.ts';
import { duration, mebibytes, percent, rate } from './format.ts';
import { isFailure } from './monitor.ts';
import type { CallRow, ControllerRow, Overview } from './monitor.ts';
import { keyCards } from './rankings.ts';
import { linkTo } from './route.ts';
import { badge, card, table } from './table.ts';
import type { Column, Tone } from './table.ts';

/** Returns the overview of a program's controllers. */
export function overviewOf(overview: Overview): Element_[] {
  return [
    processCard(overview),
    card(
      'Controllers',
      'full',
      table('Controllers', CONTROLLER_COLUMNS, overview.controllers, {
        keyOf: ({ controller }) => controller,
        nothing: 'This program has no controllers.',
      }),
    ),
    callsCard(overview),
    card(
      'Informers',
      'half',
      table('Informers', INFORMER_COLUMNS, sortedInformers(overview.status), {
        keyOf: ({ name }) => name,
        nothing: 'This program has no informers.',
      }),
    ),
    ...leasesCard(overview.status),
    ...keyCards(overview.queues, Date.parse(overview.status.now)),
  ];
}

function tile(title: string, value: string, chart: Content, note: Content): Element_ {
  return h(
    'div',
    { class: 'tile', key: title },
    h('dt', {}, title),
    h('dd', { class: 'value' }, value),
    h('dd', {}, chart),
    h('dd', { class: 'note' }, note),
  );
}

function processCard({
  status,
  queues,
  residentBytes,
  cpus,
  cpu,
  loop,
  loops,
  loopLagMs,
  controllers,
}: Overview): Element_ {
  const { heapBytes, heapLimitBytes } = status.process;
  const keys = controllers.reduce((sum, { ready }) => sum + ready, 0);
  const oldestMs = Math.max(0, ...controllers.map((row) => row.oldestMs));
  const depths = controllers[0]?.depths.map((_, at) =>
    controllers.reduce((sum, { depths }) => sum + (depths[at] ?? 0), 0),
  );
  const role = roleOf(status);
  const failing = queues.failing.filter(({ hasRecovered }) => !hasRecovered).length;
  return card(
    'Program',
    'full',
    h(
      'dl',
      { class: 'tiles' },
      tile(
        'Role',
        role.text,
        badge(role.tone, role.tone === 'good' ? 'active' : 'waiting'),
        role.note,
      ),
      tile(
        'Ready keys',
        String(keys),
        sparkline(depths ?? [], `Ready keys over the last minutes, now ${keys}`),
        keys > 0 ? `oldest waits ${duration(oldestMs)}` : 'no key waits for a worker',
      ),
      tile(
        'Failing keys',
        failing >= 20 ? '20+' : String(failing),
        failing > 0 ? badge('bad', 'failures') : badge('good', 'none'),
        'whose last sync failed',
      ),
      tile(
        'Memory',
        mebibytes(status.process.residentBytes),
        sparkline(residentBytes, 'Resident memory over the last minutes'),
        `heap ${mebibytes(heapBytes)} of ${mebibytes(heapLimitBytes)}`,
      ),
      tile(
        'CPU',
        percent(cpu),
        sparkline(cpus, 'CPU use over the last minutes', 0.1),
        `up ${duration(status.upMs)}`,
      ),
      tile(
        'Event loop',
        percent(loop),
        sparkline(loops, 'Use of the event loop over the last minutes', 0.1),
        loopLagMs === undefined ? 'share of time busy' : `lag p99 ${duration(loopLagMs)}`,
      ),
    ),
  );
}

const CONTROLLER_COLUMNS: readonly Column<ControllerRow>[] = [
  {
    title: 'Controller',
    cell: ({ controller }) => h('a', { href: linkTo('keys', { controller }) }, controller),
  },
  {
    title: 'Depth',
    isSpare: true,
    cell: ({ depths, ready }) =>
      sparkline(depths, `Ready keys over the last minutes, now ${ready}`),
  },
  {
    title: 'Ready',
    isNumber: true,
    cell: ({ controller, ready }) =>
      ready > 0 ? h('a', { href: linkTo('keys', { controller, state: 'ready' }) }, ready) : '0',
  },
  {
    title: 'Oldest',
    isNumber: true,
    cell: ({ ready, oldestMs }) => (ready > 0 ? duration(oldestMs) : '–'),
  },
  {
    title: 'Delayed',
    isNumber: true,
    isSpare: true,
    cell: ({ controller, delayed }) =>
      delayed > 0
        ? h('a', { href: linkTo('keys', { controller, state: 'delayed' }) }, delayed)
        : '0',
  },
  {
    title: 'Workers',
    isNumber: true,
    cell: ({ running, workers }) => [
      meter(running, workers, `${running} of ${workers ?? 'unknown'} workers busy`),
      ` ${running}/${workers ?? '?'}`,
    ],
  },
  { title: 'Syncs/s', isNumber: true, cell: ({ syncsPerSecond }) => rate(syncsPerSecond) },
  {
    title: 'Errors/s',
    isNumber: true,
    cell: ({ errorsPerSecond }) =>
      errorsPerSecond ? badge('bad', rate(errorsPerSecond)) : rate(errorsPerSecond),
  },
  {
    title: 'Wait p99',
    isNumber: true,
    isSpare: true,
    cell: ({ waitP99Ms }) => duration(waitP99Ms),
  },
  {
    title: 'Sync p99',
    isNumber: true,
    isSpare: true,
    cell: ({ syncP99Ms }) => duration(syncP99Ms),
  },
  {
    title: 'Hot loops',
    isNumber: true,
    isSpare: true,
    cell: ({ hotLoops }) => (hotLoops > 0 ? badge('bad', String(hotLoops)) : '0'),
  },
];

function toneOf({ state, hasSynced, error }: InformerStatus): Tone {
  if (state === 'stale') return 'bad';
  return state === 'missing' || !hasSynced || error !== undefined ? 'warning' : 'good';
}

/** Informers with problems come first. */
function sortedInformers({ informers }: ProcessStatus): InformerStatus[] {
  const rank = (informer: InformerStatus) => ['bad', 'warning', 'good'].indexOf(toneOf(informer));
  return informers.toSorted((a, b) => rank(a) - rank(b));
}

const INFORMER_COLUMNS: readonly Column<InformerStatus>[] = [
  { title: 'Resource', isWide: true, cell: ({ name }) => h('span', { title: name }, name) },
  {
    title: 'State',
    cell: (informer) =>
      badge(
        toneOf(informer),
        informer.hasSynced ? informer.state : `${informer.state}, not synced`,
        informer.error,
      ),
  },
  { title: 'Objects', isNumber: true, cell: ({ objects }) => objects },
  { title: 'Active', isNumber: true, cell: ({ inactiveMs }) => `${duration(inactiveMs)} ago` },
  { title: 'For', isNumber: true, isSpare: true, cell: ({ stateForMs }) => duration(stateForMs) },
];

const CALL_COLUMNS: readonly Column<CallRow>[] = [
  { title: 'Verb', cell: ({ verb }) => verb },
  { title: 'Calls/s', isNumber: true, cell: ({ perSecond }) => rate(perSecond) },
  {
    title: 'Failed/s',
    isNumber: true,
    cell: ({ failuresPerSecond }) =>
      failuresPerSecond > 0 ? badge('bad', rate(failuresPerSecond)) : '0',
  },
  {
    title: 'Total by code',
    isWide: true,
    cell: ({ codes }) =>
      codes.map(({ code, total }) => [
        h(
          'span',
          { class: `code ${isFailure(code) ? 'failed' : 'ok'}`, key: code },
          `${code} `,
          h('b', {}, total),
        ),
        ' ',
      ]),
  },
  { title: 'p50', isNumber: true, isSpare: true, cell: ({ p50Ms }) => duration(p50Ms) },
  { title: 'p99', isNumber: true, cell: ({ p99Ms }) => duration(p99Ms) },
];

function callsCard({ calls, successes, failures, hasMetrics }: Overview): Element_ {
  if (!hasMetrics) {
    return card(
      'API calls',
      'half',
      h(
        'p',
        { class: 'state' },
        'This program does not count its API calls: give the client the same metrics.',
      ),
    );
  }
  const now = (successes.at(-1) ?? 0) + (failures.at(-1) ?? 0);
  return card(
    'API calls',
    'half',
    bars(successes, failures, `API calls per second over the last minutes, now ${rate(now)}`),
    h(
      'p',
      { class: 'legend' },
      h('span', { class: 'swatch ok' }),
      ' succeeded ',
      h('span', { class: 'swatch failed' }),
      ` failed; now ${rate(now)} per second`,
    ),
    table('API calls by verb', CALL_COLUMNS, calls, {
      keyOf: ({ verb }) => verb,
      nothing: 'No API call was made yet.',
    }),
  );
}
