import { didYouMean } from './did-you-mean.ts';

/** The names of all options of `O`: the compiler reports one that is missing or too many. */
export type OptionNames<O> = Readonly<Record<keyof O, true>>;

/**
 * Refuses options that do not exist. Without TypeScript a misspelt option would have no effect, and
 * nothing would say so.
 *
 * @param where what the options are of, for the message: `runControllers`
 * @throws {TypeError} naming the option, and the existing one that is spelt most like it
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
