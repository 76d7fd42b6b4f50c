/** The part of an arbitrary of fast-check that the library uses. */
export interface FastCheckArbitrary<T = unknown> {
  /** Returns an arbitrary of other values. */
  map<U>(mapper: (value: T) => U): FastCheckArbitrary<U>;
  /** Returns an arbitrary of some of the values. */
  filter(predicate: (value: T) => boolean): FastCheckArbitrary<T>;
}

/** The part of the result of `check` of fast-check that the library uses. */
export interface FastCheckDetails<Values> {
  readonly failed: boolean;
  readonly seed: number;
  /** Path of the counterexample, which repeats the run. */
  readonly counterexamplePath: string | null;
  readonly counterexample: Values | null;
  /** Number of values that `pre` rejected. */
  readonly numSkips: number;
}

/** Parameters of a run. */
export interface FastCheckParameters {
  readonly numRuns?: number;
  readonly seed?: number;
  readonly path?: string;
}

/**
 * The part of the package `fast-check` that the library uses. Pass the module itself: `import * as fc from 'fast-check'`.
 * The library does not import the package.
 */
export interface FastCheck {
  /** One value. */
  constant<T>(value: T): FastCheckArbitrary<T>;
  /** One of the values. */
  constantFrom<T>(...values: T[]): FastCheckArbitrary<T>;
  /** A boolean. */
  boolean(): FastCheckArbitrary<boolean>;
  /** A whole number. */
  integer(options: { min: number; max: number }): FastCheckArbitrary<number>;
  /** A number. */
  double(options: {
    min: number;
    max: number;
    minExcluded: boolean;
    maxExcluded: boolean;
    noNaN: boolean;
  }): FastCheckArbitrary<number>;
  /** A text. */
  string(options: { minLength: number; maxLength: number }): FastCheckArbitrary<string>;
  /** A text that matches. */
  stringMatching(pattern: RegExp): FastCheckArbitrary<string>;
  /** A list of unique items. */
  uniqueArray<T>(
    items: FastCheckArbitrary<T>,
    options: { minLength: number; maxLength: number; selector: (item: T) => unknown },
  ): FastCheckArbitrary<T[]>;
  /** A list. */
  array<T>(
    items: FastCheckArbitrary<T>,
    options: { minLength: number; maxLength: number },
  ): FastCheckArbitrary<T[]>;
  /** An object with any names of fields. */
  dictionary<T>(
    names: FastCheckArbitrary<string>,
    values: FastCheckArbitrary<T>,
    options: { minKeys: number; maxKeys: number; noNullPrototype: boolean },
  ): FastCheckArbitrary<Record<string, T>>;
  /** Values of all arbitraries. */
  tuple(...arbitraries: FastCheckArbitrary[]): FastCheckArbitrary<unknown[]>;
  /** An object with these fields. */
  record(
    fields: Record<string, FastCheckArbitrary>,
    options: { requiredKeys: string[]; noNullPrototype: boolean },
  ): FastCheckArbitrary<Record<string, unknown>>;
  /** A value of one of the arbitraries. */
  oneof(
    options: { withCrossShrink: boolean },
    ...arbitraries: FastCheckArbitrary[]
  ): FastCheckArbitrary;
  /** Any JSON value. */
  jsonValue(options: { maxDepth: number }): FastCheckArbitrary;
  /** Skips the value if `isExpected` is false. */
  pre(isExpected: boolean): void;
  /** A property of values; it holds unless the predicate returns false. */
  property<T>(
    values: FastCheckArbitrary<T>,
    predicate: (value: T) => boolean,
  ): FastCheckProperty<[T]>;
  /** Looks for a counterexample, and shrinks it. */
  check<Values>(
    property: FastCheckProperty<Values>,
    parameters: FastCheckParameters,
  ): FastCheckDetails<Values>;
}

/** A property of fast-check. */
export interface FastCheckProperty<Values> {
  /** Runs the predicate. */
  run(values: Values): unknown;
}
