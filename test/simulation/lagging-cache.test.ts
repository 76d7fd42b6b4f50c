import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { COUNTS } from '../../src/api/generated/count.ts';
import { Deferred } from '../../src/util/deferred.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import { Simulation } from '../support/simulation.ts';

/** Delays the events of the Pod watch, as a slow server or network does. */
class DelayedWatch {
  #gate: Deferred | undefined;

  close(): void {
    this.#gate ??= new Deferred();
  }

  open(): void {
    this.#gate?.resolve();
    this.#gate = undefined;
  }

  readonly around =
    (handler: HttpHandler): HttpHandler =>
    async (request) => {
      const response = await handler(request);
      if (!/\/pods\?.*watch=true/.test(request.path)) return response;
      return { ...response, body: this.#hold(response.body) };
    };

  async *#hold(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of body) {
      await this.#gate?.promise;
      yield chunk;
    }
  }
}

describe('A daemon whose Pod cache lags behind', () => {
  let world: Simulation;
  let delay: DelayedWatch;

  beforeEach(async () => {
    world = new Simulation();
    world.startCluster();
    await world.installCrd();
    delay = new DelayedWatch();
    world.startDaemonBehind(delay.around);
    await world.pass(1000);
  });
  afterEach(() => world.end());

  const creates = () =>
    world.server.requests.count({ verb: 'create', resource: 'pods', subresource: '' });
  const deletes = () =>
    world.server.requests.recent.filter(
      ({ info, userAgent }) =>
        info?.verb === 'delete' && info.resource === 'pods' && userAgent === 'daemon',
    ).length;

  it('creates each Pod once, even if the Count is synced repeatedly', async () => {
    delay.close();
    await world.applyCount();
    for (let turn = 0; turn < 5; turn++) {
      await world.pass(1000);
      await world.client.patch(COUNTS, world.at, {
        type: 'merge',
        body: { metadata: { labels: { turn: String(turn) } } },
      });
    }
    await world.pass(1000);
    assert.equal(creates(), 3);
    delay.open();
    await world.untilReady(3);
    assert.equal(creates(), 3);
    assert.deepEqual(world.errors(), []);
  });

  it('deletes each Pod once', async () => {
    await world.applyCount();
    await world.untilReady(3);
    await world.settle();
    delay.close();
    await world.patchCount({ count: 1 });
    await world.pass(1000);
    await world.client.patch(COUNTS, world.at, {
      type: 'merge',
      body: { metadata: { labels: { again: 'true' } } },
    });
    await world.pass(5000);
    assert.equal(deletes(), 2);
    delay.open();
    await world.untilReady(1);
    assert.equal(deletes(), 2);
  });

  it('recognizes its Pod when the response to the creation was lost', async () => {
    delay.close();
    world.server.faults.failNext({ verb: 'create', resource: 'pods' }, 'lostAnswer');
    await world.applyCount();
    await world.pass(5000);
    delay.open();
    await world.untilReady(3);
    await world.settle();
    const events = await world.events();
    assert.ok(!events.some((event) => event.includes('already exists')), events.join('\n'));
  });
});

describe('A Count in its desired state', () => {
  it('causes no requests except watches, also after resyncs', async () => {
    const world = new Simulation();
    world.startCluster();
    await world.installCrd();
    world.startDaemonBehind((handler) => handler, { resyncPeriodMs: 5000 });
    await world.applyCount();
    await world.untilReady(3);
    await world.settle();
    const sent = () =>
      world.server.requests.recent.filter(
        ({ info, userAgent }) => userAgent === 'daemon' && info?.verb !== 'watch',
      ).length;
    const before = sent();
    await world.pass(60_000);
    assert.equal(sent(), before);
    assert.ok(
      world.lines.some(({ message }) => message === 'Caches populated'),
      'the daemon sent requests',
    );
    await world.end();
  });
});
