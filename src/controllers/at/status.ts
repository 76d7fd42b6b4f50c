import { setCondition } from '../../api/conditions.ts';
import type { Condition } from '../../api/conditions.ts';
import type { At, AtStatus } from '../../api/generated/at.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { withReadiness } from '../../api/readiness.ts';
import type { Readiness } from '../../api/readiness.ts';

/** The progress of an At. */
export type AtState =
  /** The At is not due, or its Pod could not be created yet. */
  | { readonly kind: 'pending'; readonly reason: string; readonly message: string }
  /** The At cannot run until a user changes something. */
  | { readonly kind: 'stalled'; readonly reason: string; readonly message: string }
  | { readonly kind: 'running'; readonly podUID: string; readonly message: string }
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'failed'; readonly reason: string; readonly message: string };

/**
 * Returns the status of an At.
 *
 * @param now milliseconds since the epoch
 */
export function buildAtStatus(at: DeepReadonly<At>, state: AtState, now: number): AtStatus {
  const observedGeneration = at.metadata.generation ?? 0;
  const podUID = state.kind === 'running' ? state.podUID : at.status?.podUID;
  const { status, reason, message } = verdictOf(state);
  const succeeded = { type: 'Succeeded', status, observedGeneration, reason, message };
  const conditions = setCondition(at.status?.conditions, succeeded, now);
  return {
    observedGeneration,
    phase: PHASES[state.kind],
    ...(podUID !== undefined && { podUID }),
    conditions: withReadiness(conditions, readinessOf(state), observedGeneration, now),
  };
}

/** Message of an At whose command exited with code 0. */
export const SUCCEEDED = 'The command succeeded';

const PHASES = {
  pending: 'PENDING',
  stalled: 'PENDING',
  running: 'RUNNING',
  succeeded: 'DONE',
  failed: 'DONE',
} as const;

function verdictOf(state: AtState): Pick<Condition, 'status' | 'reason' | 'message'> {
  switch (state.kind) {
    case 'pending':
      return { status: 'Unknown', reason: state.reason, message: state.message };
    case 'running':
      return { status: 'Unknown', reason: 'Running', message: state.message };
    case 'succeeded':
      return { status: 'True', reason: 'Completed', message: SUCCEEDED };
    case 'stalled':
    case 'failed':
      return { status: 'False', reason: state.reason, message: state.message };
  }
}

function readinessOf(state: AtState): Readiness {
  const { reason, message } = verdictOf(state);
  switch (state.kind) {
    case 'pending':
    case 'running':
      return { kind: 'reconciling', reason, message };
    case 'succeeded':
      return { kind: 'ready', reason, message };
    case 'stalled':
    case 'failed':
      return { kind: 'stalled', reason, message };
  }
}
