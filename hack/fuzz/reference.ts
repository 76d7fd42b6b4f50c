import { GoProgram, whyNoProgram } from '../go-program.ts';
import type { Answer } from './targets.ts';

const SOURCE = import.meta.dirname;

/** The error of the program for a question that takes too long. */
const NO_ANSWER = 'no answer';

/** The parsers of Kubernetes and of its libraries, in Go. */
export class Reference {
  readonly #program: GoProgram;

  private constructor(program: GoProgram) {
    this.#program = program;
  }

  /** Returns the reason why this machine cannot build it; undefined if it can. */
  static whyNot(): Promise<string | undefined> {
    return whyNoProgram(SOURCE);
  }

  static async build(): Promise<Reference> {
    return new Reference(await GoProgram.build(SOURCE));
  }

  /** Returns the answers in the order of the inputs; undefined for one that takes too long. */
  async answers(target: string, inputs: readonly Buffer[]): Promise<(Answer | undefined)[]> {
    const questions = inputs.map((input) =>
      JSON.stringify({ target, input: input.toString('base64') }),
    );
    const output = await this.#program.run([], `${questions.join('\n')}\n`);
    return output
      .trimEnd()
      .split('\n')
      .map((line) => {
        const { ok, value } = JSON.parse(line) as { ok: boolean; value: unknown };
        if (ok) return { isAccepted: true, value };
        return value === NO_ANSWER ? undefined : { isAccepted: false, why: String(value) };
      });
  }

  remove(): Promise<void> {
    return this.#program.remove();
  }
}
