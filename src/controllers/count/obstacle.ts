import type { Count, CountSpec } from '../../api/generated/count.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { specProblem } from '../spec-problem.ts';
import type { SpecRules } from '../spec-problem.ts';
import { podName } from './pod.ts';

/** Why a Count cannot get on, in the words of its conditions. */
export interface Obstacle {
  /** CamelCase, stable. */
  readonly reason: string;
  readonly message: string;
  /** Only a change by the user helps; otherwise the next try may. */
  readonly stalled: boolean;
}

/** The longest name that the server accepts for a Pod. */
const LONGEST_POD_NAME = 253;

const RULES: SpecRules<CountSpec> = {
  name: { type: 'string' },
  count: { type: 'integer', minimum: 0, maximum: 1000 },
};

/** Why the Count can have no Pods, or not all; undefined if it can. */
export function obstacleIn(count: DeepReadonly<Count>): Obstacle | undefined {
  const problem = specProblem<CountSpec>(count.spec, RULES);
  if (problem !== undefined) return { reason: 'InvalidSpec', message: problem, stalled: true };
  const longest = podName(count, Math.max(0, count.spec.count - 1));
  if (longest.length <= LONGEST_POD_NAME) return undefined;
  const message = `Pod name ${longest.slice(0, 40)}... would have ${longest.length} characters, ${LONGEST_POD_NAME} are allowed; use a Count with a shorter name`;
  return { reason: 'NameTooLong', message, stalled: true };
}
