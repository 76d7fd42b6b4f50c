/** A rule has cost more than it may: nothing catches this but who asked for the rule. */
export class CostExceeded extends Error {
  override readonly name = 'CostExceeded';

  constructor() {
    super('operation cancelled: actual cost limit exceeded');
  }
}

/**
 * Counts what an evaluation costs, in the units of a real server (about 100 ns of its time), and
 * stops it at a limit. Besides the costs that the language has, work that is free there but takes us
 * time is charged a little, so that the limit is one on time as well.
 */
export class Meter {
  readonly #limit: number;
  #spent = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get spent(): number {
    return Math.ceil(this.#spent);
  }

  /** @throws {CostExceeded} */
  spend(cost: number): void {
    this.#spent += cost;
    if (this.#spent > this.#limit) throw new CostExceeded();
  }

  /** For what looks at `count` characters, bytes or items besides its cost. */
  work(count: number): void {
    this.spend(count * WORK);
  }
}

const WORK = 0.002;
