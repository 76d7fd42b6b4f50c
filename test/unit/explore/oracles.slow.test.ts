import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { explore, ViolationError } from '../../../src/explore/explore.ts';
import { NAIVE_CONTROLLERS, naiveOptions } from '../../support/naive-controllers.ts';
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
