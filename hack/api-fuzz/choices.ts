import { seededRandom } from '../../src/util/seeded-random.ts';

/** Random choices that follow from a seed. */
export class Choices {
  /** Returns a number in [0, 1). */
  readonly number: () => number;

  constructor(seed: number) {
    this.number = seededRandom(seed);
  }

  one<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  below(limit: number): number {
    return Math.floor(this.number() * limit);
  }

  chance(probability: number): boolean {
    return this.number() < probability;
  }
}
