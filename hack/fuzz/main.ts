// Gives the parsers of foreign bytes random inputs, and compares what they make of them with Kubernetes' own parsers.
//
//   npm run fuzz -- [--minutes=N] [--seed=N] [--no-go] [--max-ms=N] [TARGET…]
//
// An input must not cause an unexpected error, block the event loop, or have another meaning than for the reference. Inputs
// are made from those in hack/fuzz/corpus: add one for which a parser was wrong. Exits with code 1 if there are findings.
import { parseArgs } from 'node:util';
import { seededRandom } from '../../src/util/seeded-random.ts';
import { answerOf, corpusOf, corpusText, disagreement } from './judge.ts';
import { Mutator } from './mutator.ts';
import { Reference } from './reference.ts';
import type { Target } from './targets.ts';
import { TARGETS } from './targets.ts';

/** Number of inputs for one run of the Go program. */
const BATCH = 2000;

/** Number of large inputs in a batch. */
const LARGE = 6;

/** Maximum number of inputs that are kept, because they had an outcome that no other had. */
const MAX_INPUTS = 2000;

/** Number of findings of a target that are printed. */
const MAX_SHOWN = 10;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    'no-go': { type: 'boolean', default: false },
    'max-ms': { type: 'string', default: '250' },
  },
});
const selected = TARGETS.filter(
  ({ name }) => positionals.length === 0 || positionals.includes(name),
);
const whyNot = values['no-go'] ? 'it was turned off' : await Reference.whyNot();
if (whyNot !== undefined) console.log(`Without the Go program: ${whyNot}`);
const go = whyNot === undefined ? await Reference.build() : undefined;
/** Longest time that an input may take, in milliseconds of CPU. */
const maxMs = Number(values['max-ms']);
const endMs = performance.now() + Number(values.minutes) * 60_000;

/** What was found for one target. */
class Run {
  readonly target: Target;
  readonly #inputs: Buffer[];
  readonly #mutator: Mutator;
  readonly #outcomes = new Set<string>();
  readonly findings = new Map<string, string>();
  inputs = 0;
  accepted = 0;
  longestMs = 0;

  constructor(target: Target, random: () => number) {
    this.target = target;
    this.#inputs = corpusOf(target);
    this.#mutator = new Mutator(random, target.words);
  }

  get outcomes(): number {
    return this.#outcomes.size;
  }

  async batch(): Promise<void> {
    const { target } = this;
    const isFirst = this.inputs === 0;
    const small = isFirst
      ? [...this.#inputs]
      : Array.from({ length: BATCH }, () => this.#input()).filter(
          (input) => input.length < 20_000 && target.ignores?.(input) !== true,
        );
    const answered = small.flatMap((input) => {
      const answer = this.#try(input);
      return answer ? [{ input, answer }] : [];
    });
    const { reference } = target;
    const references =
      reference === 'go'
        ? await go?.answers(
            target.name,
            answered.map(({ input }) => input),
          )
        : reference && answered.map(({ input }) => reference(input));
    for (const [index, { input, answer }] of answered.entries()) {
      const other = references?.[index];
      const problem = other && disagreement(target, answer, other);
      if (problem !== undefined) this.#report(input, problem);
    }
    if (isFirst || target.form === 'json') return;
    for (let index = 0; index < LARGE; index++) {
      this.#try(this.#text(this.#mutator.enlarge(this.#inputs, target.maxBytes)));
    }
  }

  #input(): Buffer {
    return this.target.form === 'json'
      ? this.#mutator.mutateJson(this.#inputs)
      : this.#text(this.#mutator.mutate(this.#inputs));
  }

  /** A text that is not UTF-8 does not reach a parser of texts. */
  #text(input: Buffer): Buffer {
    return this.target.form === 'bytes' ? input : Buffer.from(input.toString());
  }

  #try(input: Buffer) {
    this.inputs++;
    const startMs = performance.now();
    const answer = answerOf(this.target, input);
    const ms = performance.now() - startMs;
    if (ms > maxMs) {
      // Other processes can have delayed it.
      const again = Math.min(...[1, 2, 3].map(() => cpuMs(() => answerOf(this.target, input))));
      this.longestMs = Math.max(this.longestMs, again);
      if (again > maxMs) {
        this.#report(input, `blocks for ${again.toFixed(0)} ms (${input.length} bytes)`, 'blocks');
      }
    } else this.longestMs = Math.max(this.longestMs, ms);
    if (answer instanceof Error) {
      this.#report(input, `throws ${answer.stack}`, answer.message.slice(0, 40));
      return undefined;
    }
    if (answer.isAccepted) this.accepted++;
    const outcome = answer.isAccepted
      ? shapeOf(answer.value)
      : answer.why.replaceAll(/"[^"]*"|'[^']*'|\d+/g, '_').slice(0, 80);
    if (!this.#outcomes.has(outcome) && this.#outcomes.size < MAX_INPUTS && input.length < 2000) {
      this.#outcomes.add(outcome);
      this.#inputs.push(input);
    }
    return answer;
  }

  #report(input: Buffer, problem: string, kind: string = problem.replaceAll(/\d+/g, '0')): void {
    const shown = corpusText(this.target, input);
    const known = this.findings.get(kind);
    const text = `${shown.length > 400 ? `${shown.slice(0, 400)}…` : shown}\n    ${problem}`;
    if (known === undefined || text.length < known.length) this.findings.set(kind, text);
  }
}

/** A rough form of a value: inputs with another one are kept. */
function shapeOf(value: unknown, depth: number = 0): string {
  if (typeof value !== 'object' || value === null) return typeof value;
  if (depth > 3) return '…';
  const members = Object.values(value).map((member) => shapeOf(member, depth + 1));
  return `{${[...new Set(members)].toSorted().slice(0, 5).join()}${Math.min(3, members.length)}}`;
}

function cpuMs(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

const runs = selected.map(
  (target, index) => new Run(target, seededRandom(Number(values.seed) * 1000 + index)),
);
do {
  for (const run of runs) await run.batch();
} while (performance.now() < endMs);
await go?.remove();

console.log('target                    inputs  accepted  outcomes  longest ms  findings');
for (const { target, inputs, accepted, outcomes, longestMs, findings } of runs) {
  const cells = [
    target.name.padEnd(22),
    String(inputs).padStart(9),
    `${((100 * accepted) / inputs).toFixed(0)} %`.padStart(9),
    String(outcomes).padStart(9),
    longestMs.toFixed(0).padStart(11),
    String(findings.size).padStart(9),
  ];
  console.log(cells.join(' '));
}
for (const { target, findings } of runs) {
  if (findings.size === 0) continue;
  console.log(`\n${target.name}:`);
  for (const text of [...findings.values()].slice(0, MAX_SHOWN)) console.log(`  ${text}`);
}
process.exitCode = runs.some(({ findings }) => findings.size > 0) ? 1 : 0;
