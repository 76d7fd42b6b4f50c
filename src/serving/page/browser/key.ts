import { formatCause } from '../../../workqueue/queue-item.ts';
import type { Cause } from '../../../workqueue/queue-item.ts';
import type { ObjectNode, ObjectReport, ShownEvent } from '../../object-page.ts';
import type { CallView, SyncView, WhyReport } from '../../queue-pages.ts';
import { h } from './dom.ts';
import type { Content, Element_ } from './dom.ts';
import { counted, duration, timeOfDay } from './format.ts';
import { linkToKey } from './route.ts';
import { badge, card, resultBadge, table } from './table.ts';
import type { Tone } from './table.ts';
import { barLegend, historyLine, syncBar, totalMs } from './timeline.ts';
import { yaml } from './yaml.ts';

/** State of a key in one controller. */
export type KeyState = WhyReport['controllers'][number];

/** What is known about a key. */
export interface KeyData {
  readonly why: WhyReport | undefined;
  /** Why the program knows nothing about its syncs. */
  readonly unknown?: string | undefined;
  readonly object: ObjectReport | undefined;
  /** Time of the response on the clock of the program. */
  readonly nowMs: number;
}

/** Returns the state that is shown: that of the controller in the route, or of the first one. */
export function shownState({ why }: KeyData, controller: string | undefined): KeyState | undefined {
  return why?.controllers.find((state) => state.controller === controller) ?? why?.controllers[0];
}

/** Returns the view of one key. */
export function keyView(
  key: string,
  controller: string | undefined,
  data: KeyData | undefined,
): Element_[] {
  const title = h('h2', { class: 'key', key: 'title', dir: 'auto' }, key);
  if (!data) return [title, h('p', { class: 'state', key: 'loading' }, 'Loading the key…')];
  const state = shownState(data, controller);
  if (!data.why || !state) {
    return [
      title,
      h(
        'p',
        { class: 'state', key: 'none' },
        `${data.unknown ?? 'This key is not queued, and none of its last syncs are remembered'}.`,
      ),
    ];
  }
  const others = data.why.controllers.filter((other) => other !== state);
  return [
    title,
    h(
      'div',
      { class: 'cards', key: 'cards' },
      stateCard(state, others, data.why, data.nowMs),
      syncsCard(state.history?.last ?? [], data.nowMs),
      ...objectCards(data.object),
    ),
  ];
}

function stateCard(
  state: KeyState,
  others: readonly KeyState[],
  { key, owner }: WhyReport,
  nowMs: number,
): Element_ {
  const { history, dueInMs, queuedMs, forMs } = state;
  const last = history?.last.at(-1);
  const fact = (name: string, ...value: Content[]) =>
    h('div', { key: name }, h('dt', {}, name), h('dd', {}, value));
  return card(
    `Controller ${state.controller}`,
    'full',
    h(
      'dl',
      { class: 'facts' },
      fact('State', stateBadge(state)),
      forMs !== undefined && fact('Running for', duration(forMs)),
      queuedMs !== undefined && fact('Waiting for a worker', duration(queuedMs)),
      fact('Next sync', nextOf(state, owner)),
      fact(
        'Remembered',
        history ? `${counted(history.syncs, 'sync')}, ${history.failures} failed` : 'no sync',
      ),
      history && fact('Total time', duration(history.busyMs)),
      last &&
        fact('Last result', last.end ? resultBadge(last.end.result) : badge('good', 'running')),
      owner &&
        fact(
          'Lease',
          `${owner.lease}, held by ${owner.isThisProcess ? 'this process' : owner.holder || 'no process'}`,
        ),
      others.length > 0 &&
        fact(
          'Also in',
          others.map(({ controller }) => [
            h('a', { href: linkToKey(controller, key) }, controller),
            ' ',
          ]),
        ),
    ),
    last?.end?.error !== undefined && h('p', { class: 'banner bad' }, last.end.error),
    state.hotLoop &&
      h(
        'p',
        { class: 'banner bad' },
        `Hot loop: ${state.hotLoop.times} changes within ${duration(state.hotLoop.withinMs)} of ${state.hotLoop.object}, fields ${state.hotLoop.fields.join(', ')}`,
      ),
    state.causes &&
      state.causes.length > 0 && [h('h3', {}, 'Why it waits'), causeList(state.causes, 0)],
    history &&
      historyLine(history.last, nowMs, dueInMs === undefined ? undefined : nowMs + dueInMs),
  );
}

function stateBadge({ state }: KeyState): Element_ {
  const tones: Readonly<Record<string, Tone>> = {
    running: 'good',
    ready: 'warning',
    delayed: 'neutral',
    idle: 'neutral',
  };
  return badge(tones[state] ?? 'neutral', state);
}

function nextOf({ state, dueInMs, again }: KeyState, owner: WhyReport['owner']): string {
  if (owner && !owner.isThisProcess) return 'in another process';
  if (dueInMs !== undefined) return `in ${duration(Math.max(0, dueInMs))}`;
  if (state === 'ready') return 'when a worker is free';
  return again ? 'after the running one' : 'at the next change';
}

/** Returns causes with the values that changed. */
function causeList(causes: readonly Cause[], omitted: number): Element_ {
  return h(
    'ul',
    { class: 'causes' },
    causes.map((cause) =>
      h(
        'li',
        { dir: 'auto' },
        formatCause(cause),
        cause.changes &&
          cause.changes.length > 0 &&
          h(
            'dl',
            { class: 'changes' },
            cause.changes.map(({ field, before, after }) =>
              h(
                'div',
                {},
                h('dt', {}, h('code', {}, field)),
                h(
                  'dd',
                  {},
                  h('del', {}, before ?? 'absent'),
                  h('span', { 'aria-hidden': 'true' }, ' → '),
                  h('ins', {}, after ?? 'absent'),
                ),
              ),
            ),
          ),
      ),
    ),
    omitted > 0 && h('li', {}, `and ${counted(omitted, 'more cause')}`),
  );
}

function syncsCard(syncs: readonly SyncView[], nowMs: number): Element_ {
  if (syncs.length === 0)
    return card('Last syncs', 'full', h('p', { class: 'state' }, 'The key was not synced yet.'));
  const scaleMs = Math.max(
    ...syncs.map((sync) => totalMs(sync, nowMs, Date.parse(sync.startedAt))),
  );
  return card(
    'Last syncs',
    'full',
    barLegend(),
    h(
      'ol',
      { class: 'syncs' },
      syncs.toReversed().map((sync) => syncItem(sync, nowMs, scaleMs)),
    ),
  );
}

function syncItem(sync: SyncView, nowMs: number, scaleMs: number): Element_ {
  const {
    reconcileID,
    startedAt,
    causes,
    omittedCauses,
    attempt,
    delayedMs,
    queuedMs,
    postponed,
    calls,
    omittedCalls,
    end,
  } = sync;
  return h(
    'li',
    { key: reconcileID },
    h(
      'h3',
      {},
      h('time', { datetime: startedAt }, timeOfDay(startedAt)),
      ' ',
      end ? resultBadge(end.result) : badge('good', 'running'),
      h(
        'span',
        { class: 'note' },
        ` ${end ? duration(end.tookMs) : 'since then'}, attempt ${attempt}, ID ${reconcileID}`,
      ),
    ),
    syncBar(sync, nowMs, scaleMs),
    h(
      'p',
      { class: 'note' },
      `Waited ${duration(delayedMs)} delayed and ${duration(queuedMs)} for a worker`,
      postponed.map(
        ({ reason, times, ms }) => `; ${reason}: ${duration(ms)} (${counted(times, 'time')})`,
      ),
      `. Outcome: ${outcomeOf(sync)}.`,
    ),
    end?.error !== undefined && h('p', { class: 'error', dir: 'auto' }, end.error),
    h(
      'div',
      { class: 'columns' },
      h(
        'div',
        {},
        h('h4', {}, 'Why'),
        causes.length > 0
          ? causeList(causes, omittedCauses)
          : h('p', { class: 'note' }, 'No cause was recorded.'),
      ),
      h('div', {}, h('h4', {}, 'API calls'), callTable(calls, omittedCalls)),
    ),
  );
}

/** Returns the outcome of a sync in words. */
export function outcomeOf({ end }: SyncView): string {
  if (!end) return 'still running';
  const { result, requeueAfterMs, reason } = end;
  const next = requeueAfterMs === undefined ? '' : `; again after ${duration(requeueAfterMs)}`;
  return `${result}${next}${reason ? ` (${reason})` : ''}`;
}

/** Returns the status and the error of a call, or `ok`. */
export function callResult({ code, error = '' }: Pick<CallView, 'code' | 'error'>): string {
  return `${code || ''} ${error}`.trim() || 'ok';
}

function callTable(calls: readonly CallView[], omitted: number): Content {
  return [
    table(
      'API calls',
      [
        { title: 'Verb', cell: ({ verb }) => verb },
        {
          title: 'Object',
          isWide: true,
          cell: ({ resource, at }) => {
            const object = `${resource} ${at}`.trim();
            return h('span', { title: object }, object);
          },
        },
        {
          title: 'Code',
          cell: (call) =>
            call.error === undefined ? callResult(call) : badge('bad', callResult(call)),
        },
        {
          title: 'At',
          isNumber: true,
          isSpare: true,
          cell: ({ afterMs }) => `+${duration(afterMs)}`,
        },
        { title: 'Took', isNumber: true, cell: ({ ms }) => duration(ms) },
      ],
      calls,
      { keyOf: (_, at) => String(at), nothing: 'None.' },
    ),
    omitted > 0 && h('p', { class: 'note' }, `and ${counted(omitted, 'more call')}`),
  ];
}

function objectCards(report: ObjectReport | undefined): Element_[] {
  if (!report) {
    return [
      card(
        'Object',
        'full',
        h(
          'p',
          { class: 'state' },
          'The object is not in the cache: it does not exist, or was deleted.',
        ),
      ),
    ];
  }
  const { tree, omitted, events, object } = report;
  return [
    card(
      'Owners and dependents',
      'half',
      h('ul', { class: 'tree' }, treeItem(tree)),
      omitted > 0 && h('p', { class: 'note' }, `and ${counted(omitted, 'more object')}`),
    ),
    card(
      'Events',
      'half',
      eventTable('Events', events, 'This program recorded no event about these objects.'),
    ),
    card(
      'YAML',
      'full',
      object === undefined
        ? h('p', { class: 'state' }, 'The object is too large to be shown.')
        : h(
            'pre',
            { class: 'yaml', tabindex: 0, role: 'group', 'aria-label': 'YAML of the object' },
            yaml(object),
          ),
    ),
  ];
}

/** Returns a table of events, newest first. */
export function eventTable(
  caption: string,
  events: readonly ShownEvent[],
  nothing: string,
): Element_ {
  return table(
    caption,
    [
      {
        title: 'Type',
        cell: ({ type = '' }) => badge(type === 'Warning' ? 'warning' : 'neutral', type),
      },
      { title: 'Reason', isSpare: true, cell: ({ reason = '' }) => reason },
      {
        title: 'Message',
        isWide: true,
        cell: ({ message = '', involvedObject: { kind = '', name = '' } }) => {
          const text = `${kind} ${name}: ${message}`;
          return h('span', { title: text, dir: 'auto' }, text);
        },
      },
      { title: 'Count', isNumber: true, isSpare: true, cell: ({ count = 1 }) => count },
      {
        title: 'Last',
        isNumber: true,
        cell: ({ lastTimestamp }) => (lastTimestamp ? timeOfDay(lastTimestamp).slice(0, 8) : '–'),
      },
    ],
    events,
    { keyOf: (_, at) => String(at), nothing },
  );
}

/** Conditions that are good while they are false. */
const NEGATIVE = /Failed|Failure|Pressure|Unavailable|Stalled|Degraded|Reconciling|Disrupted|Error/;

/** Returns whether a condition reports a problem. */
export function toneOf({
  type = '',
  status = '',
}: {
  readonly type?: string;
  readonly status?: string;
}): Tone {
  if (status === 'Unknown') return 'neutral';
  return (status === 'True') === NEGATIVE.test(type) ? 'warning' : 'good';
}

function treeItem({
  resource,
  kind,
  key,
  uid,
  isSelected,
  isDeleting,
  phase,
  conditions,
  dependents,
}: ObjectNode): Element_ {
  return h(
    'li',
    { key: uid },
    h(
      'span',
      {
        class: isSelected ? 'selected' : undefined,
        'aria-current': isSelected ? 'true' : undefined,
        dir: 'auto',
      },
      `${kind} ${key}`,
    ),
    ' ',
    isDeleting && [badge('warning', 'being deleted'), ' '],
    resource === undefined && [badge('neutral', 'not cached'), ' '],
    phase !== undefined && [h('span', { class: 'note' }, phase), ' '],
    conditions.map((condition) => [
      badge(
        toneOf(condition),
        `${condition.type}: ${condition.status}`,
        `${condition.reason ?? ''} ${condition.message ?? ''}`.trim(),
      ),
      ' ',
    ]),
    dependents.length > 0 && h('ul', {}, dependents.map(treeItem)),
  );
}
