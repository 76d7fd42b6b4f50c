import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { HttpClient } from '../../src/client/http-client.ts';
import type { HttpRequest } from '../../src/util/http.ts';
import { untilAborted } from '../../src/util/until-aborted.ts';
import { Simulation } from '../support/simulation.ts';

describe('given a daemon that is told to stop while a request hangs', () => {
  let world: Simulation;
  let hangs: boolean;
  let stop: () => Promise<void>;

  beforeEach(async () => {
    world = new Simulation();
    world.startCluster();
    await world.installCrd();
    hangs = false;
    const client = new HttpClient({
      server: 'https://simulated',
      // It would wait for an answer for ever.
      requestTimeoutMs: 0,
      handler: async (request) => {
        if (!hangs || !isCreation(request)) return world.server.handler(request);
        await untilAborted(request.signal ?? AbortSignal.abort());
        throw request.signal?.reason;
      },
    });
    stop = world.startDaemon({ gracefulShutdownTimeoutMs: 20_000 }, client);
  });
  afterEach(() => world.end());

  const isCreation = ({ method, path }: HttpRequest) => method === 'POST' && /\/pods\?/.test(path);

  it('it tells the sync to hurry in time for the rest of the stop, and blames nobody', async () => {
    await world.applyCount();
    await world.untilReady(3);
    const events = await world.events();
    hangs = true;
    await world.patchCount({ count: 5 });
    await world.pass(500);
    const from = world.elapsedMs();
    await stop();
    assert.ok(world.elapsedMs() - from < 16_000, `${world.elapsedMs() - from} ms`);
    assert.deepEqual(world.errors(), ['Runs did not finish in time; telling them to stop: ']);
    assert.deepEqual(await world.events(), events);
  });
});
