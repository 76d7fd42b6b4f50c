import { equalJson } from '../api/equal.ts';
import { formatPath } from '../api/field-path.ts';
import { objectIn, textIn } from '../util/json-value.ts';
import { isRecord } from '../util/values.ts';
import type { Ending, EventSummary } from './format.ts';
import { parseApiPath } from './redaction.ts';

/** What a sync writes: a request, or an event. */
export interface Write {
  /** Those with the same identity are compared: method and path of a request, or type, reason and object of an event. */
  readonly identity: string;
  /** `create pods default/web-*` */
  readonly text: string;
  readonly content: unknown;
}

/** A field with two values, as JSON. Undefined: the field is absent. */
export interface FieldDifference {
  /** `.spec.replicas` */
  readonly field: string;
  readonly recorded: string | undefined;
  readonly replayed: string | undefined;
}

/** A write that only the recording has, only the replay has, or that both have with different contents. */
export interface WriteDifference {
  readonly kind: 'missing' | 'additional' | 'different';
  /** `create pods default/web-*`, or `event Normal Created "…" of Pod default/web-0` */
  readonly write: string;
  readonly fields: readonly FieldDifference[];
}

const VERBS: Readonly<Record<string, string>> = {
  GET: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** Returns a request in the terms of the API: `update counts/status default/web`. */
export function describeRequest(method: string, path: string, body: unknown): string {
  const target = parseApiPath(path);
  if (!target) return `${method} ${path}`;
  const { plural, subresource, namespace } = target;
  const metadata = isRecord(body) ? objectIn(body, 'metadata') : undefined;
  const prefix = textIn(metadata, 'generateName');
  const name = target.name ?? (textIn(metadata, 'name') || (prefix && `${prefix}*`));
  const at = [namespace, name].filter((part) => part).join('/');
  const what = subresource === undefined ? plural : `${plural}/${subresource}`;
  return `${VERBS[method] ?? method} ${what}${at === '' ? '' : ` ${at}`}`;
}

/** Returns a request as a write. */
export function requestWrite(method: string, path: string, body: unknown): Write {
  const text = describeRequest(method, path, body);
  const [at = '', query] = path.split('?', 2);
  return { identity: `${method} ${at} ${text}`, text, content: { query, body } };
}

/** Returns an event as a write. */
export function eventWrite(event: EventSummary): Write {
  const { type, reason, message, object } = event;
  const text = `event ${type} ${reason} ${JSON.stringify(message)} of ${object}`;
  return { identity: `event ${type} ${reason} ${object}`, text, content: event };
}

/** Compares the writes of a sync. Those with equal contents match in any order. */
export function compareWrites(
  recorded: readonly Write[],
  replayed: readonly Write[],
): WriteDifference[] {
  const left = [...recorded];
  const unequal = replayed.filter((write) => !take(left, (each) => isEqual(each, write)));
  const differences: WriteDifference[] = [];
  for (const write of unequal) {
    const other = take(left, (each) => each.identity === write.identity);
    differences.push(
      other
        ? {
            kind: 'different',
            write: other.text,
            fields: compareFields(other.content, write.content),
          }
        : { kind: 'additional', write: write.text, fields: [] },
    );
  }
  for (const { text } of left) differences.push({ kind: 'missing', write: text, fields: [] });
  return differences;
}

export function isEqual(a: Write, b: Write): boolean {
  return a.identity === b.identity && equalJson(a.content, b.content);
}

function take(writes: Write[], is: (write: Write) => boolean): Write | undefined {
  const at = writes.findIndex(is);
  return at === -1 ? undefined : writes.splice(at, 1)[0];
}

/** Maximum number of fields of one write that are listed. */
const MAX_FIELDS = 20;

function compareFields(recorded: unknown, replayed: unknown): FieldDifference[] {
  const found: FieldDifference[] = [];
  const compare = (a: unknown, b: unknown, path: readonly (string | number)[]) => {
    if (equalJson(a, b) || found.length >= MAX_FIELDS) return;
    if (Array.isArray(a) && Array.isArray(b)) {
      for (let at = 0; at < Math.max(a.length, b.length); at++)
        compare(a[at], b[at], [...path, at]);
    } else if (isRecord(a) && isRecord(b)) {
      const names = new Set([...Object.keys(a), ...Object.keys(b)]);
      for (const name of names) compare(a[name], b[name], [...path, name]);
    } else {
      // The contents of a request are in its body.
      const field = formatPath(path[0] === 'body' ? path.slice(1) : [...path]);
      found.push({ field, recorded: JSON.stringify(a), replayed: JSON.stringify(b) });
    }
  };
  compare(recorded, replayed, []);
  return found;
}

/** Difference of two requeue delays that is due to the time that code takes, in milliseconds. */
const TOLERANCE_MS = 1000;

/** Returns the recorded and the replayed result as texts, or undefined if they agree. */
export function compareEndings(
  recorded: Ending,
  replayed: Ending | undefined,
): Omit<FieldDifference, 'field'> | undefined {
  if ('aborted' in recorded) return undefined;
  const texts = { recorded: describeEnding(recorded), replayed: describeEnding(replayed) };
  if (!replayed || 'aborted' in replayed) return texts;
  if ('error' in recorded || 'error' in replayed) {
    return texts.recorded === texts.replayed ? undefined : texts;
  }
  const [a, b] = [recorded.outcome, replayed.outcome];
  const isClose =
    a.kind === b.kind &&
    Math.abs(delayOf(a) - delayOf(b)) <= TOLERANCE_MS &&
    ('reason' in a ? a.reason : undefined) === ('reason' in b ? b.reason : undefined);
  return isClose ? undefined : texts;
}

function delayOf(outcome: Extract<Ending, { readonly outcome: unknown }>['outcome']): number {
  if (outcome.kind === 'done') return 0;
  return outcome.kind === 'requeueAt' ? outcome.atMs : outcome.ms;
}

/** Returns how a sync ended, for people. */
export function describeEnding(ending: Ending | undefined): string {
  if (!ending) return 'did not end';
  if ('aborted' in ending) return 'was aborted';
  if ('error' in ending) return `failed: ${ending.error}`;
  const { outcome } = ending;
  if (outcome.kind === 'done') return 'done';
  const when =
    outcome.kind === 'requeueAt'
      ? `at ${new Date(outcome.atMs).toISOString()}`
      : `after ${Math.round(outcome.ms)} ms`;
  return `${outcome.kind === 'postponed' ? 'postponed' : 'requeued'} ${when}${outcome.reason === undefined ? '' : `: ${outcome.reason}`}`;
}
