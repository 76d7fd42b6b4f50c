import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import { commandLine } from '../../src/cli/command-line.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { Deferred } from '../../src/util/deferred.ts';
import { countDraft, crdOf } from '../support/test-cluster.ts';
import { PROGRAM } from '../support/own-program.ts';

/** Flags of `run` in the complete program: over the network, in real time. */
describe('The run command', () => {
  let server: ApiServer;
  let kubeconfig: string;
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'run-flags-'));
    kubeconfig = join(folder, 'kubeconfig');
  });
  after(() => rmSync(folder, { recursive: true, force: true }));
  beforeEach(async () => {
    server = new ApiServer();
    const client = new HttpClient({ handler: server.handler, server: 'in-process' });
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, crdOf(COUNTS));
    await client.create(COUNTS, countDraft('default', { count: 8 }));
    const listening = await server.listen();
    writeFileSync(kubeconfig, JSON.stringify(listening.kubeconfig()), { mode: 0o600 });
  });
  afterEach(() => server.close());

  const run = async (...flags: readonly string[]) => {
    const startMs = performance.now();
    const argv = [`--kubeconfig=${kubeconfig}`, '--controllers=count', '--once', ...flags];
    let output = '';
    const print = (text: string) => (output += `${text}\n`);
    const code = await commandLine(
      PROGRAM,
      argv,
      {},
      {
        print,
        warn: print,
        colour: false,
        logging: { write: print, now: Date.now, pid: 1 },
      },
    );
    return { code, output, ms: performance.now() - startMs };
  };
  const ours = () =>
    server.requests.recent.filter(({ userAgent }) => userAgent.startsWith('crd-controller/'));
  const pods = () =>
    ours().filter(({ method, info }) => method === 'POST' && info?.resource === 'pods').length;

  it('--once reconciles all objects and exits with code 0', async () => {
    const { code, output } = await run();
    assert.equal(code, 0, output);
    assert.equal(pods(), 8);
    assert.match(output, /"Nothing is left to do" objects=1 /);
  });

  it('--once --dry-run logs the requests that it would send, sends none, and exits with code 1', async () => {
    const { code, output } = await run('--dry-run', '--leader-elect', '-v=2');
    assert.equal(code, 1, output);
    assert.equal(output.match(/"Dry run".* would="create" resource="pods"/g)?.length, 8);
    assert.equal(output.match(/"Created Pod" dryRun=true /g)?.length, 8);
    const requests = ours();
    assert.ok(!requests.some(({ info }) => info?.resource === 'leases'));
    const writes = requests.filter(({ method }) => method !== 'GET');
    assert.ok(writes.length > 8);
    assert.ok(writes.every(({ info }) => info?.query.get('dryRun') === 'All'));
  });

  it('--kube-api-qps and --kube-api-burst limit the requests per second', async () => {
    const { code, output, ms } = await run('--kube-api-qps=25', '--kube-api-burst=1');
    assert.equal(code, 0, output);
    const sent = ours().filter(({ info }) => info?.resource !== 'events').length;
    assert.ok(sent >= 10, `${sent} requests`);
    assert.ok(ms >= ((sent - 1) * 1000) / 25, `${sent} requests in ${ms} ms`);
  });

  it('--kube-api-request-timeout aborts an unanswered request and repeats it', async () => {
    let held = 0;
    const heldRequests = new Deferred();
    server.faults.beforeRequest(async ({ method, info }) => {
      if (method !== 'POST' || info?.resource !== 'pods' || held++ > 0) return;
      await heldRequests.promise;
    });
    try {
      const { code, output } = await run('--kube-api-request-timeout=200ms');
      assert.equal(code, 0, output);
      assert.match(output, /not done within 0\.2 s/);
      assert.ok(held > 8, 'the request was repeated');
    } finally {
      heldRequests.resolve();
    }
  });
});
