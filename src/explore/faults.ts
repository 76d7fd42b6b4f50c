import type { ApiCall } from './api-call.ts';
import { isBackground } from './api-call.ts';
import type { Step, StepFault, StepKind } from './step.ts';
import { STATUS_CODES } from './step.ts';

/** What another client does with an owned object, or with its owner. */
export type Interference = 'delete' | 'recreate' | 'orphan' | 'annotate' | 'lookalike' | 'occupy';

/** What happens to the objects of the scenario as a whole. */
export type Upheaval = 'twin' | 'teardown' | 'foreground' | 'fresh' | 'uninstall';

/** What happens to a process, to its clock, or to the server. */
export type Outage = 'freeze' | 'jump' | 'depose' | 'outage' | 'refuse' | 'rollback';

/** What can go wrong in one step. */
export type Fault =
  StepFault | Interference | Upheaval | Outage | 'crash' | 'late' | 'delay' | 'hurry' | 'mutate';

/** A fault in the `nth` step of a participant with this label. */
export interface Deviation {
  readonly fault: Fault;
  /** Participant and label: `controller: create pods default/web-0`. */
  readonly at: string;
  readonly nth: number;
}

/**
 * How the final state compares with that of the schedule without faults:
 *
 * | comparison | rule                                                                                         |
 * | ---------- | -------------------------------------------------------------------------------------------- |
 * | `equal`    | it is the same, except for objects whose owner does not exist without faults, either         |
 * | `living`   | it is the same, except for objects whose owner does not exist                                |
 * | `contains` | the same objects exist, and others                                                           |
 * | `none`     | it may be another one                                                                        |
 */
export type StateComparison = 'equal' | 'living' | 'contains' | 'none';

interface FaultRule {
  /** Kinds of the steps that it can strike. */
  readonly steps: readonly StepKind[];
  /** The calls that it can strike; `end` steps, actions and starts have none. */
  readonly calls?: (call: ApiCall) => boolean;
  /** @default 'equal' */
  readonly comparison?: StateComparison;
}

const isWrite = ({ isWrite: writes }: ApiCall) => writes;
const isCreate = ({ info }: ApiCall) => info?.verb === 'create';
const isChange = ({ info, isWrite: writes }: ApiCall) =>
  info !== undefined && writes && info.verb !== 'delete';

const EXCHANGE: readonly StepKind[] = ['request', 'response'];
const PIECE: readonly StepKind[] = ['request', 'response', 'event'];
const OTHERS: readonly StepKind[] = ['end', 'action', 'request', 'response'];

/** All faults, in the order in which they are tried. */
const RULES: ReadonlyMap<Fault, FaultRule> = new Map<Fault, FaultRule>([
  ['fresh', { steps: ['first action'], comparison: 'living' }],
  ['teardown', { steps: ['end'], comparison: 'none' }],
  ['foreground', { steps: ['end', 'action'], comparison: 'none' }],
  ['twin', { steps: ['end', 'action'], comparison: 'contains' }],
  ['uninstall', { steps: ['end'], comparison: 'living' }],
  ['mutate', { steps: ['request'], calls: isCreate, comparison: 'none' }],
  ['occupy', { steps: ['request'], calls: isCreate, comparison: 'none' }],
  ['crash', { steps: [...PIECE, 'end'] }],
  ['annotate', { steps: OTHERS, calls: isWrite }],
  ['lookalike', { steps: OTHERS, calls: isWrite }],
  ['delete', { steps: OTHERS, calls: isWrite }],
  ['hurry', { steps: EXCHANGE }],
  ['refuse', { steps: ['request'], calls: isChange }],
  ['outage', { steps: ['request'], calls: isWrite }],
  ['reset', { steps: PIECE }],
  ...STATUS_CODES.map((code): [Fault, FaultRule] => [
    code,
    { steps: ['request'], ...((code === 409 || code === 422) && { calls: isWrite }) },
  ]),
  ['rollback', { steps: ['response', 'end'], calls: isWrite, comparison: 'living' }],
  ['freeze', { steps: EXCHANGE, calls: isWrite }],
  ['depose', { steps: EXCHANGE, calls: isWrite }],
  ['late', { steps: PIECE }],
  ['delay', { steps: PIECE }],
  ['stale', { steps: ['start'] }],
  ['expire', { steps: ['event'] }],
  ['silence', { steps: EXCHANGE }],
  ['recreate', { steps: OTHERS, calls: isWrite, comparison: 'none' }],
  ['orphan', { steps: OTHERS, calls: isWrite, comparison: 'none' }],
  ['jump', { steps: [...EXCHANGE, 'end'], calls: isWrite }],
]);

/** All faults, in the order in which they are tried. */
export const FAULTS: readonly Fault[] = [...RULES.keys()];

const STEP_FAULTS: ReadonlySet<Fault> = new Set<Fault>([
  ...STATUS_CODES,
  'reset',
  'silence',
  'expire',
  'stale',
]);

const COMPARISONS: readonly StateComparison[] = ['none', 'contains', 'living'];

/** Returns how the final state compares with that of the schedule without faults. */
export function comparisonOf(deviations: readonly Deviation[]): StateComparison {
  const needed = new Set(
    deviations.map(({ fault }) => {
      const { comparison = 'equal' } = RULES.get(fault) ?? {};
      return comparison;
    }),
  );
  return COMPARISONS.find((comparison) => needed.has(comparison)) ?? 'equal';
}

/** Returns whether the fault has an effect in the step. */
export function isApplicable(fault: Fault, { kind, call, isFaulty }: Step): boolean {
  if (!isFaulty || (call && isBackground(call))) return false;
  const rule = RULES.get(fault);
  return rule !== undefined && rule.steps.includes(kind) && (!call || (rule.calls?.(call) ?? true));
}

/** Returns whether a step itself runs the fault. */
export function isStepFault(fault: Fault | undefined): fault is StepFault {
  return fault !== undefined && STEP_FAULTS.has(fault);
}

/** Text of a deviation, as in the option `replay`: `crash @ controller: create pods default/web-0 #1`. */
export function formatDeviation({ fault, at, nth }: Deviation): string {
  return `${fault} @ ${at} #${nth}`;
}

/** Text of the action before which a schedule ends, as in the option `replay`: `stop @ a user deletes it`. */
export function formatStop(stop: string): string {
  return STOP + stop;
}

/** Returns the action before which a schedule ends; undefined if the text is that of a deviation. */
export function parseStop(text: string): string | undefined {
  return text.startsWith(STOP) ? text.slice(STOP.length) : undefined;
}

const STOP = 'stop @ ';

/** @throws {SyntaxError} if the text is not that of a deviation */
export function parseDeviation(text: string): Deviation {
  const [, name = '', at = '', nth = ''] = /^(\w+) @ (.+) #(\d+)$/.exec(text) ?? [];
  const fault = FAULTS.find((each) => String(each) === name);
  if (fault === undefined) {
    throw new SyntaxError(`replay: expected "FAULT @ STEP #N", got ${JSON.stringify(text)}`);
  }
  return { fault, at, nth: Number(nth) };
}
