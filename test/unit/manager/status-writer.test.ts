import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isApiError } from '../../../src/api/api-error.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { StatusWriter } from '../../../src/manager/status-writer.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { Simulation } from '../../support/simulation.ts';

const context = (world: Simulation) => ({
  client: world.client,
  signal: new AbortController().signal,
  log: silentLogger,
});

test('the status of an object that is gone by now is a conflict, no failure', async () => {
  const world = new Simulation();
  await world.installCrd();
  await world.applyCount();
  const seen = await world.count();
  await world.client.delete(COUNTS, seen.metadata);
  const writer = new StatusWriter(COUNTS, 'test');
  const writes = () => writer.write(context(world), seen, { replicas: 1 });
  await assert.rejects(writes(), (error) => isApiError(error, 'conflict'));
  assert.equal(writer.hasSubresource, true);
  await world.applyCount();
  await assert.rejects(writes(), (error) => isApiError(error, 'conflict'));
  assert.equal((await world.count()).status, undefined);
  await world.end();
});
