/** Why a key is to run, for people. */
export interface Cause {
  /** `Pod default/web-0 deleted` */
  readonly text: string;
  /** How many additions gave it. */
  readonly times: number;
}

/** How many different causes of one run are told apart; later ones are only counted. */
export const MAX_CAUSES = 10;

/** What several additions of a key give as causes, equal ones once. */
export interface Causes {
  /** First ones first. They are few, most often one: a list is cheaper than a map. */
  readonly causes: { readonly text: string; times: number }[];
  /** Additions whose cause found no place in `causes`. */
  omittedCauses: number;
}

/** @param causes one, or those of a run that was put off */
export function addCauses(to: Causes, causes: string | readonly Cause[]): void {
  if (typeof causes === 'string') addCause(to, causes, 1);
  else for (const { text, times } of causes) addCause(to, text, times);
}

function addCause(to: Causes, text: string, times: number): void {
  for (const known of to.causes) {
    if (known.text === text) {
      known.times += times;
      return;
    }
  }
  if (to.causes.length < MAX_CAUSES) to.causes.push({ text, times });
  else to.omittedCauses += times;
}

/** `Pod default/web-0 deleted`, `Count default/web changed (3 times)` */
export function formatCause({ text, times }: Cause): string {
  return times === 1 ? text : `${text} (${times} times)`;
}
