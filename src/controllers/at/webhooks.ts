import { equalJson } from '../../api/equal.ts';
import { ATS } from '../../api/generated/at.ts';
import type { Clock } from '../../util/clock.ts';
import { Webhooks } from '../../webhook/webhooks.ts';
import { parseSpec } from './spec.ts';

/** Age of a schedule that is meant to be now, in milliseconds: clocks differ, and writing a manifest takes time. */
const NOW_MS = 60_000;

/** Ats can be created while the program does not run. */
const OPTIONS = { failurePolicy: 'Ignore', timeoutSeconds: 5 } as const;

/**
 * Returns webhooks that reject Ats which could not run, and warn of schedules that are past. The controller does not
 * depend on them: it reports such Ats in their conditions.
 */
export function atWebhooks({ clock }: { readonly clock: Pick<Clock, 'now'> }): Webhooks {
  return new Webhooks().validates(
    ATS,
    (at, { old, warn }) => {
      // Labels and finalizers of an At from before the webhook can change.
      if (old && equalJson(old.spec, at.spec)) return [];
      const spec = parseSpec(at);
      if (spec.kind === 'invalid') return [spec.error];
      if (spec.dueMs < clock.now() - NOW_MS)
        warn('spec.schedule is past: the command runs at once');
      return [];
    },
    OPTIONS,
  );
}
