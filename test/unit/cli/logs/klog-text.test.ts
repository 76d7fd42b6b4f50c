import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { LogRecord } from '../../../../src/cli/logs/klog-text.ts';
import { klogText } from '../../../../src/cli/logs/klog-text.ts';
import type { LogValue } from '../../../../src/cli/logs/log-value.ts';
import { ObjectReference } from '../../../../src/cli/logs/log-value.ts';

const options = { pid: 4866, skipHeaders: false, addDirHeader: false };

function record(fields: Record<string, LogValue> = {}, changes: Partial<LogRecord> = {}) {
  return {
    severity: 'info',
    message: 'Updated Deployment',
    fields: new Map(Object.entries(fields)),
    verbosity: 0,
    caller: { file: 'controller.ts', folder: 'manager', line: 63 },
    timeMs: new Date(2026, 4, 30, 7, 57, 55, 721).getTime() + 0.03,
    ...changes,
  } satisfies LogRecord;
}

/** Returns the text after the message. */
function shown(value: LogValue): string {
  return klogText(record({ k: value }, { message: '' }), { ...options, skipHeaders: true }).slice(
    '""'.length,
  );
}

describe('the header', () => {
  test('has severity, local time with microseconds, process ID in seven columns, and source position', () => {
    assert.equal(
      klogText(record({ deployment: 'default/web', replicas: 3 }), options),
      'I0530 07:57:55.721030    4866 controller.ts:63] "Updated Deployment" deployment="default/web" replicas=3\n',
    );
    assert.equal(
      klogText(record({}, { severity: 'error' }), { ...options, pid: 12_345_678 }),
      'E0530 07:57:55.721030 12345678 controller.ts:63] "Updated Deployment"\n',
    );
  });

  test('pads every part of the time', () => {
    const timeMs = new Date(2026, 0, 2, 3, 4, 5, 6).getTime() + 0.007;
    assert.match(klogText(record({}, { timeMs }), options), /^I0102 03:04:05\.006007 /);
  });

  test('never rounds up into the next second', () => {
    const timeMs = new Date(2026, 0, 2, 3, 4, 5, 999).getTime() + 0.9995;
    assert.match(klogText(record({}, { timeMs }), options), /^I0102 03:04:05\.999999 /);
  });

  test('can be omitted, or include the folder', () => {
    assert.equal(klogText(record(), { ...options, skipHeaders: true }), '"Updated Deployment"\n');
    assert.match(
      klogText(record(), { ...options, addDirHeader: true }),
      / manager\/controller\.ts:63\] /,
    );
  });
});

describe('a value', () => {
  test('that is a string is quoted as in Go', () => {
    assert.equal(shown('a "b"\t\x1b'), String.raw` k="a \"b\"\t\x1b"` + '\n');
  });

  test('with several lines is between < and >, each line after a tab', () => {
    assert.equal(shown('one\ntwo'), ' k=<\n\tone\n\ttwo\n >\n');
    assert.equal(shown('one\ntwo\n'), ' k=<\n\tone\n\ttwo\n >\n');
    assert.equal(shown('\n'), ' k=<\n\t\n >\n');
    assert.equal(
      klogText(record({ a: 'x\ny', b: 1 }, { message: 'm' }), { ...options, skipHeaders: true }),
      '"m" a=<\n\tx\n\ty\n > b=1\n',
    );
  });

  test('with several lines has no control characters', () => {
    assert.equal(shown('a\tb\n\x1b[2J\r\u009b'), ' k=<\n\ta\tb\n\t\\x1b[2J\\x0d\\u009b\n >\n');
    assert.equal(shown('a\nb\u2028c'), ' k=<\n\ta\n\tb\\u2028c\n >\n');
  });

  test('that is JSON has no control characters, and the same meaning', () => {
    const value = { '\u009b': ['\u007f\u202e\u{E0001}'] };
    const text = shown(value);
    assert.equal(text, String.raw` k={"\u009b":["\u007f\u202e\udb40\udc01"]}` + '\n');
    assert.deepEqual(JSON.parse(text.slice(' k='.length)), value);
  });

  test('that is JSON is compact and escaped as Go escapes it', () => {
    assert.equal(
      shown({ a: [1, true, null], b: '<&>\u2028' }),
      ' k={"a":[1,true,null],"b":"\\u003c\\u0026\\u003e\\u2028"}\n',
    );
    assert.equal(shown(null), ' k=null\n');
    assert.equal(shown(1.5), ' k=1.5\n');
    assert.equal(shown(false), ' k=false\n');
  });

  test('that refers to an object is namespace/name', () => {
    assert.equal(shown(new ObjectReference('web', 'default')), ' k="default/web"\n');
    assert.equal(shown(new ObjectReference('node-1')), ' k="node-1"\n');
    const list = [new ObjectReference('web', 'default'), new ObjectReference('node-1')];
    assert.equal(shown(list), ' k=["default/web","node-1"]\n');
    assert.equal(
      shown([...list, 1]),
      ' k=[{"name":"web","namespace":"default"},{"name":"node-1"},1]\n',
    );
    assert.equal(shown([]), ' k=[]\n');
  });
});

test('a message with several lines is written on one line', () => {
  assert.equal(
    klogText(record({}, { message: 'a\n"b"' }), { ...options, skipHeaders: true }),
    String.raw`"a\n\"b\""` + '\n',
  );
});
