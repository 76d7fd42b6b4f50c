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
  /** How often each was given, first ones first. */
  readonly counts: Map<string, number>;
  /** Additions whose cause found no place in `counts`. */
  omitted: number;
}

/** @param causes one, or those of a run that was put off */
export function addCauses(to: Causes, causes: string | readonly Cause[]): void {
  if (typeof causes === 'string') addCause(to, causes, 1);
  else for (const { text, times } of causes) addCause(to, text, times);
}

function addCause(to: Causes, text: string, times: number): void {
  const before = to.counts.get(text);
  if (before !== undefined) to.counts.set(text, before + times);
  else if (to.counts.size < MAX_CAUSES) to.counts.set(text, times);
  else to.omitted += times;
}

export function causesOf({ counts }: Causes): Cause[] {
  return Array.from(counts, ([text, times]) => ({ text, times }));
}

/** `Pod default/web-0 deleted`, `Count default/web changed (3 times)` */
export function formatCause({ text, times }: Cause): string {
  return times === 1 ? text : `${text} (${times} times)`;
}
