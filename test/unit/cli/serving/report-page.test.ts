import assert from 'node:assert/strict';
import { once } from 'node:events';
import { it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { reportPage } from '../../../../src/cli/serving/report-page.ts';
import { redactText } from '../../../../src/cli/logs/redact.ts';

it('the report is of this process, without its environment', async () => {
  // The report of each worker thread has the environment as well.
  const worker = new Worker('setInterval(() => undefined, 1000)', { eval: true });
  await once(worker, 'online');
  process.env['REPORT_PAGE_TEST'] = 'canary';
  try {
    const page = reportPage(redactText).get('/debug/report') ?? assert.fail();
    const { status, body } = page(new URLSearchParams());
    assert.equal(status, 200);
    assert.doesNotMatch(body, /canary|REPORT_PAGE_TEST/);
    const report = JSON.parse(body) as { header: { processId: number }; javascriptHeap: object };
    assert.equal(report.header.processId, process.pid);
    assert.ok(report.javascriptHeap);
  } finally {
    delete process.env['REPORT_PAGE_TEST'];
    await worker.terminate();
  }
});

it('what would be masked in the log is masked in the report', () => {
  const report = {
    getReport: () => ({ header: { commandLine: ['--master=https://u:secret@x'] } }),
  };
  const page = reportPage(redactText, report).get('/debug/report') ?? assert.fail();
  assert.doesNotMatch(page(new URLSearchParams()).body, /secret/);
});
