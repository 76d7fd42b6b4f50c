import type { ClusterReport, ShownRequest } from '../cluster-report.ts';
import { h } from './dom.ts';
import type { Element_ } from './dom.ts';
import { counted, timeOfDay } from './format.ts';
import { eventTable } from './key.ts';
import { isFailure } from './monitor.ts';
import { linkTo } from './route.ts';
import type { Route } from './route.ts';
import { badge, card, table } from './table.ts';

/** Sets a fault switch. */
export type SetFault = (path: string, value: string) => void;

/** Verbs that change nothing. */
const READS: ReadonlySet<string> = new Set(['get', 'list', 'watch', 'GET', 'HEAD']);

/** Kinds of which a new cluster has many objects. They are folded, so that the kinds of users come first. */
const SYSTEM_KINDS =
  /\.(?:rbac\.authorization|flowcontrol\.apiserver|scheduling|networking|apiregistration)\.k8s\.io$|^componentstatuses$/;

/** Returns the view of the embedded cluster: faults, objects, requests and events. */
export function clusterOf(
  report: ClusterReport | undefined,
  { query }: Route,
  setFault: SetFault,
  go: (link: string) => void,
): Element_[] {
  if (!report) return [h('p', { class: 'state', key: 'loading' }, 'Loading the cluster…')];
  const { url, revision, watches, requests, objects, events } = report;
  return [
    h(
      'div',
      { class: 'cards', key: 'cluster' },
      card(
        'Embedded cluster',
        'full',
        h(
          'dl',
          { class: 'facts' },
          [
            ['Address', url],
            ['Requests', String(requests)],
            ['Revision', String(revision)],
            ['Open watches', String(watches)],
            ['Objects', String(objects.reduce((sum, { count }) => sum + count, 0))],
          ].map(([name = '', value = '']) =>
            h('div', { key: name }, h('dt', {}, name), h('dd', {}, value)),
          ),
        ),
      ),
      h(
        'div',
        { class: 'half stack', key: 'left' },
        faultsCard(report, setFault),
        card(
          'Events of the cluster',
          'tall',
          eventTable('Events of the cluster', events.slice(0, 20), 'No event was recorded yet.'),
        ),
      ),
      objectsCard(report),
      requestsCard(report, query['requests'] ?? 'client writes', go),
    ),
  ];
}

function faultsCard({ faults }: ClusterReport, setFault: SetFault): Element_ {
  const state = (name: string) => faults[`/debug/faults/${name}`] ?? '0';
  const armed = state('fail-next-write');
  const isArmed = armed !== '0';
  const times = (name: string) => `done ${counted(Number(state(name)), 'time')}`;
  const fault = (title: string, text: string, note: string, path: string, value: string) =>
    h(
      'li',
      { key: path },
      h('button', { type: 'button', onclick: () => setFault(path, value) }, title),
      h('span', {}, text, h('span', { class: 'note', role: 'status' }, ` ${note}`)),
    );
  return card(
    'Faults',
    '',
    h('p', { class: 'note' }, 'Disturb the cluster and watch the controllers recover.'),
    h(
      'ul',
      { class: 'faults' },
      fault(
        isArmed ? 'Cancel' : 'Fail the next write',
        'The next write of a client gets status 503.',
        isArmed ? 'waiting for a write' : 'off',
        'faults/fail-next-write',
        isArmed ? '0' : '503',
      ),
      fault(
        'Cut watches',
        'All watch connections break. Clients watch again.',
        times('cut-watches'),
        'faults/cut-watches',
        'now',
      ),
      fault(
        'Expire history',
        'Watches from older versions get status 410. Clients list again.',
        times('expire-history'),
        'faults/expire-history',
        'now',
      ),
    ),
  );
}

function objectsCard({ objects }: ClusterReport): Element_ {
  const [system = [], others = []] = [true, false].map((wanted) =>
    objects.filter(({ resource }) => SYSTEM_KINDS.test(resource) === wanted),
  );
  const total = system.reduce((sum, { count }) => sum + count, 0);
  return card(
    'Objects by kind',
    'half tall objects',
    objectTable('Objects by kind', others),
    h(
      'details',
      {},
      h('summary', {}, `${counted(total, 'object')} for access control, priorities and networks`),
      objectTable('Objects for access control, priorities and networks', system),
    ),
  );
}

function objectTable(caption: string, objects: ClusterReport['objects']): Element_ {
  const most = Math.max(1, ...objects.slice(0, 1).map(({ count }) => count));
  return table(
    caption,
    [
      {
        title: 'Resource',
        isWide: true,
        cell: ({ resource }) => h('span', { title: resource }, resource),
      },
      {
        title: 'Share',
        isSpare: true,
        cell: ({ count }) =>
          h(
            'svg',
            {
              class: 'share',
              viewBox: '0 0 100 8',
              preserveAspectRatio: 'none',
              'aria-hidden': 'true',
            },
            h('rect', { class: 'ok', width: Math.max(1, (100 * count) / most), height: 8 }),
          ),
      },
      { title: 'Objects', isNumber: true, cell: ({ count }) => count },
    ],
    objects,
    { keyOf: ({ resource }) => resource, nothing: 'None.' },
  );
}

function requestsCard(
  { recent }: ClusterReport,
  shown: string,
  go: (link: string) => void,
): Element_ {
  const choices: readonly (readonly [string, (request: ShownRequest) => boolean])[] = [
    ['client writes', ({ verb, agent }) => !READS.has(verb) && agent !== 'kube-controller-manager'],
    ['all writes', ({ verb }) => !READS.has(verb)],
    ['failures', ({ status }) => status === undefined || isFailure(String(status))],
    ['all', () => true],
  ];
  const [, isShown] = choices.find(([name]) => name === shown) ?? choices[0] ?? [];
  return card(
    'Requests',
    'full',
    h(
      'div',
      { class: 'choices', role: 'group', 'aria-label': 'Shown requests' },
      choices.map(([name]) =>
        h(
          'button',
          {
            type: 'button',
            'aria-pressed': String(name === shown),
            onclick: () => go(linkTo('cluster', { requests: name })),
          },
          name,
        ),
      ),
    ),
    table(
      'Requests, newest first',
      [
        { title: 'Time', cell: ({ at }) => timeOfDay(at) },
        { title: 'Verb', cell: ({ verb }) => verb },
        {
          title: 'Path',
          isWide: true,
          cell: ({ path }) => h('span', { title: path, dir: 'ltr' }, path),
        },
        { title: 'User', isSpare: true, cell: ({ user }) => user || '–' },
        { title: 'Agent', isSpare: true, cell: ({ agent }) => agent.split(' ')[0] ?? '' },
        {
          title: 'Status',
          isNumber: true,
          cell: ({ status }) =>
            status === undefined
              ? badge('neutral', 'open')
              : isFailure(String(status))
                ? badge('bad', String(status))
                : String(status),
        },
      ],
      recent.filter((request) => isShown?.(request) ?? true).slice(0, 50),
      { keyOf: (_, at) => String(at), nothing: 'None of the last 100 requests.' },
    ),
  );
}
