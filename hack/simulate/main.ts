// Explores the controllers of this package and prints what was found, by controller and fault.
//
//   npm run simulate -- [--minutes=N] [--rounds=N] [--schedules=N] [--seed=N] [CONTROLLER…]
//
// Each round has another seed, from the given one on. With --rounds, the same schedules run each time, unless the time ends
// before. Exits with code 1 after a violation.
import { parseArgs } from 'node:util';
import { explore, ViolationError } from '../../src/explore/explore.ts';
import { EXPLORED } from '../../test/support/explored-programs.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    schedules: { type: 'string', default: '2000' },
    rounds: { type: 'string', default: 'Infinity' },
  },
});
const endMs = performance.now() + Number(values.minutes) * 60_000;
const selected = Object.entries(EXPLORED).filter(
  ([name]) => positionals.length === 0 || positionals.includes(name),
);
let violations = 0;
console.log('controller            seed  schedules  histories  a second  violations  trace');
const endSeed = Number(values.seed) + Number(values.rounds);
for (let seed = Number(values.seed); seed < endSeed && performance.now() < endMs; seed++) {
  for (const [name, options] of selected) {
    const startMs = performance.now();
    const seconds = Math.max(0, (endMs - startMs) / 1000);
    const budget = { schedules: Number(values.schedules), seconds };
    const row = (schedules: number, histories: string, found: number, trace: string) => {
      const rate = (schedules / (performance.now() - startMs)) * 1000;
      const cells = [
        name.padEnd(20),
        String(seed).padStart(5),
        String(schedules).padStart(10),
        histories.padStart(10),
        rate.toFixed(0).padStart(9),
        String(found).padStart(11),
        ` ${trace}`,
      ];
      console.log(cells.join(' '));
    };
    try {
      const { schedules, distinctHistories, traceHash } = await explore({
        ...options,
        budget,
        seed,
      });
      row(schedules, String(distinctHistories), 0, traceHash.slice(0, 16));
    } catch (error) {
      if (!(error instanceof ViolationError)) throw error;
      violations++;
      row(error.schedules, '', 1, error.replay.join('; '));
      console.log(`\n${error.message}\n`);
    }
  }
}
console.log(violations === 0 ? 'No violations' : `${violations} violations`);
process.exitCode = violations === 0 ? 0 : 1;
