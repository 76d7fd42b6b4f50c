import type { Fault } from './faults.ts';
import { formatDeviation } from './faults.ts';
import { describeChange } from './oracles.ts';
import type { FailedRun } from './shrink.ts';
import type { TraceEntry } from './world.ts';

/** Maximum number of lines of the events of a story. */
const MAX_LINES = 60;

/** Returns the words for a fault in a step. */
function describeFault(fault: Fault, { step }: TraceEntry): string {
  const { kind, owner, label } = step;
  const what = kind === 'request' ? `the request "${label}"` : `the ${label}`;
  switch (fault) {
    case 'crash':
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
  const { trace, changes, deviations } = run;
  const lines: string[] = [];
  let written = 0;
  const tellWrites = (until: number) => {
    for (const change of changes.slice(written, until)) {
      lines.push(line(change.atMs, change.by, describeChange(change)));
    }
    written = until;
  };
  for (const entry of trace) {
    const { step, atMs, fault, writes } = entry;
    tellWrites(writes);
    if (fault !== undefined) lines.push(line(atMs, '!', describeFault(fault, entry)));
    else if (step.kind === 'action') lines.push(line(atMs, '>', step.label));
    else if (step.kind === 'start') lines.push(line(atMs, step.owner, `${step.label}s`));
    else if (step.kind === 'event' && deviations.length > 0 && !step.label.endsWith(': BOOKMARK')) {
      lines.push(line(atMs, step.owner, `sees the ${step.label}`));
    }
  }
  tellWrites(changes.length);
  const hidden = lines.length - MAX_LINES;
  const told = hidden > 0 ? [...lines.slice(0, MAX_LINES), `  … ${hidden} more lines`] : lines;
  const { rule, detail } = violation;
  return [`Violated: ${rule}`, ...detail.split('\n').map((each) => `  ${each}`), '', ...told].join(
    '\n',
  );
}

/** Returns the option that repeats a schedule: `replay: ['crash @ …']`. */
export function replayOption({ run }: FailedRun): string {
  const deviations = run.deviations.map((each) => quoted(formatDeviation(each)));
  return `replay: [${deviations.join(', ')}]`;
}

function line(atMs: number, who: string, what: string): string {
  return `  ${`${(atMs / 1000).toFixed(3)} s`.padStart(11)}  ${who.padEnd(12)}  ${what}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`;
}
