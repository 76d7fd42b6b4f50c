import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import type { LoggingOptions } from '../../../../src/cli/logs/logging.ts';
import { createLogger, preciseNow } from '../../../../src/cli/logs/logging.ts';
import { parseVModule } from '../../../../src/cli/logs/log-level.ts';
import type { Logger } from '../../../../src/util/logger.ts';
import { COMPILE_CACHE } from '../../../support/compile-cache.ts';

const OPTIONS: LoggingOptions = {
  format: 'text',
  verbosity: 0,
  vmodule: [],
  skipHeaders: true,
  addDirHeader: false,
};

function logTo(lines: string[], options: Partial<LoggingOptions> = {}): Logger {
  return createLogger(
    { ...OPTIONS, ...options },
    { write: (line) => lines.push(line), now: () => 1_580_306_777_047.28, pid: 7 },
  );
}

describe('verbosity', () => {
  test('writes info lines up to the verbosity, and all errors', () => {
    const lines: string[] = [];
    const log = logTo(lines, { verbosity: 2 });
    log.info('zero');
    log.v(2).info('two');
    log.v(3).info('three');
    log.v(9).error(undefined, 'failed');
    assert.deepEqual(lines, ['"zero"\n', '"two"\n', '"failed"\n']);
    assert.ok(log.v(2).enabled);
    assert.ok(!log.v(3).enabled);
  });

  test('is absolute, not relative to the parent logger', () => {
    assert.ok(logTo([], { verbosity: 2 }).v(2).v(1).enabled);
  });

  test('of single files is set by vmodule', () => {
    const lines: string[] = [];
    const here = logTo(lines, { vmodule: parseVModule('logging.test=4') });
    const elsewhere = logTo(lines, { vmodule: parseVModule('reflector=4') });
    here.v(4).info('shown');
    here.v(5).info('hidden');
    elsewhere.v(1).info('hidden');
    assert.deepEqual(lines, ['"shown"\n']);
    assert.ok(here.v(4).enabled);
    assert.ok(!here.v(5).enabled);
    assert.ok(!elsewhere.v(1).enabled);
  });
});

test('does not read the stack for lines that are not written', (context) => {
  const capture = context.mock.method(Error, 'captureStackTrace');
  const lines: string[] = [];
  const log = logTo(lines, { verbosity: 2, vmodule: parseVModule('reflector=4') });
  log.v(5).info('hidden', { a: 1 });
  assert.ok(!log.v(5).enabled);
  assert.ok(log.v(2).enabled);
  assert.equal(capture.mock.callCount(), 0);
  log.v(4).info('hidden');
  log.v(2).info('shown');
  assert.equal(capture.mock.callCount(), 2);
  assert.deepEqual(lines, ['"shown"\n']);
});

describe('fields', () => {
  test('without a value are omitted', () => {
    const lines: string[] = [];
    logTo(lines).info('m', { a: undefined, b: null });
    assert.deepEqual(lines, ['"m" b=null\n']);
  });
});

test('logs a stack for internal errors only', () => {
  const lines: string[] = [];
  logTo(lines).error(new TypeError('x is not a function'), 'Bug');
  logTo(lines).error(new Error('refused'), 'World');
  assert.match(
    lines[0] ?? '',
    /^"Bug" err="TypeError: x is not a function" stack=<\n\tTypeError: x/,
  );
  assert.equal(lines[1], '"World" err="refused"\n');
});

test('the header has the source line of the log statement', () => {
  const lines: string[] = [];
  const log = logTo(lines, { skipHeaders: false, verbosity: 1 }).v(1);
  log.info('m');
  log.error(undefined, 'm');
  const [first, second] = lines.map((line) => Number(/logging\.test\.ts:(\d+)\]/.exec(line)?.[1]));
  assert.ok(first && second && second === first + 1, lines.join(''));
  assert.match(lines[0] ?? '', /^I0129 \d\d:06:17\.047280       7 logging\.test\.ts:\d+\] "m"\n$/);
});

describe('JSON', () => {
  test('is one object per line, with members in the order of Kubernetes', () => {
    const lines: string[] = [];
    const log = logTo(lines, { format: 'json', verbosity: 2 });
    log
      .named('foo')
      .v(2)
      .info('Updated', { foo: { name: 'a', namespace: 'b' }, text: 'x\ny' });
    log.error(new Error('no'), 'Failed', { foo: 'b/a' });
    assert.deepEqual(
      lines.map((line) => line.replace(/logging\.test\.ts:\d+/, 'logging.test.ts:1')),
      [
        '{"ts":1580306777.04728,"caller":"logs/logging.test.ts:1","logger":"foo","v":2,"msg":"Updated","foo":{"name":"a","namespace":"b"},"text":"x\\ny"}\n',
        '{"ts":1580306777.04728,"caller":"logs/logging.test.ts:1","msg":"Failed","err":"no","foo":"b/a"}\n',
      ],
    );
  });

  test('contains no control characters', () => {
    const lines: string[] = [];
    const text = '\x1b[2J\u009b\u202e';
    logTo(lines, { format: 'json' }).info(text, { text });
    assert.match(lines[0] ?? '', /^[\x20-\x7e]+\n$/);
    const line: unknown = JSON.parse(lines[0] ?? '');
    assert.ok(typeof line === 'object' && line && 'msg' in line && 'text' in line);
    assert.deepEqual([line.msg, line.text], [text, text]);
  });

  test('is split between both streams with splitStream', () => {
    const write = (splitStream: boolean) => {
      const options = { ...OPTIONS, format: 'json', splitStream };
      const url = import.meta.resolve('../../../../src/cli/logs/logging.ts');
      const program = `import { createLogging } from '${url}';
        const { log } = createLogging(${JSON.stringify(options)});
        for (let i = 0; i < 11; i++) log.info('one');
        log.error(undefined, 'two');
        process.exit(3);`;
      const args = ['--input-type=module', '--eval', program];
      const env = { ...process.env, NODE_COMPILE_CACHE: COMPILE_CACHE };
      const { stdout, stderr, status } = spawnSync(process.execPath, args, {
        encoding: 'utf8',
        env,
      });
      assert.equal(status, 3, stderr);
      const said = (text: string) => text.match(/"msg":|"suppressed":1/g) ?? [];
      return [said(stdout).length, said(stderr).length];
    };
    // Ten, and the summary at the end of the process.
    assert.deepEqual(write(true), [12, 1]);
    assert.deepEqual(write(false), [0, 13]);
  });
});

test('masks secrets at every verbosity and in every format', () => {
  const canary = 'c4n4ry-value';
  for (const format of ['text', 'json'] as const) {
    const lines: string[] = [];
    const log = logTo(lines, { format, verbosity: 10 });
    log
      .with({ token: canary })
      .v(10)
      .info(`Authorization: Bearer ${canary}`, {
        headers: { Authorization: `Bearer ${canary}`, cookie: [canary] },
        secret: { kind: 'Secret', metadata: { name: 'x' }, data: { key: canary } },
        nested: [{ clientSecret: canary }],
      });
    log.error(new Error(`GET https://u:${canary}@host failed`), 'Failed', { password: canary });
    assert.equal(lines.length, 2);
    assert.ok(!lines.join('').includes(canary), lines.join(''));
  }
});

describe('the time', () => {
  test('has microseconds between two ticks of the wall clock', () => {
    let elapsed = 0;
    const now = preciseNow(
      () => 1000 + Math.floor(elapsed),
      () => elapsed,
    );
    assert.equal(now(), 1000);
    elapsed = 0.25;
    assert.equal(now(), 1000.25);
  });

  test('follows the wall clock after it is set or the machine slept', () => {
    let wall = 1000;
    const now = preciseNow(
      () => wall,
      () => 5,
    );
    wall = 3_600_000;
    assert.equal(now(), 3_600_000);
    wall = 2000;
    assert.equal(now(), 2000);
  });
});

for (const format of ['text', 'json'] as const) {
  test(`reports dropped lines as a line of format ${format}`, () => {
    const lines: string[] = [];
    const log = createLogger(
      { ...OPTIONS, format },
      {
        write: (_line, _severity, notice) => lines.push(notice({ lines: 2, reason: 'ENOSPC' })),
        now: () => 0,
        pid: 7,
      },
    );
    log.info('Created Pod');
    const [line = ''] = lines;
    if (format === 'text') {
      assert.equal(line, '"Dropped log lines that could not be written" err="ENOSPC" lines=2\n');
    } else {
      const fields: unknown = JSON.parse(line);
      assert.ok(typeof fields === 'object' && fields && 'err' in fields && 'lines' in fields);
      assert.deepEqual([fields.err, fields.lines], ['ENOSPC', 2]);
    }
  });
}
