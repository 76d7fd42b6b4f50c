import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { programOf } from '../../../../src/cluster/kubelet/simulated-program.ts';
import { logOutput } from '../../../../src/cluster/kubelet/container-log.ts';
import type { SimulatedProgram } from '../../../../src/cluster/kubelet/simulated-program.ts';

const HOUR_MS = 3_600_000;

const repeated = (count: number, word: string) => Array.from({ length: count }, () => word);

function logOf(program: SimulatedProgram, toMs: number): string {
  const options = {
    previous: false,
    timestamps: true,
    sinceMs: undefined,
    tailLines: undefined,
    limitBytes: undefined,
  };
  return new TextDecoder().decode(logOutput(program, { startedMs: 0, afterMs: -1, toMs }, options));
}

function program(
  command: readonly string[],
  environment: Record<string, string> = {},
): SimulatedProgram {
  return programOf(
    { name: 'app', command: [...command] },
    { environment: new Map(Object.entries(environment)) },
  );
}

const sh = (script: string) => ['sh', '-c', script];
const LONG = 'x'.repeat(60_000);

describe('A container whose command needs too much work', () => {
  for (const [what, command, environment] of [
    ['nested commands', repeated(100_000, 'exec')],
    ['shells in shells', sh('sh -c "$A"'), { A: 'sh -c "$A"' }],
    ['references to a long variable', ['echo', '$(A)'.repeat(100_000)], { A: LONG }],
    ['expansions of a long variable', sh(`echo ${'$A'.repeat(5000)}`), { A: LONG }],
    ['arguments of printf', ['printf', '%s', ...repeated(500_000, 'x')]],
    ['a repeated format', ['printf', `%s${LONG}`, ...repeated(100_000, 'x')]],
    ['a loop that prints', sh(`while true; do ${'echo x;'.repeat(2000)} done`)],
    ['a loop over lines', sh('while true; do echo "$A"; done'), { A: '\n'.repeat(60_000) }],
    [
      'output without newlines at the end',
      sh('while true; do B=$(echo "$A"); done'),
      { A: `${'\n'.repeat(60_000)}x` },
    ],
    ['a loop over arguments', [...sh('while true; do : "$@"; done'), ...repeated(300_000, 'a')]],
    ['a loop that exports', sh('while true; do export A=$A; done'), { A: '='.repeat(60_000) }],
  ] as const) {
    it(`runs until it is stopped, and reports it in its log: ${what}`, () => {
      const hostile = program(command, environment);
      assert.deepEqual(hostile.forecast(100 * HOUR_MS), { kind: 'runs', untilMs: Infinity });
      const log = logOf(hostile, 100 * HOUR_MS);
      assert.match(log.slice(-300), /stopped interpreting this command/);
      assert.ok(log.length < 16 * 1024 * 1024, `${log.length} characters`);
    });
  }

  for (const [what, command] of [
    ['digits of a duration', ['sleep', `${'1'.repeat(100_000)}x`]],
    ['a time without a date', sh('sleep 99999999999999d; date')],
    ['arithmetic', sh(`echo $((${'('.repeat(7000)}1${')'.repeat(7000)}))`)],
    ['operators', ['test', ...repeated(100_000, '!'), ...repeated(5, 'a')]],
    ['negations', sh(`${'! '.repeat(8000)}true`)],
  ] as const) {
    it(`runs like a command that is not known: ${what}`, () => {
      assert.deepEqual(program(command).forecast(HOUR_MS), { kind: 'runs', untilMs: Infinity });
    });
  }
});

it('a loop that prints once a second is interpreted for hours', () => {
  const loop = program(sh('while true; do echo tick; sleep 1; done'));
  for (let second = 0; second < 7200; second++) loop.forecast(1000 * second);
  assert.equal(loop.outputs(-1, 2 * HOUR_MS).length, 7193);
});
