import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RequestLog } from '../../../../src/apiserver/audit/request-log.ts';
import { parseTarget, requestInfo } from '../../../../src/apiserver/request/request-info.ts';

function add(log: RequestLog, path: string): void {
  const info = requestInfo('GET', parseTarget(path));
  log.add({ method: 'GET', path, info, userAgent: 'tester', receivedMs: 0 });
}

describe('the request log', () => {
  test('keeps the last 1,000 requests at least', () => {
    const log = new RequestLog();
    for (let n = 0; n < 5000; n++) add(log, `/api/v1/pods?n=${n}`);
    const { recent } = log;
    assert.ok(recent.length >= 1000 && recent.length <= 2000, `${recent.length}`);
    assert.equal(recent.at(-1)?.path, '/api/v1/pods?n=4999');
    assert.equal(recent.at(-1000)?.path, '/api/v1/pods?n=4000');
    assert.equal(log.count({ resource: 'pods' }), 5000);
  });

  test('keeps fewer if their paths are long', () => {
    const log = new RequestLog();
    const long = 'x'.repeat(64 * 1024);
    for (let n = 0; n < 300; n++) add(log, `/api/v1/pods?x=${long}&n=${n}`);
    const characters = log.recent.reduce((total, { path }) => total + path.length, 0);
    assert.ok(characters <= 8.1 * 1024 * 1024, `${characters}`);
    assert.ok(log.recent.length >= 60, `${log.recent.length}`);
    assert.match(log.recent.at(-1)?.path ?? '', /n=299$/);
    assert.equal(log.count({ verb: 'list' }), 300);
  });

  test('does not count requests to invalid resource names', () => {
    const log = new RequestLog();
    add(log, `/api/v1/${'x'.repeat(64 * 1024)}`);
    assert.equal(log.count(), 0);
    assert.equal(log.recent.length, 1);
  });
});
