import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { CUSTOM_RESOURCE_DEFINITIONS, PODS } from '../../src/api/builtin.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import { ApiError } from '../../src/api/api-error.ts';
import { Simulation } from '../support/simulation.ts';

const CRD = { name: 'counts.demo.mark8s.io' };
const MINUTE_MS = 60_000;

/** A network connection that can be interrupted. */
class Network {
  isUp = true;
  readonly around =
    (handler: HttpHandler): HttpHandler =>
    async (request) => {
      if (this.isUp) return handler(request);
      const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
      throw new ApiError({ kind: 'unreachable', message: 'connection refused', cause });
    };
}

describe('A daemon during outages', () => {
  let simulation: Simulation;

  beforeEach(() => {
    simulation = new Simulation();
    simulation.startCluster();
  });
  afterEach(() => simulation.end());

  /** Returns the lines that a user sees at `-v=0`. */
  const visible = () => simulation.lines.filter(({ level }) => level === 0 || level === 'error');
  const assertLines = (isFine: (count: number) => boolean) => {
    const messages = visible().map(({ message }) => message);
    assert.ok(isFine(messages.length), messages.join('\n'));
  };
  const about = (text: RegExp) =>
    visible().filter(({ message, fields }) => text.test(`${message} ${JSON.stringify(fields)}`));

  it('waits for a missing CRD, logs it once, and starts when the CRD is installed', async () => {
    simulation.startDaemon();
    await simulation.pass(4 * MINUTE_MS);
    const lines = about(/crds\/|CustomResourceDefinition|counts\.demo\.mark8s\.io/);
    assert.equal(lines.length, 1, JSON.stringify(lines));
    assert.match(JSON.stringify(lines[0]), /apply/, 'the line names the fix');
    await simulation.installCrd();
    await simulation.applyCount();
    const from = simulation.elapsedMs();
    await simulation.untilReady(3);
    assert.ok(simulation.elapsedMs() - from < 15_000, 'soon after the CRD was installed');
    assert.deepEqual(simulation.errors(), []);
  });

  it('survives the deletion and re-creation of the CRD', async () => {
    await simulation.installCrd();
    simulation.startDaemon();
    await simulation.applyCount();
    await simulation.untilReady(3);
    await simulation.client.delete(CUSTOM_RESOURCE_DEFINITIONS, CRD);
    await simulation.until('no Pods', async () => (await simulation.pods()).length === 0);
    await simulation.pass(MINUTE_MS);
    await simulation.installCrd();
    await simulation.applyCount({ count: 2 });
    await simulation.untilReady(2);
    assert.deepEqual(simulation.errors(), []);
    assertLines((count) => count < 15);
  });

  it('waits for an unavailable API server, and logs a few lines', async () => {
    await simulation.installCrd();
    await simulation.applyCount();
    const network = new Network();
    network.isUp = false;
    simulation.startDaemonBehind(network.around);
    await simulation.pass(10 * MINUTE_MS);
    assertLines((count) => count > 2 && count < 20);
    network.isUp = true;
    await simulation.untilReady(3);
  });

  it('resumes after an outage of a minute without missing a change', async () => {
    await simulation.installCrd();
    const network = new Network();
    simulation.startDaemonBehind(network.around);
    await simulation.applyCount();
    await simulation.untilReady(3);
    network.isUp = false;
    simulation.server.faults.dropWatches();
    await simulation.client.delete(PODS, { namespace: 'default', name: 'test-count-0' });
    await simulation.patchCount({ count: 5 });
    await simulation.pass(MINUTE_MS);
    network.isUp = true;
    await simulation.untilReady(5);
    assertLines((count) => count < 25);
  });

  it('is not ready while it receives no events, and ready again afterwards', async () => {
    await simulation.installCrd();
    const network = new Network();
    simulation.startDaemonBehind(network.around, { healthProbeBindAddress: '127.0.0.1:0' });
    await simulation.applyCount();
    await simulation.untilReady(3);
    const isListening = ({ message }: { message: string }) => message === 'Listening';
    await simulation.until('probes', () => Promise.resolve(simulation.lines.some(isListening)));
    const listening = simulation.lines.find(isListening);
    const readyz = async () => {
      const answer = await fetch(`http://${String(listening?.fields['address'])}/readyz`);
      return `${answer.status} ${await answer.text()}`;
    };
    assert.equal(await readyz(), '200 ok');
    network.isUp = false;
    simulation.server.faults.dropWatches();
    await simulation.pass(2 * MINUTE_MS);
    assert.equal(await readyz(), '200 ok', 'a short interruption does not make it stalled');
    await simulation.pass(2 * MINUTE_MS);
    assert.match(await readyz(), /^500 .*\[-\]informer-progress failed/s);
    network.isUp = true;
    await simulation.pass(MINUTE_MS);
    assert.equal(await readyz(), '200 ok');
  });

  it('lists again when the history was compacted, and applies the missed changes', async () => {
    await simulation.installCrd();
    const network = new Network();
    simulation.startDaemonBehind(network.around);
    await simulation.applyCount();
    await simulation.untilReady(3);
    network.isUp = false;
    simulation.server.faults.dropWatches();
    await simulation.client.delete(PODS, { namespace: 'default', name: 'test-count-2' });
    await simulation.patchCount({ count: 2 });
    await simulation.pass(1000);
    simulation.server.faults.expireHistory();
    network.isUp = true;
    await simulation.untilReady(2);
    assert.deepEqual(simulation.errors(), []);
  });

  it('repeats no write when responses are lost', async () => {
    await simulation.installCrd();
    simulation.server.faults.failNext({ verb: 'create', resource: 'pods' }, 'lostResponse', {
      times: 2,
    });
    simulation.startDaemon();
    await simulation.applyCount();
    await simulation.untilReady(3);
    await simulation.settle();
    assert.ok(!(await simulation.events()).some((event) => event.startsWith('Err')));
  });

  it('retries responses with the status 500, 503, 429 and 504', async () => {
    await simulation.installCrd();
    simulation.startDaemon();
    for (const status of [500, 503, 429, 504]) {
      simulation.server.faults.failNext({ verb: 'create', resource: 'pods' }, status);
      simulation.server.faults.failNext({ verb: 'patch', resource: 'counts' }, status);
      simulation.server.faults.failNext({ verb: 'create', resource: 'events' }, status);
    }
    await simulation.applyCount();
    await simulation.untilReady(3);
    await simulation.until(
      'the event',
      async () => (await simulation.events()).includes('Synced Count synced successfully'),
      { withinMs: 200_000 },
    );
  });

  it('reports a quota or webhook that rejects Pods once per attempt, and recovers', async () => {
    simulation.server.faults.failNext({ verb: 'create', resource: 'pods' }, 403, { times: 3 });
    await simulation.installCrd();
    simulation.startDaemon();
    await simulation.applyCount();
    await simulation.until('the failure is reported', async () =>
      (await simulation.events()).some((event) =>
        event.startsWith('FailedCreate Error creating: '),
      ),
    );
    await simulation.untilReady(3);
  });

  it('completes the running sync and its events when it is stopped, and sends no further requests', async () => {
    await simulation.installCrd();
    const stop = simulation.startDaemon();
    await simulation.applyCount();
    await simulation.until('the sync starts', async () => (await simulation.pods()).length > 0);
    await stop();
    const names = await simulation.podNames();
    const created = (await simulation.events()).filter((event) =>
      event.startsWith('SuccessfulCreate'),
    );
    assert.equal(created.length, names.length, 'one event for each created Pod');
    await simulation.patchCount({ count: 6 });
    await simulation.pass(MINUTE_MS);
    assert.deepEqual(await simulation.podNames(), names);
  });
});
