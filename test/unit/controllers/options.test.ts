import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atController } from '../../../src/controllers/at/controller.ts';
import { countController } from '../../../src/controllers/count/controller.ts';
import { fooController } from '../../../src/controllers/foo/controller.ts';
import { podCountController } from '../../../src/controllers/pod-count/controller.ts';
import { webAppController } from '../../../src/controllers/webapp/controller.ts';
import type { ControllerKit } from '../../../src/manager/run-controllers.ts';

for (const [name, build] of Object.entries({
  atController,
  countController,
  fooController,
  podCountController,
  webAppController,
})) {
  test(`${name} rejects unknown options`, () => {
    // Options are checked before the kit is used.
    const kit = {} as ControllerKit;
    const misspelt = { concurency: 3 } as object;
    assert.throws(() => build(kit, misspelt), {
      name: 'TypeError',
      message: new RegExp(`^${name}: unknown option concurency.*concurrency`),
    });
  });
}
