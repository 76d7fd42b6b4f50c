import { didYouMean } from './did-you-mean.ts';

/** The names of all options of `O`. The compiler reports missing and superfluous names. */
export type OptionNames<O> = Readonly<Record<keyof O, true>>;

/** Options after their defaults were set. */
export type WithDefaults<O> = { readonly [K in keyof O]-?: Exclude<O[K], undefined> };

/**
 * Rejects unknown options. Without TypeScript, a misspelt option would be ignored without an error.
 *
 * @param where function or class with the options, for the message: `runControllers`
 * @throws {TypeError} if an option is unknown, with a suggestion
 */
export function checkOptions<O>(options: O, names: OptionNames<O>, where: string): void {
  for (const name in options) {
    if (!Object.hasOwn(names, name)) {
      throw new TypeError(
        `${where}: unknown option ${name}${didYouMean(name, Object.keys(names))}`,
      );
    }
  }
}
