import type { ComponentChildren } from 'preact';
import { formatCause } from '../../../workqueue/queue-item.ts';
import type { Cause } from '../../../workqueue/queue-item.ts';
import type { ObjectNode, ObjectReport, ShownEvent } from '../../object-page.ts';
import type { CallView, SyncView } from '../../controller-view.ts';
import type { WhyReport } from '../../queue-pages.ts';
import {
  countText,
  CONDITIONS,
  duration,
  foldSyncs,
  moment,
  stateOf,
  STATES,
  timeOfDay,
} from '../../words.ts';
import type { FoldedSync } from '../../words.ts';
import { shownState } from './key-state.ts';
import type { KeyData, KeyState } from './key-state.ts';
import { callResult, outcomeOf, toneOfCondition, TONES } from './results.ts';
import type { Tone } from './results.ts';
import { linkTo, linkToKey } from './route.ts';
import { Badge, Card, Cut, ResultBadge, DataTable, TableCard } from './table.tsx';
import type { Column } from './table.tsx';
import { BarLegend, HistoryLine, SyncBar, totalMs } from './timeline.tsx';
import { yaml } from './yaml.ts';

const NOT_QUEUED = 'This key is not queued, and none of its last syncs are remembered';

/** View of one key. */
export function KeyDetails(props: {
  /** `key` is a name of Preact. */
  readonly name: string;
  readonly controller: string | undefined;
  readonly data: KeyData | undefined;
}) {
  const { name, controller, data } = props;
  const state = data && shownState(data, controller);
  return (
    <>
      <h2 class="key" dir="auto">
        {name}
      </h2>
      {!data ? (
        <p class="state">Loading the key…</p>
      ) : (
        <div class="cards">
          <ConditionLine report={data.object} nowMs={data.nowMs} />
          {data.why && state ? (
            <>
              <StateCard state={state} why={data.why} nowMs={data.nowMs} />
              <SyncsCard syncs={state.history?.last ?? []} nowMs={data.nowMs} />
            </>
          ) : (
            <p class="state full">{data.unknown ?? NOT_QUEUED}.</p>
          )}
          {(state || data.object) && <ObjectCards report={data.object} />}
        </div>
      )}
    </>
  );
}

/** What the conditions of the object report, and what its owned objects do if it is not ready. */
export function ConditionLine(props: {
  readonly report: ObjectReport | undefined;
  readonly nowMs: number;
}) {
  const { report, nowMs } = props;
  if (!report || report.condition.state === 'unknown') return null;
  const { state, since, message } = report.condition;
  return (
    <div class={`banner full ${TONES[state] ?? ''}`}>
      <p dir="auto">
        <Badge tone={TONES[state] ?? 'neutral'} text={CONDITIONS[state]} />
        {since !== undefined && ` since ${moment(since, nowMs)}`}: {message}
      </p>
      {state !== 'ready' && report.ownedProblems.map((problem) => <p dir="auto">{problem}</p>)}
    </div>
  );
}

function Fact(props: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </div>
  );
}

const STATE_TONES: Readonly<Record<string, Tone>> = { running: 'good', ready: 'warning' };

function StateCard(props: {
  readonly state: KeyState;
  readonly why: WhyReport;
  readonly nowMs: number;
}) {
  const { state, nowMs } = props;
  const { key, owner, controllers } = props.why;
  const { history, dueInMs, queuedMs, forMs, hotLoop, causes = [] } = state;
  const last = history?.last.at(-1);
  const others = controllers.filter((other) => other !== state);
  const holder = owner?.isThisProcess ? 'this process' : owner?.holder || 'no process';
  const remembered = history && `${countText(history.syncs, 'sync')}, ${history.failures} failed`;
  return (
    <Card title={`Controller ${state.controller}`} class="full">
      <dl class="facts">
        <Fact name="State">
          <Badge
            tone={STATE_TONES[state.state] ?? 'neutral'}
            text={STATES[stateOf(state.state, history?.failingSince !== undefined)]}
          />
        </Fact>
        {forMs !== undefined && <Fact name="Running for">{duration(forMs)}</Fact>}
        {queuedMs !== undefined && <Fact name="Waiting for a worker">{duration(queuedMs)}</Fact>}
        <Fact name="Next sync">{nextOf(state, owner)}</Fact>
        <Fact name="Remembered">{remembered ?? 'no sync'}</Fact>
        {history && <Fact name="Total time">{duration(history.busyMs)}</Fact>}
        {last && (
          <Fact name="Last result">
            <SyncResult sync={last} />
          </Fact>
        )}
        {owner && <Fact name="Lease">{`${owner.lease}, held by ${holder}`}</Fact>}
        {others.length > 0 && (
          <Fact name="Also in">
            {others.map(({ controller }) => [
              <a href={linkToKey(controller, key)}>{controller}</a>,
              ' ',
            ])}
          </Fact>
        )}
      </dl>
      {last?.end?.error !== undefined && <p class="banner bad">{last.end.error}</p>}
      {hotLoop && (
        <p class="banner bad">
          {`Hot loop: ${hotLoop.times} changes within ${duration(hotLoop.withinMs)} of ${hotLoop.object}, fields ${hotLoop.fields.join(', ')}`}
        </p>
      )}
      {causes.length > 0 && <h3>Why it waits</h3>}
      {causes.length > 0 && <Causes causes={causes} omitted={0} />}
      {history && (
        <HistoryLine
          syncs={history.last}
          nowMs={nowMs}
          nextMs={dueInMs === undefined ? undefined : nowMs + dueInMs}
        />
      )}
    </Card>
  );
}

function nextOf({ state, dueInMs, again }: KeyState, owner: WhyReport['owner']): string {
  if (owner && !owner.isThisProcess) return 'in another process';
  if (dueInMs !== undefined) return `in ${duration(Math.max(0, dueInMs))}`;
  if (state === 'ready') return 'when a worker is free';
  return again ? 'after the running one' : 'at the next change';
}

function SyncResult({ sync: { end } }: { readonly sync: SyncView }) {
  return end ? <ResultBadge result={end.result} /> : <Badge tone="good" text="running" />;
}

/** Causes with the values that changed. */
function Causes(props: { readonly causes: readonly Cause[]; readonly omitted: number }) {
  const { causes, omitted } = props;
  return (
    <ul class="causes">
      {causes.map((cause) => (
        <li dir="auto">
          {formatCause(cause)}
          {cause.changes && cause.changes.length > 0 && (
            <dl class="changes">
              {cause.changes.map(({ field, before = 'absent', after = 'absent' }) => (
                <div>
                  <dt>
                    <code>{field}</code>
                  </dt>
                  <dd>
                    <del>{before}</del>
                    <span aria-hidden="true"> → </span>
                    <ins>{after}</ins>
                  </dd>
                </div>
              ))}
            </dl>
          )}
        </li>
      ))}
      {omitted > 0 && <li>and {countText(omitted, 'more cause')}</li>}
    </ul>
  );
}

function SyncsCard(props: { readonly syncs: readonly SyncView[]; readonly nowMs: number }) {
  const { syncs, nowMs } = props;
  const times = syncs.map((sync) => totalMs(sync, nowMs, Date.parse(sync.startedAt)));
  return (
    <Card title="Last syncs" class="full">
      {syncs.length === 0 ? <p class="state">The key was not synced yet.</p> : <BarLegend />}
      {syncs.length > 0 && (
        <ol class="syncs">
          {foldSyncs(syncs).map((folded) => (
            <Sync
              key={folded.sync.reconcileID}
              folded={folded}
              nowMs={nowMs}
              scaleMs={Math.max(...times)}
            />
          ))}
        </ol>
      )}
    </Card>
  );
}

function Sync(props: {
  readonly folded: FoldedSync<SyncView>;
  readonly nowMs: number;
  readonly scaleMs: number;
}) {
  const { folded, nowMs, scaleMs } = props;
  const { sync, times, since } = folded;
  const { reconcileID, startedAt, causes, attempt, delayedMs, queuedMs, end } = sync;
  const took = end ? duration(end.tookMs) : 'since then';
  const waits = sync.postponed.map(
    ({ reason, times, ms }) => `; ${reason}: ${duration(ms)} (${countText(times, 'time')})`,
  );
  return (
    <li>
      <h3>
        <time dateTime={startedAt}>{timeOfDay(startedAt)}</time> <SyncResult sync={sync} />
        {times > 1 && <b>{` ${times} equal syncs since ${timeOfDay(since)}`}</b>}
        <span class="note">{` ${took}, attempt ${attempt}, ID ${reconcileID}`}</span>
      </h3>
      <SyncBar sync={sync} nowMs={nowMs} scaleMs={scaleMs} />
      <p class="note">
        Waited {duration(delayedMs)} delayed and {duration(queuedMs)} for a worker
        {waits}. Outcome: {outcomeOf(sync)}.
      </p>
      {end?.error !== undefined && (
        <p class="error" dir="auto">
          {end.error}
        </p>
      )}
      <div class="columns">
        <div>
          <h4>Why</h4>
          {causes.length > 0 ? (
            <Causes causes={causes} omitted={sync.omittedCauses} />
          ) : (
            <p class="note">No cause was recorded.</p>
          )}
        </div>
        <div>
          <h4>API calls</h4>
          <DataTable caption="API calls" columns={CALL_COLUMNS} rows={sync.calls} nothing="None." />
          {sync.omittedCalls > 0 && (
            <p class="note">and {countText(sync.omittedCalls, 'more call')}</p>
          )}
        </div>
      </div>
    </li>
  );
}

const CALL_COLUMNS: readonly Column<CallView>[] = [
  { title: 'Verb', cell: ({ verb }) => verb },
  {
    title: 'Object',
    class: 'wide',
    cell: ({ resource, at }) => <Cut text={`${resource} ${at}`.trim()} />,
  },
  {
    title: 'Code',
    cell: (call) =>
      call.error === undefined ? callResult(call) : <Badge tone="bad" text={callResult(call)} />,
  },
  { title: 'At', class: 'number spare', cell: ({ afterMs }) => `+${duration(afterMs)}` },
  { title: 'Took', class: 'number', cell: ({ ms }) => duration(ms) },
];

/** The object with its owners, owned objects and events. */
export function ObjectCards(props: {
  readonly report: ObjectReport | undefined;
  /** Where the objects are: `cluster`, or the caches. */
  readonly place?: string | undefined;
}) {
  const { report, place } = props;
  if (!report) {
    return (
      <Card title="Object" class="full">
        <p class="state">The object is not in the cache: it does not exist, or was deleted.</p>
      </Card>
    );
  }
  const { tree, omitted, events, object } = report;
  return (
    <>
      <Card title="Owners and owned objects" class="half">
        <ul class="tree">
          <TreeItem node={tree} place={place} />
        </ul>
        {omitted > 0 && <p class="note">and {countText(omitted, 'more object')}</p>}
      </Card>
      <TableCard
        class="half"
        columns={EVENT_TABLE_COLUMNS}
        caption="Events"
        rows={events}
        nothing="This program recorded no event about these objects."
      />
      <Card title="YAML" class="full">
        {object === undefined ? (
          <p class="state">The object is too large to be shown.</p>
        ) : (
          <pre class="yaml" tabIndex={0} role="group" aria-label="YAML of the object">
            {yaml(object)}
          </pre>
        )}
      </Card>
    </>
  );
}

function TreeItem(props: { readonly node: ObjectNode; readonly place: string | undefined }) {
  const { node, place } = props;
  const { resource, kind, key, isSelected, isDeleting, phase, problem, conditions, owned } = node;
  const selected = isSelected ? ({ class: 'selected', 'aria-current': 'true' } as const) : {};
  return (
    <li>
      <span {...selected} dir="auto">
        {resource === undefined || isSelected ? (
          `${kind} ${key}`
        ) : (
          <a href={linkTo('object', { in: place, resource, key })}>
            {kind} {key}
          </a>
        )}
      </span>{' '}
      {isDeleting && [<Badge tone="warning" text="being deleted" />, ' ']}
      {resource === undefined && [<Badge tone="neutral" text="not cached" />, ' ']}
      {phase !== undefined && [<span class="note">{phase}</span>, ' ']}
      {conditions.map((condition) => [
        <Badge
          tone={toneOfCondition(condition)}
          text={`${condition.type}: ${condition.status}`}
          title={`${condition.reason ?? ''} ${condition.message ?? ''}`.trim()}
        />,
        ' ',
      ])}
      {problem !== undefined && (
        <p class="note" dir="auto">
          {problem}
        </p>
      )}
      {owned.length > 0 && (
        <ul>
          {owned.map((object) => (
            <TreeItem key={object.uid} node={object} place={place} />
          ))}
        </ul>
      )}
    </li>
  );
}

/** Columns of a table of events. */
export const EVENT_TABLE_COLUMNS: readonly Column<ShownEvent>[] = [
  {
    title: 'Type',
    cell: ({ type = '' }) => (
      <Badge tone={type === 'Warning' ? 'warning' : 'neutral'} text={type} />
    ),
  },
  { title: 'Reason', class: 'spare', cell: ({ reason = '' }) => reason },
  {
    title: 'Message',
    class: 'wide',
    cell: ({ message = '', involvedObject: { kind = '', name = '' } }) => (
      <Cut text={`${kind} ${name}: ${message}`} dir="auto" />
    ),
  },
  { title: 'Count', class: 'number spare', cell: ({ count = 1 }) => count },
  {
    title: 'Last',
    class: 'number',
    cell: ({ lastTimestamp }) => (lastTimestamp ? timeOfDay(lastTimestamp).slice(0, 8) : '–'),
  },
];
