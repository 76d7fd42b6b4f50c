import { formatCause } from '../../../workqueue/queue-item.ts';
import type { AttentionItem } from '../../attention.ts';
import type { InformerStatus, ProcessStatus } from '../../debug-pages.ts';
import type { Problem } from '../../verdict.ts';
import {
  countText,
  duration,
  mebibytes,
  moment,
  percent,
  problemsOf,
  verdictHeading,
  PROBLEMS,
  rate,
  readinessText,
  stepAt,
} from '../../words.ts';
import { Bars, Meter, Sparkline } from './charts.tsx';
import { isFailure } from './monitor.ts';
import type { CallRow, ControllerRow, Overview } from './monitor.ts';
import { TONES } from './results.ts';
import type { Tone } from './results.ts';
import { linkTo, linkToKey } from './route.ts';
import { Badge, Card, ResultBadge, TableCard } from './table.tsx';
import type { Column } from './table.tsx';

/** Overview of a program's controllers: what is wrong comes first. */
export function OverviewView({ overview }: { readonly overview: Overview }) {
  const { status, queues, controllers } = overview;
  const nowMs = Date.parse(status.now);
  return (
    <div class="cards">
      <VerdictCard status={status} />
      <Tiles overview={overview} />
      {queues.attention.length > 0 && (
        <TableCard
          class="full attention"
          caption="Needs attention"
          columns={attentionColumns(nowMs)}
          rows={queues.attention.slice(0, 20)}
          keyOf={({ controller, key }) => `${controller} ${key}`}
          nothing=""
        />
      )}
      <TableCard
        class="full"
        caption="Controllers"
        columns={controllerColumns(nowMs)}
        rows={controllers}
        keyOf={({ controller }) => controller}
        nothing="This program has no controllers."
      />
      <HistoryCard overview={overview} />
      <CallsCard overview={overview} />
      <TableCard
        class="half"
        caption="Informers"
        columns={INFORMER_COLUMNS}
        rows={sortedInformers(status)}
        keyOf={({ name }) => name}
        nothing="This program has no informers."
      />
      <LeasesCard status={status} />
      <Ranking
        title="Slowest keys"
        columns={[
          { title: 'Took', class: 'number', cell: ({ tookMs }) => duration(tookMs) },
          {
            title: 'Result',
            class: 'spare',
            cell: ({ result }) => <ResultBadge result={result} />,
          },
        ]}
        rows={queues.slowest}
        nothing="No key was synced yet."
      />
      <Ranking
        title="Hottest keys"
        columns={[
          {
            title: 'Syncs/min',
            class: 'number',
            cell: ({ syncsPerMinute }) => rate(syncsPerMinute),
          },
          {
            title: 'Last cause',
            class: 'wide spare',
            cell: ({ causes }) => causes.map(formatCause).join('; '),
          },
        ]}
        rows={queues.hottest}
        nothing="No key was synced twice."
      />
      <HotLoops queues={queues} />
    </div>
  );
}

/** Number of problems that the verdict lists. */
const MAX_PROBLEMS = 8;

/** What is wrong, the worst first and in large letters. */
export function VerdictCard({ status }: { readonly status: ProcessStatus }) {
  const { verdict } = status;
  if (!verdict) return null;
  const nowMs = Date.parse(status.now);
  const problems = problemsOf(verdict);
  const tone = problems[0]?.tone ?? 'neutral';
  return (
    <Card title="Verdict" class={`full verdict ${tone}`}>
      <ol>
        {problems.slice(0, MAX_PROBLEMS).map((problem, at) => (
          <li>
            <Badge tone={toneOfProblem(problem)} text="" />
            <div>
              <ProblemText problem={problem} nowMs={nowMs} />
              {stepAt(problems, at) && <p>{stepAt(problems, at)}</p>}
              {problem.command !== undefined && <pre>{problem.command}</pre>}
            </div>
          </li>
        ))}
      </ol>
      <p class="note">
        {problems.length > MAX_PROBLEMS && `and ${problems.length - MAX_PROBLEMS} more. `}
        {readinessText(verdict)}.
      </p>
    </Card>
  );
}

/** Nothing is wrong with a program that stands by, or without a problem. */
export function toneOfProblem({ tone, text }: Problem): Tone {
  return tone === 'neutral' && text.startsWith('Nothing') ? 'good' : tone;
}

function ProblemText({ problem, nowMs }: { readonly problem: Problem; readonly nowMs: number }) {
  const { keys, detail } = problem;
  const text = [<b>{verdictHeading(problem, nowMs)}</b>, detail && `: ${detail}`];
  if (!keys) return <span dir="auto">{text}</span>;
  const { controller = '', key } = keys;
  return (
    <a dir="auto" href={key === undefined ? linkTo('keys', keys) : linkToKey(controller, key)}>
      {text}
    </a>
  );
}

/** Numbers of keys and objects in a state, with links to them. */
function Tiles({ overview: { controllers } }: { readonly overview: Overview }) {
  const sum = (count: (queue: ControllerRow['queue']) => number | undefined) =>
    controllers.reduce((all, { queue }) => all + (count(queue) ?? 0), 0);
  const tiles: readonly (readonly [
    title: string,
    count: number,
    tone: Tone,
    query: Readonly<Record<string, string>>,
  ])[] = [
    ['Keys that fail', sum(({ failing }) => failing), 'bad', { result: 'failed' }],
    ['Objects stalled', sum(({ objects }) => objects?.stalled), 'bad', { condition: 'stalled' }],
    [
      'Objects not ready',
      sum(({ objects }) => objects?.notReady),
      'warning',
      { condition: 'notReady' },
    ],
    ['Objects ready', sum(({ objects }) => objects?.ready), 'neutral', { condition: 'ready' }],
    ['Keys that wait for a worker', sum(({ ready }) => ready.count), 'neutral', { state: 'ready' }],
    [
      'Keys that wait for a time',
      sum(({ delayed }) => delayed.count),
      'neutral',
      { state: 'delayed' },
    ],
  ];
  return (
    <ul class="tiles full">
      {tiles.map(([title, count, tone, query]) => (
        <li>
          <a class={count > 0 ? tone : undefined} href={linkTo('keys', query)}>
            <b>{count}</b> {title}
          </a>
        </li>
      ))}
    </ul>
  );
}

/** Key with a link, and its controller. */
function KeyCell({ controller, key: name }: { readonly controller: string; readonly key: string }) {
  return (
    <>
      <a href={linkToKey(controller, name)} title={name}>
        {name}
      </a>
      <span class="note"> {controller}</span>
    </>
  );
}

function attentionColumns(nowMs: number): readonly Column<AttentionItem>[] {
  return [
    { title: 'Key', class: 'name', cell: (item) => KeyCell(item) },
    {
      title: 'Problem',
      cell: ({ problem }) => <Badge tone={TONES[problem] ?? 'neutral'} text={PROBLEMS[problem]} />,
    },
    {
      title: 'Since',
      class: 'number',
      cell: ({ since }) =>
        since === undefined
          ? '–'
          : `${moment(since, nowMs)} (${duration(nowMs - Date.parse(since))})`,
    },
    {
      title: 'Failed',
      class: 'number spare',
      cell: ({ failures = 0, syncs = 0 }) => (syncs > 0 ? `${failures} of ${syncs}` : '–'),
    },
    { title: 'Message', class: 'text', cell: ({ message }) => <span dir="auto">{message}</span> },
  ];
}

/** Number with a link to the keys that it counts. */
function keysOf(
  count: number,
  controller: string,
  query: Readonly<Record<string, string>>,
  tone?: Tone,
) {
  if (count === 0) return '0';
  return (
    <a href={linkTo('keys', { controller, ...query })}>
      {tone ? <Badge tone={tone} text={String(count)} /> : count}
    </a>
  );
}

function controllerColumns(nowMs: number): readonly Column<ControllerRow>[] {
  return [
    {
      title: 'Controller',
      cell: ({ controller }) => <a href={linkTo('keys', { controller })}>{controller}</a>,
    },
    {
      title: 'Ready',
      class: 'number',
      cell: ({ controller, queue: { objects } }) =>
        keysOf(objects?.ready ?? 0, controller, { condition: 'ready' }),
    },
    {
      title: 'Not ready',
      class: 'number',
      cell: ({ controller, queue: { objects } }) =>
        keysOf(objects?.notReady ?? 0, controller, { condition: 'notReady' }, 'warning'),
    },
    {
      title: 'Stalled',
      class: 'number',
      cell: ({ controller, queue: { objects } }) =>
        keysOf(objects?.stalled ?? 0, controller, { condition: 'stalled' }, 'bad'),
    },
    {
      title: 'Waiting',
      class: 'number spare',
      cell: ({
        controller,
        queue: {
          ready: { count, oldestMs },
        },
      }) => [
        keysOf(count, controller, { state: 'ready' }),
        count > 0 && ` for ${duration(oldestMs)}`,
      ],
    },
    {
      title: 'Delayed',
      class: 'number spare',
      cell: ({
        controller,
        queue: {
          delayed: { count },
        },
      }) => keysOf(count, controller, { state: 'delayed' }),
    },
    {
      title: 'Workers',
      class: 'number spare',
      cell: ({
        queue: {
          processing: { count },
        },
        workers,
      }) => (
        <>
          <Meter
            used={count}
            limit={workers}
            label={`${count} of ${workers ?? 'unknown'} workers busy`}
          />
          {` ${count}/${workers ?? '?'}`}
        </>
      ),
    },
    { title: 'Syncs/s', class: 'number spare', cell: ({ syncsPerSecond }) => rate(syncsPerSecond) },
    {
      title: 'Errors/s',
      class: 'number',
      cell: ({ controller, errorsPerSecond = 0, queue: { lastFailure } }) => {
        if (errorsPerSecond > 0) return <Badge tone="bad" text={rate(errorsPerSecond)} />;
        if (!lastFailure) return '0';
        const { key, at } = lastFailure;
        return <a href={linkToKey(controller, key)}>last {moment(at, nowMs)}</a>;
      },
    },
    { title: 'Wait p99', class: 'number spare', cell: ({ waitP99Ms }) => duration(waitP99Ms) },
    { title: 'Sync p99', class: 'number spare', cell: ({ syncP99Ms }) => duration(syncP99Ms) },
  ];
}

/** The last fifteen minutes, which the program has kept. */
function HistoryCard({ overview }: { readonly overview: Overview }) {
  const { status, steps, loopLagMs } = overview;
  const { residentBytes, heapBytes, heapLimitBytes, cpuMs } = status.process;
  const [first] = steps;
  const last = steps.at(-1);
  const failures = steps.reduce((sum, step) => sum + step.failures, 0);
  const unready = steps.filter(({ sample }) => !sample.isReady).length;
  const label = [
    countText(
      steps.reduce((sum, { successes }) => sum + successes, failures),
      'sync',
    ),
    `${failures} failed`,
    ...(unready > 0 ? [`/readyz failed for ${duration(unready * 10_000)}`] : []),
  ].join(', ');
  const lines: readonly (readonly [
    title: string,
    value: string,
    values: readonly number[],
    atLeast: number,
  ])[] = [
    [
      'Not ready',
      String(last?.sample.notReady ?? 0),
      steps.map(({ sample }) => sample.notReady),
      1,
    ],
    [
      'Waiting keys',
      String(last?.sample.waiting ?? 0),
      steps.map(({ sample }) => sample.waiting),
      1,
    ],
    [
      `Memory, heap ${mebibytes(heapBytes)} of ${mebibytes(heapLimitBytes)}`,
      mebibytes(residentBytes),
      steps.map(({ sample }) => sample.residentBytes),
      1,
    ],
    [
      'CPU',
      percent(last?.cpu ?? cpuMs / Math.max(1, status.upMs)),
      steps.map(({ cpu }) => cpu),
      0.1,
    ],
    [
      loopLagMs === undefined ? 'Event loop' : `Event loop, lag p99 ${duration(loopLagMs)}`,
      percent(last?.loop),
      steps.map(({ loop }) => loop),
      0.1,
    ],
  ];
  return (
    <Card title="Last 15 minutes" class="full">
      <Bars steps={steps} label={label} />
      <p class="legend">
        <span class="swatch ok" /> syncs <span class="swatch failed" /> failed{' '}
        <span class="swatch unready" />
        {` /readyz failed; ${label}${first ? ` since ${moment(new Date(first.sample.atMs).toISOString(), last?.sample.atMs ?? 0)}` : ''}`}
      </p>
      <ul class="lines">
        {lines.map(([title, value, values, atLeast]) => (
          <li>
            <span class="note">{title}</span> <b>{value}</b>
            <Sparkline
              values={values}
              label={`${title} over the last 15 minutes, now ${value}`}
              atLeast={atLeast}
            />
          </li>
        ))}
      </ul>
    </Card>
  );
}

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
  {
    title: 'Resource',
    class: 'wide',
    cell: ({ name }) => (
      <a href={linkTo('objects', { resource: name })} title={name}>
        {name}
      </a>
    ),
  },
  {
    title: 'State',
    cell: (informer) => (
      <Badge
        tone={toneOf(informer)}
        text={informer.hasSynced ? informer.state : `${informer.state}, not synced`}
        title={informer.error}
      />
    ),
  },
  { title: 'Objects', class: 'number', cell: ({ objects }) => objects },
  { title: 'Active', class: 'number', cell: ({ inactiveMs }) => `${duration(inactiveMs)} ago` },
  { title: 'For', class: 'number spare', cell: ({ stateForMs }) => duration(stateForMs) },
];

const CALL_COLUMNS: readonly Column<CallRow>[] = [
  { title: 'Verb', cell: ({ verb }) => verb },
  { title: 'Calls/s', class: 'number', cell: ({ perSecond }) => rate(perSecond) },
  {
    title: 'Failed/s',
    class: 'number',
    cell: ({ failuresPerSecond }) =>
      failuresPerSecond > 0 ? <Badge tone="bad" text={rate(failuresPerSecond)} /> : '0',
  },
  {
    title: 'Total by code',
    class: 'wide',
    cell: ({ codes }) =>
      codes.map(({ code, total }) => [
        <span class={`code ${isFailure(code) ? 'failed' : 'ok'}`}>
          {code} <b>{total}</b>
        </span>,
        ' ',
      ]),
  },
  { title: 'p50', class: 'number spare', cell: ({ p50Ms }) => duration(p50Ms) },
  { title: 'p99', class: 'number', cell: ({ p99Ms }) => duration(p99Ms) },
];

const NO_METRICS = 'This program does not count its API calls: give the client the same metrics.';

function CallsCard({ overview: { calls, hasMetrics } }: { readonly overview: Overview }) {
  return (
    <TableCard
      class="half"
      caption="API calls"
      columns={CALL_COLUMNS}
      rows={calls}
      keyOf={({ verb }) => verb}
      nothing={hasMetrics ? 'No API call was made yet.' : NO_METRICS}
    />
  );
}

/** Leases of the leader election, if there is one. */
export function LeasesCard({ status: { election, now } }: { readonly status: ProcessStatus }) {
  if (!election) return null;
  const ageOf = (time: string) => duration(Date.parse(now) - Date.parse(time));
  const heldBy = (holder: string) => {
    if (holder === election.identity) return <Badge tone="good" text="this process" />;
    return <Badge tone="neutral" text={holder ? 'another replica' : 'no replica'} />;
  };
  return (
    <TableCard
      class="full"
      caption="Leader election"
      columns={[
        { title: 'Lease', cell: ({ lease }) => lease },
        { title: 'Holder', class: 'wide', cell: ({ holder }) => holder || 'none' },
        { title: 'Held by', cell: ({ holder }) => heldBy(holder) },
        {
          title: 'Since',
          class: 'number',
          cell: ({ acquireTime: time }) => (time === undefined ? '–' : ageOf(time)),
        },
        {
          title: 'Seen',
          class: 'number spare',
          cell: ({ seenMsAgo }) => `${duration(seenMsAgo)} ago`,
        },
      ]}
      rows={election.leases}
      keyOf={({ lease }) => lease}
      nothing="No Lease was read yet."
    />
  );
}

function Ranking<R extends { readonly controller: string; readonly key: string }>(props: {
  readonly title: string;
  /** The columns after the key. */
  readonly columns: readonly Column<R>[];
  readonly rows: readonly R[];
  readonly nothing: string;
}) {
  const { title, columns, rows, nothing } = props;
  const keyColumn: Column<R> = { title: 'Key', class: 'wide', cell: (row) => KeyCell(row) };
  return (
    <TableCard
      class="half"
      caption={title}
      columns={[keyColumn, ...columns]}
      rows={rows.slice(0, 8)}
      keyOf={({ controller, key }) => `${controller} ${key}`}
      nothing={nothing}
    />
  );
}

/** Keys that enqueue themselves. */
function HotLoops({ queues: { controllers } }: Pick<Overview, 'queues'>) {
  const loops = controllers.flatMap(({ controller, hotLoops }) =>
    hotLoops.map((loop) => ({ controller, ...loop })),
  );
  if (loops.length === 0) return null;
  return (
    <Ranking
      title="Hot loops"
      columns={[
        {
          title: 'Changes',
          class: 'number',
          cell: ({ times, withinMs }) => `${times} in ${duration(withinMs)}`,
        },
        {
          title: 'Fields',
          class: 'wide',
          cell: ({ object, fields }) => `${object}: ${fields.join(', ')}`,
        },
      ]}
      rows={loops}
      nothing=""
    />
  );
}
