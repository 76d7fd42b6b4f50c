import { render } from 'preact';
import type { TargetedEvent } from 'preact';
import type { KeysReport } from '../../key-list.ts';
import type { ObjectReport, ObjectsReport } from '../../object-page.ts';
import type { ClusterReport } from '../cluster-report.ts';
import { ClusterView } from './cluster.tsx';
import { roleOf } from './election.ts';
import { duration, moment, problemsOf, verdictLine } from '../../words.ts';
import { shownState } from './key-state.ts';
import type { KeyData } from './key-state.ts';
import { KeyDetails } from './key.tsx';
import { KeysView } from './keys.tsx';
import { Monitor } from './monitor.ts';
import { keyOfFound, ObjectsView, ObjectView } from './objects.tsx';
import { OverviewView, toneOfProblem } from './overview.tsx';
import { keyText, overviewText } from './report.ts';
import { linkTo, linkToKey, parseRoute } from './route.ts';
import type { Route } from './route.ts';
import { fetchJson, fetchSnapshot, fetchWhy, put, ResponseError } from './source.ts';
import { Badge } from './table.tsx';
import { printableText } from '../../../util/printable.ts';
import { messageOf } from '../../../util/values.ts';

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
/** Objects, or the object, of the route. */
let found: { readonly link: string; readonly all?: ObjectsReport; readonly one?: ObjectReport } = {
  link: '',
};
let copied = '';
/** Text that is shown for copying. */
let shownText: string | undefined;
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
  if (route.view === 'objects' || route.view === 'object') await updateFound();
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
  return hasCluster && (route.view === 'cluster' || (!hasControllers && route.view === ''));
}

async function updateFound(): Promise<void> {
  const link = location.hash;
  const { view, query } = route;
  const path = `${query['in'] === 'cluster' ? 'cluster/' : ''}${view}?${new URLSearchParams(query).toString()}`;
  if (view === 'object') {
    const one = await fetchJson<ObjectReport>(path);
    found = { link, ...(one && { one }) };
    return;
  }
  const all = await fetchJson<ObjectsReport>(path);
  found = { link, ...(all && { all }) };
  const { text = '', find } = query;
  if (!all || !find || link !== location.hash) return;
  const key = keyOfFound(all, text);
  // A deleted object is not in the cache, and its syncs may be remembered.
  if (key) location.replace(linkToKey(key.controller, key.key));
  else if (all.count === 0) {
    location.replace(text.includes('/') ? linkTo('key', { key: text }) : linkTo('keys', { text }));
  }
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

async function updateKey(nowMs: number): Promise<void> {
  const link = location.hash;
  const { key = '', controller } = route.query;
  const { why, unknown } = await fetchWhy(key);
  const name = shownState({ why, object: undefined, nowMs }, controller)?.controller ?? controller;
  const object =
    name === undefined
      ? undefined
      : await fetchJson<ObjectReport>(
          `object?${new URLSearchParams({ controller: name, key }).toString()}`,
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

function ConnectionBadge() {
  if (isPaused) return <Badge tone="warning" text="Paused" />;
  switch (connection.state) {
    case 'loading':
      return <Badge tone="neutral" text="Loading" />;
    case 'live':
      return <Badge tone="good" text="Live" />;
    case 'lost': {
      const text = `No response for ${duration(performance.now() - connection.sinceMs)}`;
      return <Badge tone="bad" text={text} title={connection.reason} />;
    }
    case 'forbidden':
      return <Badge tone="bad" text="Access denied" title={connection.reason} />;
  }
}

function Header() {
  const latest = monitor.latest;
  const role = latest && roleOf(latest.status);
  const verdict = latest?.status.verdict;
  const [worst] = verdict && connection.state === 'live' ? problemsOf(verdict) : [];
  return (
    <header>
      <a class="skip" href="#main" onClick={focusMain}>
        Skip to content
      </a>
      <h1>
        {programName()}
        {latest && <small> {latest.status.version}</small>}
      </h1>
      <div class="badges" role="status">
        <ConnectionBadge /> {role && <Badge tone={role.tone} text={role.text} title={role.note} />}
        {latest && worst && route.view !== '' && (
          <a href={linkTo('')}>
            <Badge
              tone={toneOfProblem(worst)}
              text={verdictLine(worst, Date.parse(latest.status.now))}
            />
          </a>
        )}
      </div>
      {hasControllers && (
        <form role="search" aria-label="Find an object" class="find" onSubmit={find}>
          <input
            type="search"
            name="key"
            placeholder="name of an object"
            aria-label="Object as name or namespace/name"
            autocomplete="off"
            spellcheck={false}
          />
          <button type="submit">Find</button>
        </form>
      )}
      <button type="button" onClick={() => void copy()}>
        {copied || 'Copy as text'}
      </button>
      <span class="hidden" role="status">
        {copied}
      </span>
      <button type="button" class={isPaused ? 'pressed' : undefined} onClick={pause}>
        {isPaused ? 'Resume' : 'Pause'}
      </button>
      <nav aria-label="Views">
        {VIEWS.map(([view, title]) => {
          const isShown = view === 'cluster' ? isCluster() : view === route.view;
          return (
            <a href={linkTo(view)} aria-current={isShown ? 'page' : undefined}>
              {title}
            </a>
          );
        })}
      </nav>
    </header>
  );
}

function programName(): string {
  return monitor.latest?.status.name ?? (hasControllers ? 'Controllers' : 'Cluster');
}

function focusMain(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>('main')?.focus();
}

function find(event: TargetedEvent<HTMLFormElement>): void {
  event.preventDefault();
  const key = new FormData(event.currentTarget).get('key');
  if (typeof key !== 'string' || key.trim() === '') return;
  const text = key.trim();
  location.hash = linkTo('objects', { text, find: 'true' });
}

/** Copies what the view shows, or shows it for copying where the browser does not allow it. */
async function copy(): Promise<void> {
  const text = printableText(textOf());
  try {
    await navigator.clipboard.writeText(text);
    copied = 'Copied';
    window.setTimeout(() => {
      copied = '';
      draw();
    }, 2000);
  } catch {
    shownText = text;
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

/** Shows a text for copying. */
function TextDialog({ text }: { readonly text: string }) {
  const show = (dialog: HTMLDialogElement | null) => {
    if (!dialog || dialog.open) return;
    dialog.showModal();
    dialog.querySelector('textarea')?.select();
  };
  const close = () => {
    shownText = undefined;
    draw();
  };
  return (
    <dialog ref={show} onClose={close}>
      <h2>Text of this view</h2>
      <textarea readOnly rows={20} aria-label="Text of this view" value={text} />
      <button type="button" onClick={close}>
        Close
      </button>
    </dialog>
  );
}

function pause(): void {
  isPaused = !isPaused;
  draw();
  if (!isPaused) void update();
}

function Banner() {
  if (connection.state === 'forbidden') {
    return (
      <p class="banner bad" role="alert">
        The program denies access to its debug pages. {connection.reason}
      </p>
    );
  }
  if (connection.state === 'lost') {
    return (
      <p class="banner bad" role="alert">
        The program has not responded since{' '}
        {moment(new Date(performance.timeOrigin + connection.sinceMs).toISOString(), Date.now())}:{' '}
        {connection.reason}. Check that it runs, and that its port is forwarded.
        {monitor.latest && ' The page shows the last values.'}
      </p>
    );
  }
  return notice === '' ? null : (
    <p class="banner" role="status">
      {notice}
    </p>
  );
}

function View() {
  if (isCluster())
    return <ClusterView report={cluster} route={route} setFault={setFault} go={go} />;
  const nowMs = monitor.latest ? Date.parse(monitor.latest.status.now) : Date.now();
  const { all, one } = found.link === location.hash ? found : {};
  if (route.view === 'objects') return <ObjectsView report={all} route={route} nowMs={nowMs} />;
  if (route.view === 'object') return <ObjectView report={one} route={route} nowMs={nowMs} />;
  const overview = monitor.overview();
  if (!overview) {
    const text = connection.state === 'loading' ? 'Loading…' : 'No data was received yet.';
    return <p class="state">{text}</p>;
  }
  if (route.view === 'keys') return <KeysView report={keys} route={route} go={go} redraw={draw} />;
  if (route.view === 'key') {
    const { key = '', controller } = route.query;
    const data = shownKey?.link === location.hash ? shownKey.data : undefined;
    return <KeyDetails key={key} name={key} controller={controller} data={data} />;
  }
  return <OverviewView overview={overview} />;
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
  if (!root) return;
  const page = (
    <>
      <Header />
      <main id="main" tabIndex={-1}>
        <Banner />
        <View />
      </main>
      {shownText !== undefined && <TextDialog text={shownText} />}
    </>
  );
  render(page, root);
}

/** Shows a program, or a cluster, and loads its state again and again. */
export function startLivePage(): void {
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
}
