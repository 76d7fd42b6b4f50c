import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { explore, ViolationError } from '../../../src/explore/explore.ts';
import type { ExploreOptions } from '../../../src/explore/explore.ts';
import { PendingWrites } from '../../../src/manager/read-your-writes.ts';
import {
  CREATES_FROM_CACHE,
  NAIVE_CONTROLLERS,
  naiveOptions,
} from '../../support/naive-controllers.ts';
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
