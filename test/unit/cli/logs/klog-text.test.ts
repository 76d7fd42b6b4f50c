import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { LogRecord } from '../../../../src/cli/logs/klog-text.ts';
import { klogText } from '../../../../src/cli/logs/klog-text.ts';
import type { LogValue } from '../../../../src/cli/logs/log-value.ts';

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

// klog-vectors.test.ts compares lines with those of klog.
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
