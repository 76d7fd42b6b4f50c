import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, test } from 'node:test';
import { cycleVerbosityOnSignal } from '../../../../src/cli/logs/log-level.ts';
import { createLogging } from '../../../../src/cli/logs/logging.ts';
import type { Logging, LoggingOptions } from '../../../../src/cli/logs/logging.ts';

let lines: string[];

function loggingAt(verbosity: number, format: LoggingOptions['format'] = 'text'): Logging {
  lines = [];
  return createLogging(
    { format, verbosity, vmodule: [], skipHeaders: true, addDirHeader: false },
    { write: (line) => lines.push(line), now: () => 0, pid: 7 },
  );
}

describe('the verbosity of a running process', () => {
  test('changes for all loggers, and is logged', () => {
    for (const format of ['text', 'json'] as const) {
      const { log, level } = loggingAt(0, format);
      const child = log.named('cache').v(4).with({ a: 1 });
      child.info('hidden');
      level.setVerbosity(4);
      child.info('shown');
      assert.ok(child.enabled);
      level.setVerbosity(2);
      child.info('hidden');
      assert.ok(!child.enabled);
      assert.equal(level.verbosity, 2);
      const said = lines.map((line) => /Changed verbosity|shown|hidden/.exec(line)?.[0]);
      assert.deepEqual(said, ['Changed verbosity', 'shown', 'Changed verbosity']);
    }
  });

  test('is not logged if it does not change', () => {
    loggingAt(2).level.setVerbosity(2);
    assert.deepEqual(lines, []);
  });

  test('must be a number that klog accepts', () => {
    const { level } = loggingAt(2);
    for (const wrong of [-1, 1.5, Number.NaN, 2 ** 31]) {
      assert.throws(() => level.setVerbosity(wrong), RangeError, String(wrong));
    }
    assert.equal(level.verbosity, 2);
    assert.deepEqual(lines, []);
  });

  test('logs a warning if request bodies are logged, also at the start', () => {
    const { level } = loggingAt(7);
    assert.deepEqual(lines, []);
    level.setVerbosity(10);
    assert.match(lines.at(-1) ?? '', /^"The log contains request bodies: .*" bodies="whole"\n$/);
    loggingAt(8);
    assert.match(lines.join(''), /^"The log contains request bodies: .*" bodies="cut"\n$/);
  });

  test('does not cut texts from 10', () => {
    const { log, level } = loggingAt(0);
    const text = 'x'.repeat(20_000);
    log.info('m', { text });
    level.setVerbosity(10);
    log.info('m', { text });
    assert.ok((lines.at(0)?.length ?? 0) < text.length);
    assert.ok((lines.at(-1)?.length ?? 0) > text.length);
  });
});

test('SIGUSR2 sets the verbosity to 2, 4 and 6 in turn', () => {
  const { level } = loggingAt(0);
  const source = new EventEmitter();
  const cycle = cycleVerbosityOnSignal(source, level);
  const next = () => {
    source.emit('SIGUSR2');
    return level.verbosity;
  };
  assert.deepEqual([next(), next(), next(), next()], [2, 4, 6, 2]);
  level.setVerbosity(9);
  assert.equal(next(), 2);
  cycle.dispose();
  assert.equal(next(), 2);
});
