import { render } from 'preact';
import type { TimelineDetails, TimelineReport } from '../timeline-report.ts';
import { selectEntries } from './recorded-entries.ts';
import type { SelectedEntries } from './recorded-entries.ts';
import { ENTRIES_ID, RecordingView } from './recording.tsx';
import { linkTo, parseRoute } from './route.ts';
import type { Route } from './route.ts';
import { fetchJson } from './source.ts';
import { scrollToRow } from './virtual-table.tsx';
import { messageOf } from '../../../util/values.ts';

let route = parseRoute(location.hash);
let report: TimelineReport | undefined;
let selected: { readonly filters: string; readonly selection: SelectedEntries } | undefined;
let details: { readonly at: number; readonly of: TimelineDetails | undefined } | undefined;
let failure: string | undefined;
let isDue = false;

/** Shows a recording, which is loaded once. */
export function startRecordingPage(): void {
  window.addEventListener('hashchange', show);
  draw();
  fetchJson<TimelineReport>('timeline').then((loaded) => {
    report = loaded;
    if (!loaded) failure = 'The server has no recording.';
    show();
    scrollToSelected();
  }, fail);
}

function fail(error: unknown): void {
  failure = `The recording cannot be loaded: ${messageOf(error)}`;
  draw();
}

/** Changes parameters of the route, without an entry in the history. */
function go(changed: Route['query'] | Readonly<Record<string, undefined>>): void {
  history.replaceState(null, '', linkTo('', { ...route.query, ...changed }));
  show();
  if ('at' in changed) scrollToSelected();
}

function show(): void {
  route = parseRoute(location.hash);
  draw();
  const at = selectedEntry();
  if (at === undefined || details?.at === at) return;
  fetchJson<TimelineDetails>(`timeline/entry?at=${at}`).then((loaded) => {
    details = { at, of: loaded };
    draw();
  }, fail);
}

function selectedEntry(): number | undefined {
  const { at } = route.query;
  return at !== undefined && report?.entries[Number(at)] ? Number(at) : undefined;
}

function scrollToSelected(): void {
  const at = selectedEntry();
  const rows = selected?.selection.rows ?? [];
  if (at !== undefined) scrollToRow(ENTRIES_ID, rows.indexOf(at));
  draw();
}

/** Returns the selected entries. A page is drawn often, and the entries are many. */
function selectionOf(loaded: TimelineReport): SelectedEntries {
  const filters = linkTo('', { ...route.query, at: undefined });
  if (selected?.filters !== filters)
    selected = { filters, selection: selectEntries(loaded, route) };
  return selected.selection;
}

/** Draws once in a frame, however often a table scrolls. */
function redraw(): void {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    draw();
  });
}

function draw(): void {
  const root = document.querySelector('#page');
  document.title = report?.title || 'Recording';
  if (!root) return;
  const at = selectedEntry();
  render(
    <>
      <header>
        <h1>
          {report?.title || 'Recording'}
          {report && <small> {report.file}</small>}
        </h1>
      </header>
      <main id="main" tabIndex={-1} class="recording">
        {failure !== undefined && (
          <p class="banner bad" role="alert">
            {failure}
          </p>
        )}
        {report ? (
          <RecordingView
            report={report}
            route={route}
            selection={selectionOf(report)}
            at={at}
            details={details?.at === at ? details?.of : undefined}
            go={go}
            redraw={redraw}
          />
        ) : (
          failure === undefined && <p class="state">Loading the recording…</p>
        )}
      </main>
    </>,
    root,
  );
}
