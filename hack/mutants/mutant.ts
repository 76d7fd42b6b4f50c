/** A small fault that a careless change could bring in, and that some test must notice. */
export interface Mutant {
  /** Which file, within its folder. */
  readonly file: string;
  /** What the fault stands for. */
  readonly fault: string;
  /** A piece of that file, as short as lets it occur exactly once. */
  readonly find: string;
  /** What stands in its place. */
  readonly put: string;
  /** Set if no test can notice, because nothing changes: why. */
  readonly equivalent?: string;
}

/** How often its piece is in the source of its file. */
export function placesOf({ find }: Mutant, source: string): number {
  return source.split(find).length - 1;
}
