import type { ApiCall } from './api-call.ts';

/**
 * One asynchronous boundary, at which the order of a run is decided:
 *
 * | kind       | what happens in the step                                             |
 * | ---------- | -------------------------------------------------------------------- |
 * | `request`  | a request reaches the server, which executes it                      |
 * | `response` | the response reaches the client                                      |
 * | `event`    | one piece of a watch reaches the client                              |
 * | `first action`, `action` | an action of the scenario                              |
 * | `start`    | a process starts                                                     |
 * | `timer`    | the next timer fires; time advances only in these steps              |
 * | `end`      | all actions are done and all is quiet                                |
 */
export type StepKind =
  'request' | 'response' | 'event' | 'first action' | 'action' | 'start' | 'timer' | 'end';

/** A pending step. */
export interface Step {
  readonly kind: StepKind;
  /** The participant that it belongs to: a process, `cluster`, or `scenario`. */
  readonly owner: string;
  /** Name in schedules and stories: `create pods default/web-0`. */
  readonly label: string;
  /** The call of a request, a response or an event. */
  readonly call?: ApiCall | undefined;
  /** Whether faults can strike here. */
  readonly isFaulty: boolean;
  /** When it became possible. */
  postedMs?: number;
  /** Whether it was postponed. It is not postponed again. */
  isPostponed?: boolean;
  /** Runs the step, or a variant of it. */
  run(fault?: StepFault): void;
}

/** Status codes of rejected requests. */
export const STATUS_CODES = [409, 422, 429, 500, 503] as const;

/**
 * | fault     | of a request                                     | of a response            | of an event                |
 * | --------- | ------------------------------------------------ | ------------------------ | -------------------------- |
 * | a code    | the server rejects it                            |                          |                            |
 * | `reset`   | the connection breaks before the server sees it  | the response is lost     | the watch breaks           |
 * | `silence` | never arrives, until the client gives up         | the same                 |                            |
 * | `expire`  |                                                  |                          | 410, and the history ends  |
 */
export type TransportFault = (typeof STATUS_CODES)[number] | 403 | 'reset' | 'silence' | 'expire';

/** A fault of a step itself. `stale`: a starting process reads an older state. */
export type StepFault = TransportFault | 'stale';
