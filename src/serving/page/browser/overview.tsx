import type { ComponentChildren } from 'preact';
import type { InformerStatus, ProcessStatus } from '../../debug-pages.ts';
import { Bars, Meter, Sparkline } from './charts.tsx';
import { roleOf } from './election.ts';
import { duration, mebibytes, percent, rate } from './format.ts';
import { isFailure } from './monitor.ts';
import type { CallRow, ControllerRow, Overview } from './monitor.ts';
import { KeyCards } from './rankings.tsx';
import type { Tone } from './results.ts';
import { linkTo } from './route.ts';
import { Badge, Card, Cut, DataTable, TableCard } from './table.tsx';
import type { Column } from './table.tsx';

/** Overview of a program's controllers. */
export function OverviewView({ overview }: { readonly overview: Overview }) {
  const { status, queues, controllers } = overview;
  return (
    <div class="cards">
      <ProgramCard overview={overview} />
      <TableCard
        class="full"
        caption="Controllers"
        columns={CONTROLLER_COLUMNS}
        rows={controllers}
        keyOf={({ controller }) => controller}
        nothing="This program has no controllers."
      />
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
      <KeyCards queues={queues} nowMs={Date.parse(status.now)} />
    </div>
  );
}

function Tile(props: {
  readonly title: string;
  readonly value: string;
  readonly note: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  return (
    <div class="tile">
      <dt>{props.title}</dt>
      <dd class="value">{props.value}</dd>
      <dd>{props.children}</dd>
      <dd class="note">{props.note}</dd>
    </div>
  );
}

function ProgramCard({ overview }: { readonly overview: Overview }) {
  const { status, queues, residentBytes, cpus, cpu, loop, loops, loopLagMs } = overview;
  const { controllers } = overview;
  const { heapBytes, heapLimitBytes } = status.process;
  const keys = controllers.reduce((sum, { ready }) => sum + ready, 0);
  const oldestMs = Math.max(0, ...controllers.map((row) => row.oldestMs));
  const depths = controllers[0]?.depths.map((_, at) =>
    controllers.reduce((sum, { depths }) => sum + (depths[at] ?? 0), 0),
  );
  const role = roleOf(status);
  const failing = queues.failing.filter(({ hasRecovered }) => !hasRecovered).length;
  return (
    <Card title="Program" class="full">
      <dl class="tiles">
        <Tile title="Role" value={role.text} note={role.note}>
          <Badge tone={role.tone} text={role.tone === 'good' ? 'active' : 'waiting'} />
        </Tile>
        <Tile
          title="Ready keys"
          value={String(keys)}
          note={keys > 0 ? `oldest waits ${duration(oldestMs)}` : 'no key waits for a worker'}
        >
          <Sparkline
            values={depths ?? []}
            label={`Ready keys over the last minutes, now ${keys}`}
          />
        </Tile>
        <Tile
          title="Failing keys"
          value={failing >= 20 ? '20+' : String(failing)}
          note="whose last sync failed"
        >
          {failing > 0 ? <Badge tone="bad" text="failures" /> : <Badge tone="good" text="none" />}
        </Tile>
        <Tile
          title="Memory"
          value={mebibytes(status.process.residentBytes)}
          note={`heap ${mebibytes(heapBytes)} of ${mebibytes(heapLimitBytes)}`}
        >
          <Sparkline values={residentBytes} label="Resident memory over the last minutes" />
        </Tile>
        <Tile title="CPU" value={percent(cpu)} note={`up ${duration(status.upMs)}`}>
          <Sparkline values={cpus} label="CPU use over the last minutes" atLeast={0.1} />
        </Tile>
        <Tile
          title="Event loop"
          value={percent(loop)}
          note={loopLagMs === undefined ? 'share of time busy' : `lag p99 ${duration(loopLagMs)}`}
        >
          <Sparkline
            values={loops}
            label="Use of the event loop over the last minutes"
            atLeast={0.1}
          />
        </Tile>
      </dl>
    </Card>
  );
}

/** Number of keys in a state, with a link to them. */
function keysIn(controller: string, state: string, count: number): ComponentChildren {
  return count > 0 ? <a href={linkTo('keys', { controller, state })}>{count}</a> : '0';
}

const CONTROLLER_COLUMNS: readonly Column<ControllerRow>[] = [
  {
    title: 'Controller',
    cell: ({ controller }) => <a href={linkTo('keys', { controller })}>{controller}</a>,
  },
  {
    title: 'Depth',
    class: 'spare',
    cell: ({ depths, ready }) => (
      <Sparkline values={depths} label={`Ready keys over the last minutes, now ${ready}`} />
    ),
  },
  {
    title: 'Ready',
    class: 'number',
    cell: ({ controller, ready }) => keysIn(controller, 'ready', ready),
  },
  {
    title: 'Oldest',
    class: 'number',
    cell: ({ ready, oldestMs }) => (ready > 0 ? duration(oldestMs) : '–'),
  },
  {
    title: 'Delayed',
    class: 'number spare',
    cell: ({ controller, delayed }) => keysIn(controller, 'delayed', delayed),
  },
  {
    title: 'Workers',
    class: 'number',
    cell: ({ running, workers }) => (
      <>
        <Meter
          used={running}
          limit={workers}
          label={`${running} of ${workers ?? 'unknown'} workers busy`}
        />
        {` ${running}/${workers ?? '?'}`}
      </>
    ),
  },
  { title: 'Syncs/s', class: 'number', cell: ({ syncsPerSecond }) => rate(syncsPerSecond) },
  {
    title: 'Errors/s',
    class: 'number',
    cell: ({ errorsPerSecond }) =>
      errorsPerSecond ? <Badge tone="bad" text={rate(errorsPerSecond)} /> : rate(errorsPerSecond),
  },
  { title: 'Wait p99', class: 'number spare', cell: ({ waitP99Ms }) => duration(waitP99Ms) },
  { title: 'Sync p99', class: 'number spare', cell: ({ syncP99Ms }) => duration(syncP99Ms) },
  {
    title: 'Hot loops',
    class: 'number spare',
    cell: ({ hotLoops }) => (hotLoops > 0 ? <Badge tone="bad" text={String(hotLoops)} /> : '0'),
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
  { title: 'Resource', class: 'wide', cell: ({ name }) => <Cut text={name} /> },
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

function CallsCard({ overview }: { readonly overview: Overview }) {
  const { calls, successes, failures, hasMetrics } = overview;
  const now = rate((successes.at(-1) ?? 0) + (failures.at(-1) ?? 0));
  if (!hasMetrics) {
    return (
      <Card title="API calls" class="half">
        <p class="state">{NO_METRICS}</p>
      </Card>
    );
  }
  return (
    <Card title="API calls" class="half">
      <Bars
        successes={successes}
        failures={failures}
        label={`API calls per second over the last minutes, now ${now}`}
      />
      <p class="legend">
        <span class="swatch ok" /> succeeded <span class="swatch failed" />
        {` failed; now ${now} per second`}
      </p>
      <DataTable
        caption="API calls by verb"
        columns={CALL_COLUMNS}
        rows={calls}
        keyOf={({ verb }) => verb}
        nothing="No API call was made yet."
      />
    </Card>
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
