import type { ObjectReport } from '../../object-page.ts';
import type { WhyReport } from '../../queue-pages.ts';

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
