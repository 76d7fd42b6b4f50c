import type { Interference } from './other-client.ts';
import type { Step, StepFault } from './step.ts';
import { STATUS_CODES } from './step.ts';

/**
 * What can go wrong in one step:
 *
 * | fault    | effect                                                                                     |
 * | -------- | ------------------------------------------------------------------------------------------ |
 * | `crash`  | the process crashes before the step, and starts again                                      |
 * | `stale`  | a starting process reads an older state, as from an API server that is behind              |
 * | `late`   | the step happens after all others that are possible                                        |
 * | `delay`  | the step happens 10 s later                                                                |
 * | `hurry`  | the next action of the scenario happens before the step                                    |
 * | `delete` | another client deletes an owned object before the step                                     |
 * | `recreate` | another client replaces an owned object by one with the same name and no owner           |
 * | `orphan` | another client removes the owner references of an owned object                             |
 * | `mutate` | from now on, admission changes labels, annotations and images of the created resource      |
 *
 * and those of a `TransportFault`.
 */
export type Fault = StepFault | Interference | 'crash' | 'late' | 'delay' | 'hurry' | 'mutate';

/** A fault in the `nth` step of a participant with this label. */
export interface Deviation {
  readonly fault: Fault;
  /** Participant and label: `controller: create pods default/web-0`. */
  readonly at: string;
  readonly nth: number;
}

/** All faults, in the order in which they are tried. */
export const FAULTS: readonly Fault[] = [
  'mutate',
  'crash',
  'reset',
  ...STATUS_CODES,
  'late',
  'delay',
  'stale',
  'expire',
  'silence',
  'hurry',
  'delete',
  'recreate',
  'orphan',
];

/** Faults after which the final state is another one than without faults. */
const LASTING: ReadonlySet<Fault> = new Set<Fault>(['recreate', 'orphan', 'mutate']);

/** Returns whether the final state must be that without faults. */
export function isComparable(deviations: readonly Deviation[]): boolean {
  return !deviations.some(({ fault }) => LASTING.has(fault));
}

/** Returns whether the fault has an effect in the step. */
export function isApplicable(fault: Fault, { kind, call, isFaulty }: Step): boolean {
  if (!isFaulty) return false;
  const isExchange = kind === 'request' || kind === 'response';
  switch (fault) {
    case 'crash':
    case 'late':
    case 'delay':
      return isExchange || kind === 'event';
    case 'hurry':
    case 'delete':
    case 'recreate':
    case 'orphan':
      return isExchange;
    case 'mutate':
      return kind === 'request' && call?.info?.verb === 'create';
    case 'reset':
      return isExchange || kind === 'event';
    case 'silence':
      return isExchange;
    case 'expire':
      return kind === 'event';
    case 'stale':
      return kind === 'start';
    case 409:
    case 422:
      return kind === 'request' && call?.isWrite === true;
    case 429:
    case 500:
    case 503:
      return kind === 'request';
  }
}

/** Text of a deviation, as in the option `replay`: `crash @ controller: create pods default/web-0 #1`. */
export function formatDeviation({ fault, at, nth }: Deviation): string {
  return `${fault} @ ${at} #${nth}`;
}

/** @throws {SyntaxError} if the text is not that of a deviation */
export function parseDeviation(text: string): Deviation {
  const [, name = '', at = '', nth = ''] = /^(\w+) @ (.+) #(\d+)$/.exec(text) ?? [];
  const fault = FAULTS.find((each) => String(each) === name);
  if (fault === undefined) {
    throw new SyntaxError(`replay: expected "FAULT @ STEP #N", got ${JSON.stringify(text)}`);
  }
  return { fault, at, nth: Number(nth) };
}
