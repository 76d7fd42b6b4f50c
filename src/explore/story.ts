import type { Lease } from '../api/builtin.ts';
import type { KubernetesObject } from '../api/object.ts';
import { isBackground } from './api-call.ts';
import type { Fault } from './faults.ts';
import { formatDeviation, formatStop } from './faults.ts';
import type { FinishedRun } from './finished-run.ts';
import type { ChangeRecord } from './history.ts';
import { describeChange } from './rule.ts';
import type { FailedRun } from './shrink.ts';
import type { Step } from './step.ts';
import type { TraceEntry } from './schedule.ts';

/** Maximum number of lines of the events of a story. */
const MAX_LINES = 60;

/** Returns the words for a fault in a step. */
export function describeFault(fault: Fault, { step }: TraceEntry): string {
  const { kind, owner, label } = step;
  const what =
    kind === 'end' ? 'all is done' : kind === 'request' ? `the request "${label}"` : `the ${label}`;
  switch (fault) {
    case 'crash':
      if (kind === 'end') return 'the controllers crash, and start again';
      return `${owner} crashes before ${what}, and starts again`;
    case 'stale':
      return `${owner} starts, and reads the state before the last write; its watches are 10 s behind`;
    case 'late':
      return `${what} is overtaken by everything else`;
    case 'delay':
      return `${what} takes 10 s`;
    case 'hurry':
      return `the next action happens before ${what}`;
    case 'delete':
      return `another client deletes an owned object before ${what}`;
    case 'recreate':
      return `another client replaces an owned object before ${what}`;
    case 'orphan':
      return `another client removes the owner of an object before ${what}`;
    case 'annotate':
      return `another client annotates an owned object and its owner before ${what}`;
    case 'lookalike':
      return `another client creates copies of an owned object, without an owner, before ${what}`;
    case 'occupy':
      return `another client creates an object with the same name before ${what}`;
    case 'twin':
      return `a user creates a second object like the first, after ${what}`;
    case 'fresh':
      return `a user creates the final objects at once, instead of ${what}`;
    case 'foreground':
      if (kind === 'action') return `the next deletions wait for the owned objects, in "${label}"`;
      return 'a user deletes everything';
    case 'teardown':
      return 'a user deletes everything';
    case 'uninstall':
      return 'a user deletes the CRDs, and creates them and their objects again';
    case 'freeze':
      return `${owner} is frozen for a minute at ${what}`;
    case 'jump':
      return `the wall clock of ${owner} jumps by an hour before ${what}`;
    case 'depose':
      return `another client takes the Lease before ${what}`;
    case 'outage':
      return `the server cannot be reached for a minute from ${what} on`;
    case 'refuse':
      return `the server rejects writes of this resource with 403 for two minutes from ${what} on`;
    case 'rollback':
      return `the server returns to the state before its last writes, before ${what}`;
    case 'mutate':
      return `admission changes objects from ${what} on`;
    case 'reset':
      if (kind === 'event') return `the watch breaks at the ${label}`;
      return kind === 'response' ? `${what} is lost` : `the connection breaks before ${what}`;
    case 'silence':
      return `${what} never arrives`;
    case 'expire':
      return `the watch ends with 410 Gone at the ${label}`;
    default:
      return `the server rejects ${what} with ${fault}`;
  }
}

/** Tells a failed schedule: who did what, which faults struck, and what should have held. */
export function storyOf({ run, violation }: FailedRun): string {
  const { trace, changes, deviations, stop } = run;
  const lines: string[] = [];
  let written = 0;
  const tellWrites = (until: number) => {
    for (const change of changes.slice(written, until)) {
      if (isRenewal(change)) continue;
      lines.push(line(change.atMs, change.by, describeChange(change)));
    }
    written = until;
  };
  for (const entry of trace) {
    const { step, atMs, fault, writes } = entry;
    tellWrites(writes);
    if (fault !== undefined) lines.push(line(atMs, '!', describeFault(fault, entry)));
    if (fault !== undefined && step.owner !== 'scenario') continue;
    if (step.owner === 'scenario' && step.kind !== 'end') lines.push(line(atMs, '>', step.label));
    else if (step.kind === 'start') lines.push(line(atMs, step.owner, `${step.label}s`));
    else if (step.kind === 'request' && step.call?.info === undefined) {
      lines.push(line(atMs, step.owner, `sends ${step.label}`));
    } else if (step.kind === 'event' && deviations.length > 0 && isNews(step)) {
      lines.push(line(atMs, step.owner, `sees the ${step.label}`));
    }
  }
  tellWrites(changes.length);
  if (stop !== undefined) lines.push(`${' '.repeat(15)}The schedule ends before "${stop}".`);
  const hidden = lines.length - MAX_LINES;
  const told = hidden > 0 ? [...lines.slice(0, MAX_LINES), `  … ${hidden} more lines`] : lines;
  const { rule, detail } = violation;
  return [`Violated: ${rule}`, ...detail.split('\n').map((each) => `  ${each}`), '', ...told].join(
    '\n',
  );
}

/** Whether a Lease keeps its holder. */
export function isRenewal({ resource, object, previous }: ChangeRecord): boolean {
  if (resource !== 'coordination.k8s.io/leases' || !previous) return false;
  const holderOf = (lease: KubernetesObject) => (lease as Lease).spec?.holderIdentity;
  return holderOf(previous) === holderOf(object);
}

/** Whether an event has objects other than Leases and Events. */
function isNews({ label, call }: Step): boolean {
  return !label.endsWith(': BOOKMARK') && !(call && isBackground(call));
}

/** Returns the value of the option `replay` that repeats a schedule. */
export function replayOf({ stop, deviations }: FinishedRun): string[] {
  const faults = deviations.map(formatDeviation);
  return stop === undefined ? faults : [...faults, formatStop(stop)];
}

/** Returns the option that repeats a schedule: `replay: ['crash @ …']`. */
export function replayOption({ run }: FailedRun): string {
  return `replay: [${replayOf(run).map(quoted).join(', ')}]`;
}

function line(atMs: number, who: string, what: string): string {
  return `  ${`${(atMs / 1000).toFixed(3)} s`.padStart(11)}  ${who.padEnd(12)}  ${what}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`;
}
