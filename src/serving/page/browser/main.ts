import type { ObjectReport } from '../../object-page.ts';
import type { KeysReport } from '../../queue-pages.ts';
import type { ClusterReport } from '../cluster-report.ts';
import { clusterOf } from './cluster.ts';
import { h, render } from './dom.ts';
import type { Content, Element_ } from './dom.ts';
import { leaderOf, roleOf } from './election.ts';
import { duration } from './format.ts';
import { keyView, shownState } from './key.ts';
import type { KeyData } from './key.ts';
import { keysOf } from './keys.ts';
import { Monitor } from './monitor.ts';
import { overviewOf } from './overview.ts';
import { keyText, overviewText } from './report.ts';
import { linkTo, parseRoute } from './route.ts';
import type { Route } from './route.ts';
import { fetchJson, fetchSnapshot, fetchWhy, put, ResponseError } from './source.ts';
import { badge } from './table.ts';

/** Time between two updates, and the longest one while the program does not respond, in milliseconds. */
const INTERVAL_MS = 2000;
const MAX_INTERVAL_MS = 10_000;

/** A list of all keys costs time proportional to their number, so a long one is loaded less often. */
const MS_PER_LISTED_KEY = 1;

/** Whether the data is current. */
type Connection =
  | { readonly state: 'loading' | 'live' }
  | { readonly state: 'lost' | 'forbidden'; readonly sinceMs: number; readonly reason: string };

/** Parts of the page that the program has. */
const parts = (document.documentElement.dataset['parts'] ?? '').split(' ');
const hasControllers = parts.includes('controllers');
const hasCluster = parts.includes('cluster');

const VIEWS: readonly (readonly [view: string, title: string])[] = [
  ...(hasControllers
    ? ([
        ['', 'Overview'],
        ['keys', 'Keys'],
      ] as const)
    : []),
  ...(hasCluster ? ([['cluster', 'Cluster']] as const) : []),
];

const monitor = new Monitor();
let route: Route = parseRoute(location.hash);
let connection: Connection = { state: 'loading' };
let isPaused = false;
let notice = '';
let keys: KeysReport | undefined;
/** When the list of keys is loaded again. */
let keysDueMs = 0;
let cluster: ClusterReport | undefined;
/** Data of the key in the route. */
let shownKey: { readonly link: string; readonly data: KeyData } | undefined;
let copied = '';
let failures = 0;
let timer: number | undefined;

async function update(): Promise<void> {
  window.clearTimeout(timer);
  if (!isPaused && !document.hidden) {
    try {
      await load();
      if (connection.state === 'lost' && notice === '') notice = 'The program responds again.';
      connection = { state: 'live' };
      failures = 0;
    } catch (error) {
      failures++;
      connection = lost(error);
    }
    draw();
  }
  window.clearTimeout(timer);
  timer = window.setTimeout(
    () => void update(),
    Math.min(MAX_INTERVAL_MS, INTERVAL_MS * 2 ** Math.max(0, failures - 1)),
  );
}

/** Loads what the route shows. */
async function load(): Promise<void> {
  if (isCluster()) cluster = await fetchJson<ClusterReport>('cluster');
  if (!hasControllers) return;
  const snapshot = await fetchSnapshot();
  if (monitor.record(snapshot)) notice = 'The program restarted.';
  if (route.view === 'keys' && performance.now() >= keysDueMs) {
    keys = await fetchJson<KeysReport>('keys');
    keysDueMs = performance.now() + MS_PER_LISTED_KEY * (keys?.keys.length ?? 0);
  }
  if (route.view === 'key') await updateKey(Date.parse(snapshot.status.now));
}

function isCluster(): boolean {
  return hasCluster && (route.view === 'cluster' || !hasControllers);
}

/** Sets a fault switch, and shows its state. */
function setFault(path: string, value: string): void {
  void put(path, value).then(
    () => update(),
    (error: unknown) => {
      notice = `The fault could not be set: ${messageOf(error)}`;
      draw();
    },
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function updateKey(nowMs: number): Promise<void> {
  const link = location.hash;
  const { key = '', controller } = route.query;
  const { why, unknown } = await fetchWhy(key);
  const state = shownState({ why, object: undefined, nowMs }, controller);
  const resource = state && 'resource' in state ? state.resource : undefined;
  const object =
    resource === undefined
      ? undefined
      : await fetchJson<ObjectReport>(
          `object?${new URLSearchParams({ resource, key }).toString()}`,
        );
  shownKey = { link, data: { why, unknown, object, nowMs } };
}

function lost(error: unknown): Connection {
  const sinceMs = 'sinceMs' in connection ? connection.sinceMs : performance.now();
  if (error instanceof ResponseError) {
    const reason = `${error.status}: ${error.message}`;
    return { state: error.isForbidden ? 'forbidden' : 'lost', sinceMs, reason };
  }
  return {
    state: 'lost',
    sinceMs,
    reason: error instanceof TypeError ? 'no connection' : String(error),
  };
}

function connectionBadge(): Element_ {
  if (isPaused) return badge('warning', 'Paused');
  switch (connection.state) {
    case 'loading':
      return badge('neutral', 'Loading');
    case 'live':
      return badge('good', 'Live');
    case 'lost':
      return badge(
        'bad',
        `No response for ${duration(performance.now() - connection.sinceMs)}`,
        connection.reason,
      );
    case 'forbidden':
      return badge('bad', 'Access denied', connection.reason);
  }
}

function header(): Element_ {
  const latest = monitor.latest;
  const role = latest && roleOf(latest.status);
  return h(
    'header',
    { key: 'header' },
    h('a', { class: 'skip', href: '#main', onclick: focusMain }, 'Skip to content'),
    h('h1', {}, programName(), latest && h('small', {}, ` ${latest.status.version}`)),
    h(
      'div',
      { class: 'badges', role: 'status' },
      connectionBadge(),
      ' ',
      role && badge(role.tone, role.text, role.note),
    ),
    hasControllers &&
      h(
        'form',
        { role: 'search', 'aria-label': 'Find a key', class: 'find', onsubmit: find },
        h('input', {
          type: 'search',
          name: 'key',
          placeholder: 'namespace/name',
          'aria-label': 'Key as namespace/name',
          autocomplete: 'off',
          spellcheck: 'false',
        }),
        h('button', { type: 'submit' }, 'Find'),
      ),
    h('button', { type: 'button', onclick: () => void copy() }, copied || 'Copy as text'),
    h('span', { class: 'hidden', role: 'status' }, copied),
    h(
      'button',
      { type: 'button', class: isPaused ? 'pressed' : undefined, onclick: pause },
      isPaused ? 'Resume' : 'Pause',
    ),
    h(
      'nav',
      { 'aria-label': 'Views' },
      VIEWS.map(([view, title]) => {
        const isShown = view === 'cluster' ? isCluster() : view === route.view;
        return h('a', { href: linkTo(view), 'aria-current': isShown && 'page' }, title);
      }),
    ),
  );
}

function programName(): string {
  return monitor.latest?.status.name ?? (hasControllers ? 'Controllers' : 'Cluster');
}

function focusMain(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>('main')?.focus();
}

function find(event: Event): void {
  event.preventDefault();
  if (!(event.target instanceof HTMLFormElement)) return;
  const key = new FormData(event.target).get('key');
  if (typeof key !== 'string' || key.trim() === '') return;
  const text = key.trim();
  // Part of a name finds several keys.
  location.hash = text.includes('/') ? linkTo('key', { key: text }) : linkTo('keys', { text });
}

/** Copies what the view shows, or shows it for copying where the browser does not allow it. */
async function copy(): Promise<void> {
  const text = textOf();
  try {
    await navigator.clipboard.writeText(text);
    copied = 'Copied';
    window.setTimeout(() => {
      copied = '';
      draw();
    }, 2000);
  } catch {
    showText(text);
  }
  draw();
}

function textOf(): string {
  const state = shownKey && shownState(shownKey.data, route.query['controller']);
  if (isCluster()) return JSON.stringify(cluster, undefined, 2);
  if (route.view === 'key' && state) return keyText(route.query['key'] ?? '', state);
  const overview = monitor.overview();
  return overview ? overviewText(overview) : '';
}

function showText(text: string): void {
  const dialog = document.createElement('dialog');
  render(dialog, [
    h('h2', {}, 'Text of this view'),
    h('textarea', { readonly: true, rows: 20, 'aria-label': 'Text of this view', value: text }),
    h('button', { type: 'button', onclick: () => dialog.close() }, 'Close'),
  ]);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector('textarea')?.select();
}

function pause(): void {
  isPaused = !isPaused;
  draw();
  if (!isPaused) void update();
}

function banner(): Content {
  if (connection.state === 'forbidden') {
    return h(
      'p',
      { class: 'banner bad', role: 'alert', key: 'banner' },
      `The program denies access to its debug pages. ${connection.reason}`,
    );
  }
  if (connection.state === 'lost') {
    const old = monitor.latest ? ' The page shows the last values.' : '';
    return h(
      'p',
      { class: 'banner bad', role: 'alert', key: 'banner' },
      `The program does not respond (${connection.reason}).${old}`,
    );
  }
  const leader = monitor.latest && leaderOf(monitor.latest.status);
  const standby = leader && `This process is a standby. ${leader} syncs the keys.`;
  const text = [notice, standby].filter(Boolean).join(' ');
  return text !== '' && h('p', { class: 'banner', role: 'status', key: 'banner' }, text);
}

function content(): Content {
  if (isCluster()) return clusterOf(cluster, route, setFault, go);
  const overview = monitor.overview();
  if (!overview) {
    return h(
      'p',
      { class: 'state', key: 'loading' },
      connection.state === 'loading' ? 'Loading…' : 'No data was received yet.',
    );
  }
  if (route.view === 'keys') return keysOf(keys, route, go, draw);
  if (route.view === 'key') {
    const data = shownKey?.link === location.hash ? shownKey.data : undefined;
    return keyView(route.query['key'] ?? '', route.query['controller'], data);
  }
  return h('div', { class: 'cards', key: 'overview' }, overviewOf(overview));
}

/** Shows another route without an entry in the history, for filters. */
function go(link: string): void {
  history.replaceState(null, '', link);
  route = parseRoute(location.hash);
  draw();
}

function draw(): void {
  const root = document.querySelector('#page');
  document.title = [route.query['key'], programName()].filter(Boolean).join(' – ');
  const main = h('main', { id: 'main', key: 'main', tabindex: -1 }, banner(), content());
  if (root) render(root, [header(), main]);
}

window.addEventListener('hashchange', () => {
  route = parseRoute(location.hash);
  notice = '';
  keysDueMs = 0;
  draw();
  window.scrollTo(0, 0);
  document.querySelector<HTMLElement>('main')?.focus();
  void update();
});
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void update();
});
draw();
void update();
