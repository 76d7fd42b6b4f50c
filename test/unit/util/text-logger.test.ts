import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textLogger } from '../../../src/util/text-logger.ts';

function logger(verbosity?: number) {
  const lines: string[] = [];
  const log = textLogger({
    now: () => Date.UTC(2026, 4, 30, 7, 57, 55, 721),
    write: (line) => lines.push(line),
    ...(verbosity === undefined ? {} : { verbosity }),
  });
  return { log, lines };
}

test('writes time, message, logger name and fields, with text in quotes', () => {
  const { log, lines } = logger();
  log
    .named('cache')
    .named('pods')
    .with({ controller: 'foo', attempt: 1 })
    .info('Updated "it"', { foo: 'default/web', attempt: 2, ok: true, absent: undefined });
  log.info('Plain', { keys: ['a', 'b'], broken: 'a\nb' });
  assert.deepEqual(lines, [
    String.raw`I 2026-05-30T07:57:55.721Z "Updated \"it\"" logger="cache.pods" controller="foo" attempt=2 foo="default/web" ok=true`,
    String.raw`I 2026-05-30T07:57:55.721Z "Plain" keys=["a","b"] broken="a\nb"`,
  ]);
});

test('omits info lines above the verbosity and writes all errors', () => {
  const { log, lines } = logger(2);
  log.v(2).info('two');
  log.v(3).info('three');
  log.v(9).error(undefined, 'nine');
  assert.deepEqual([log.v(2).enabled, log.v(3).enabled], [true, false]);
  assert.deepEqual(
    lines.map((line) => line.slice(-6)),
    ['"two"', '"nine"'].map((text) => ` ${text}`.slice(-6)),
  );
});

test('writes the causes of an error and the stack of a programming error', () => {
  const { log, lines } = logger();
  log.error(new Error('outer', { cause: new Error('inner') }), 'Failed');
  log.error(new TypeError('a bug'), 'Failed');
  log.error('just text', 'Failed');
  assert.match(lines[0] ?? '', /^E .* "Failed" err="outer: inner"$/);
  assert.match(lines[1] ?? '', /err="TypeError: a bug\\n +at .*text-logger\.test\.ts/);
  assert.match(lines[2] ?? '', /err="just text"$/);
});

test('limits the length of fields and never throws', () => {
  const { log, lines } = logger();
  const circle: unknown[] = [];
  circle.push(circle);
  const ring = new Error('ring');
  ring.cause = ring;
  log.error(ring, 'Failed', { circle, long: 'x'.repeat(1e6), big: 1n, none: null });
  assert.match(lines[0] ?? '', /circle="not serialisable: .*" long="x{4096}…" big=.* none=null$/);
});
