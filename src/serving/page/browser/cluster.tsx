import type { ClusterReport, ShownRequest } from '../cluster-report.ts';
import { countText, timeOfDay } from '../../words.ts';
import { EVENT_TABLE_COLUMNS } from './key.tsx';
import { isFailure } from './monitor.ts';
import { linkTo } from './route.ts';
import type { Route } from './route.ts';
import { Badge, Card, Cut, DataTable, TableCard } from './table.tsx';
import type { Column } from './table.tsx';

/** Sets a fault switch. */
export type SetFault = (path: string, value: string) => void;

/** Verbs that change nothing. */
const READS: ReadonlySet<string> = new Set(['get', 'list', 'watch', 'GET', 'HEAD']);

/** Kinds of which a new cluster has many objects. They are folded, so that the kinds of users come first. */
const SYSTEM_KINDS =
  /\.(?:rbac\.authorization|flowcontrol\.apiserver|scheduling|networking|apiregistration)\.k8s\.io$|^componentstatuses$/;

/** View of the embedded cluster: faults, objects, requests and events. */
export function ClusterView(props: {
  readonly report: ClusterReport | undefined;
  readonly route: Route;
  readonly setFault: SetFault;
  readonly go: (link: string) => void;
}) {
  const { report, route, setFault, go } = props;
  if (!report) return <p class="state">Loading the cluster…</p>;
  const facts: readonly (readonly [name: string, value: string | number])[] = [
    ['Address', report.url],
    ['Requests', report.requests],
    ['Revision', report.revision],
    ['Open watches', report.watches],
    ['Objects', totalOf(report.objects)],
  ];
  return (
    <div class="cards">
      <Card title="Embedded cluster" class="full">
        <dl class="facts">
          {facts.map(([name, value]) => (
            <div>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </Card>
      <div class="half stack">
        <FaultsCard report={report} setFault={setFault} />
        <TableCard
          class="tall"
          columns={EVENT_TABLE_COLUMNS}
          caption="Events of the cluster"
          rows={report.events.slice(0, 20)}
          nothing="No event was recorded yet."
        />
      </div>
      <ObjectsCard report={report} />
      <RequestsCard report={report} shown={route.query['requests'] ?? 'client writes'} go={go} />
    </div>
  );
}

function totalOf(objects: ClusterReport['objects']): number {
  return objects.reduce((sum, { count }) => sum + count, 0);
}

function FaultsCard(props: { readonly report: ClusterReport; readonly setFault: SetFault }) {
  const state = (name: string) => props.report.faults[`/debug/faults/${name}`] ?? '0';
  const isArmed = state('fail-next-write') !== '0';
  const times = (name: string) => `done ${countText(Number(state(name)), 'time')}`;
  const faults = [
    {
      title: isArmed ? 'Cancel' : 'Fail the next write',
      text: 'The next write of a client gets status 503.',
      note: isArmed ? 'waiting for a write' : 'off',
      name: 'fail-next-write',
      value: isArmed ? '0' : '503',
    },
    {
      title: 'Cut watches',
      text: 'All watch connections break. Clients watch again.',
      note: times('cut-watches'),
      name: 'cut-watches',
      value: 'now',
    },
    {
      title: 'Expire history',
      text: 'Watches from older versions get status 410. Clients list again.',
      note: times('expire-history'),
      name: 'expire-history',
      value: 'now',
    },
  ];
  return (
    <Card title="Faults" class="">
      <p class="note">Disturb the cluster and watch the controllers recover.</p>
      <ul class="faults">
        {faults.map(({ title, text, note, name, value }) => (
          <li>
            <button type="button" onClick={() => props.setFault(`faults/${name}`, value)}>
              {title}
            </button>
            <span>
              {text}
              <span class="note" role="status">
                {` ${note}`}
              </span>
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function ObjectsCard({ report: { objects } }: { readonly report: ClusterReport }) {
  const isSystem = ({ resource }: { readonly resource: string }) => SYSTEM_KINDS.test(resource);
  const system = objects.filter(isSystem);
  return (
    <Card title="Objects by kind" class="half tall objects">
      <Objects caption="Objects by kind" objects={objects.filter((kind) => !isSystem(kind))} />
      <details>
        <summary>
          {countText(totalOf(system), 'object')} for access control, priorities and networks
        </summary>
        <Objects caption="Objects for access control, priorities and networks" objects={system} />
      </details>
    </Card>
  );
}

function Objects(props: { readonly caption: string; readonly objects: ClusterReport['objects'] }) {
  const { caption, objects } = props;
  const most = Math.max(1, objects[0]?.count ?? 1);
  return (
    <DataTable
      caption={caption}
      columns={[
        {
          title: 'Resource',
          class: 'wide',
          cell: ({ resource }) => (
            <a href={linkTo('objects', { in: 'cluster', resource })} title={resource}>
              {resource}
            </a>
          ),
        },
        {
          title: 'Share',
          class: 'spare',
          cell: ({ count }) => (
            <svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
              <rect class="ok" width={Math.max(1, (100 * count) / most)} height={8} />
            </svg>
          ),
        },
        { title: 'Objects', class: 'number', cell: ({ count }) => count },
      ]}
      rows={objects}
      keyOf={({ resource }) => resource}
      nothing="None."
    />
  );
}

/** The choices of requests to show. */
const CHOICES: readonly (readonly [string, (request: ShownRequest) => boolean])[] = [
  ['client writes', ({ verb, agent }) => !READS.has(verb) && agent !== 'kube-controller-manager'],
  ['all writes', ({ verb }) => !READS.has(verb)],
  ['failures', ({ status }) => status === undefined || isFailure(String(status))],
  ['all', () => true],
];

const REQUEST_COLUMNS: readonly Column<ShownRequest>[] = [
  { title: 'Time', cell: ({ at }) => timeOfDay(at) },
  { title: 'Verb', cell: ({ verb }) => verb },
  { title: 'Path', class: 'wide', cell: ({ path }) => <Cut text={path} dir="ltr" /> },
  { title: 'User', class: 'spare', cell: ({ user }) => user || '–' },
  { title: 'Agent', class: 'spare', cell: ({ agent }) => agent.split(' ')[0] ?? '' },
  {
    title: 'Status',
    class: 'number',
    cell: ({ status }) => {
      if (status === undefined) return <Badge tone="neutral" text="open" />;
      return isFailure(String(status)) ? <Badge tone="bad" text={String(status)} /> : status;
    },
  },
];

function RequestsCard(props: {
  readonly report: ClusterReport;
  readonly shown: string;
  readonly go: (link: string) => void;
}) {
  const { report, shown, go } = props;
  const [, isShown] = CHOICES.find(([name]) => name === shown) ?? CHOICES[0] ?? [];
  return (
    <Card title="Requests" class="full">
      <div class="choices" role="group" aria-label="Shown requests">
        {CHOICES.map(([name]) => (
          <button
            type="button"
            aria-pressed={name === shown}
            onClick={() => go(linkTo('cluster', { requests: name }))}
          >
            {name}
          </button>
        ))}
      </div>
      <DataTable
        caption="Requests, newest first"
        columns={REQUEST_COLUMNS}
        rows={report.recent.filter((request) => isShown?.(request) ?? true).slice(0, 50)}
        nothing="None of the last 100 requests."
      />
    </Card>
  );
}
