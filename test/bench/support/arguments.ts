/** Arguments of the form `--name=value`, each with a default. */
export class Arguments {
  readonly #given: Map<string, string>;

  constructor(args: readonly string[]) {
    this.#given = new Map(
      args.map((arg) => {
        const [, name, value] = /^--([a-z-]+)=(.*)$/.exec(arg) ?? [];
        if (name === undefined || value === undefined) {
          throw new TypeError(`Expected arguments of the form --name=value, got ${arg}`);
        }
        return [name, value];
      }),
    );
  }

  number(name: string, otherwise: number): number {
    return this.numbers(name, [otherwise])[0] ?? otherwise;
  }

  numbers(name: string, otherwise: readonly number[]): readonly number[] {
    const given = this.#take(name);
    if (given === undefined) return otherwise;
    return given.split(',').map((text) => {
      const number = Number(text);
      if (text !== '' && Number.isSafeInteger(number) && number > 0) return number;
      throw new TypeError(`--${name}: expected positive integers, got ${given}`);
    });
  }

  /** @throws {TypeError} if there are unknown arguments */
  end(): void {
    const [name] = this.#given.keys();
    if (name !== undefined) throw new TypeError(`There is no argument --${name}`);
  }

  #take(name: string): string | undefined {
    const value = this.#given.get(name);
    this.#given.delete(name);
    return value;
  }
}
