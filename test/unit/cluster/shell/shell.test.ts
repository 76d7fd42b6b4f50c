import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SimulatedProgram } from '../../../../src/cluster/kubelet/simulated-program.ts';
import { interpret } from '../../../../src/cluster/shell/shell.ts';

const HOUR_MS = 3_600_000;

/** Runs a command for at most `ms`. Returns its output, and the time and code of its exit. */
function run(
  argv: readonly string[],
  environment: Record<string, string> = {},
  ms: number = HOUR_MS,
) {
  const program = new SimulatedProgram(interpret(argv, new Map(Object.entries(environment))));
  const forecast = program.forecast(ms);
  const output = program
    .outputs(-1, ms)
    .map(({ text }) => text)
    .join('');
  return forecast.kind === 'ends'
    ? { output, exitCode: forecast.exitCode, ms: forecast.atMs, message: forecast.message }
    : { output, runs: true };
}

const sh = (script: string, environment?: Record<string, string>) =>
  run(['sh', '-c', script], environment);

describe('A simulated command', () => {
  it('runs without a shell', () => {
    assert.equal(run(['echo', 'YAY', 'now']).output, 'YAY now\n');
    assert.equal(run(['/bin/true']).exitCode, 0);
    assert.equal(run(['false']).exitCode, 1);
    assert.equal(run(['sleep', '2.5']).ms, 2500);
    assert.equal(run(['sleep', '1m']).ms, 60_000);
  });

  it('that is not known runs until it is stopped, also after known commands', () => {
    for (const argv of [
      [],
      ['nginx'],
      ['sleep', 'infinity'],
      ['sh'],
      ['tail', '-f', '/dev/null'],
    ]) {
      assert.deepEqual(run(argv), { output: '', runs: true }, argv.join(' '));
    }
    assert.deepEqual(sh('echo starting; exec nginx -g "daemon off;"; echo never'), {
      output: 'starting\n',
      runs: true,
    });
  });

  for (const [script, output, exitCode = 0] of [
    ['exit 3', '', 3],
    ['exit 3 && true', '', 3],
    ['false; echo "status $?"', 'status 1\n'],
    ['true && echo a || echo b', 'a\n'],
    ['false && echo a || echo b', 'b\n'],
    ['! false && echo yes', 'yes\n'],
    ['echo one\necho two # comment', 'one\ntwo\n'],
    ['echo \'single $HOME\' "double  $NAME" un\\ quoted', 'single $HOME double  value un quoted\n'],
    ['echo ${NAME} ${OTHER:-none} $((1 + 2 * 3)) $(echo inner)', 'value none 7 inner\n'],
    ['for i in 1 2 3; do echo "line $i"; done', 'line 1\nline 2\nline 3\n'],
    ['for i in $(seq 2 3); do echo $i; done', '2\n3\n'],
    ['i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done', '0\n1\n2\n'],
    ['i=0; until [ "$i" = 2 ]; do i=$((i + 1)); done; echo $i', '2\n'],
    ['while true; do i=$((i+1)); if [ $i -gt 2 ]; then break; fi; done; echo $i', '3\n'],
    ['for i in 1 2 3; do [ $i -eq 2 ] && continue; echo $i; done', '1\n3\n'],
    ['if false; then echo a; elif true; then echo b; else echo c; fi', 'b\n'],
    ['(x=1; echo a; exit 4); echo "$? ${x:-unset}"', 'a\n4 unset\n'],
    ['x=$(echo a; exit 2); echo "$x $?"', 'a 0\n'],
    ["sh -c 'exit 2' || echo failed", 'failed\n'],
    ['{ echo a; echo b; }', 'a\nb\n'],
    ['set -e; false; echo never', '', 1],
    ['set -e; false || true; if false; then :; fi; echo end', 'end\n'],
    ['export A=1 && echo $A > /dev/null; echo $A >&2', '1\n'],
    ['printf "%s=%d\\n" a 1 b 2', 'a=1\nb=2\n'],
    ['echo -n a; echo b', 'ab\n'],
    ['test -z "" && test -n x && echo ok', 'ok\n'],
  ] as const) {
    it(`interprets ${JSON.stringify(script)}`, () => {
      const result = sh(script, { NAME: 'value' });
      assert.deepEqual([result.output, result.exitCode], [output, exitCode]);
    });
  }

  it('sleeps in virtual time', () => {
    const { output, ms, exitCode } = sh('for i in 1 2; do echo $i; sleep 5; done; exit 1');
    assert.deepEqual([output, exitCode], ['1\n2\n', 1]);
    assert.ok(ms! >= 10_000 && ms! < 10_100);
  });

  it('writes its termination message', () => {
    const result = sh('echo "out of disk" > /dev/termination-log; exit 2');
    assert.deepEqual([result.message, result.output], ['out of disk\n', '']);
  });

  it('can run without end, also without sleep', () => {
    const endless = sh('while true; do echo tick; sleep 60; done');
    assert.equal(endless.runs, true);
    assert.equal(endless.output.split('\n').length - 1, 60);
    for (const busy of ['while :; do :; done', 'x=1; while :; do x=$x$x; done']) {
      assert.equal(run(['sh', '-c', busy], {}, 60_000).runs, true);
    }
  });

  it('with other syntax runs until it is stopped', () => {
    for (const script of [
      'echo a | cat',
      'f() { echo a; }; f',
      'cat <<EOF\na\nEOF',
      'echo "a',
      'echo a &&',
      'sleep 1 &',
    ]) {
      assert.deepEqual(sh(script), { output: '', runs: true }, script);
    }
  });
});
