import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { explore, ViolationError } from '../../../src/explore/explore.ts';
import type { ExploreOptions } from '../../../src/explore/explore.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import type { Client } from '../../../src/client/client.ts';
import { WriteFence } from '../../../src/client/write-fence.ts';
import { countController } from '../../../src/controllers/count/controller.ts';
import { PendingWrites } from '../../../src/manager/read-your-writes.ts';
import {
  COUNT_AT,
  COUNT_SCENARIO,
  CREATES_FROM_CACHE,
  NAIVE_CONTROLLERS,
  naiveOptions,
} from '../../support/naive-controllers.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { MISTAKES } from '../../support/naive-mistakes.ts';

describe('explore finds a controller that', () => {
  for (const controller of [...NAIVE_CONTROLLERS, ...MISTAKES]) {
    it(controller.mistake, async (test) => {
      const options = { ...naiveOptions(controller), budget: { schedules: 500 } };
      const error: unknown = await explore(options).catch((thrown: unknown) => thrown);
      assert.ok(error instanceof ViolationError, 'nothing was found in 500 schedules');
      test.diagnostic(`${error.schedules} schedules: ${error.replay.join('; ')}`);
      assert.equal(error.rule, controller.rule, error.message);
    });
  }
});

describe('explore finds, although a user deletes the Count at the end, a controller that', () => {
  const hidden = [...NAIVE_CONTROLLERS, ...MISTAKES].filter(
    ({ rule }) => rule !== 'syncs succeed in steady state',
  );
  for (const controller of hidden) {
    it(controller.mistake, async (test) => {
      const { scenario, ...options } = naiveOptions(controller);
      const deleted = {
        'the user deletes it': (client: Client) => client.delete(COUNTS, COUNT_AT),
      };
      const whole = { ...options, scenario: { ...scenario, ...deleted } };
      const error: unknown = await explore({ ...whole, budget: { schedules: 100 } }).catch(
        (thrown: unknown) => thrown,
      );
      assert.ok(error instanceof ViolationError, 'nothing was found in 100 schedules');
      test.diagnostic(`${error.schedules} schedules: ${error.replay.join('; ')}`);
      await assert.rejects(explore({ ...whole, replay: error.replay }), { rule: error.rule });
    });
  }
});

describe('explore and leader election', () => {
  const options: ExploreOptions = {
    ...COUNT_SCENARIO,
    controllers: [countController],
    replicas: 2,
    faults: ['freeze'],
    budget: { schedules: 20 },
  };

  it('finds nothing when a leader is frozen in the middle of a sync', async () => {
    assert.equal((await explore(options)).schedules, 20);
  });

  it('finds writes of a former leader without a fence', async (test) => {
    test.mock.method(WriteFence.prototype, 'wrap', (handler: HttpHandler) => handler);
    await assert.rejects(explore(options), { rule: 'only the leader writes' });
  });
});

describe('explore and read-your-writes', () => {
  const options: ExploreOptions = {
    ...naiveOptions(CREATES_FROM_CACHE),
    faults: ['delay'],
    budget: { schedules: 100 },
  };

  it('finds nothing when a watch is behind the writes of a process', async () => {
    assert.equal((await explore(options)).schedules, 100);
  });

  it('finds objects that are created twice without it', async (test) => {
    test.mock.method(PendingWrites.prototype, 'check', () => undefined);
    await assert.rejects(explore(options), { rule: 'nothing is created twice' });
  });
});
