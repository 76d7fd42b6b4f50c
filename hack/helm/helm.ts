import { GoProgram, whyNoProgram } from '../go-program.ts';

/** A release to render. */
export interface Release {
  readonly name: string;
  readonly namespace: string;
  /** Values that replace those of the chart. */
  readonly values?: object;
}

export interface Rendered {
  /** The rendered templates by their paths, which start with the name of the chart. */
  readonly files?: Readonly<Record<string, string>>;
  /** Why they could not be rendered, such as a value that the schema rejects. */
  readonly error?: string;
}

interface Answer {
  readonly version: string;
  /** Warnings and errors of `helm lint`. */
  readonly messages: readonly string[];
  readonly rendered: readonly Rendered[] | null;
}

/** Returns why the program in this folder cannot be built on this machine; undefined if it can. */
export const whyNoHelm = (): Promise<string | undefined> => whyNoProgram(import.meta.dirname);

/** Helm's code that lints and renders charts, as a program built from its Go module. */
export class Helm {
  readonly #program: GoProgram;

  private constructor(program: GoProgram) {
    this.#program = program;
  }

  static async build(): Promise<Helm> {
    return new Helm(await GoProgram.build(import.meta.dirname));
  }

  /** Returns the warnings and errors of `helm lint` about the chart in a folder. */
  async lint(chart: string): Promise<readonly string[]> {
    const { messages } = await this.#run({ chart, lint: true });
    return messages;
  }

  /** Renders releases of the chart in a folder, or of a packaged chart. */
  async render(chart: string, ...releases: readonly Release[]): Promise<readonly Rendered[]> {
    const { rendered } = await this.#run({ chart, releases });
    return rendered ?? [];
  }

  remove(): Promise<void> {
    return this.#program.remove();
  }

  async #run(request: object): Promise<Answer> {
    return JSON.parse(await this.#program.run([], JSON.stringify(request)));
  }
}
