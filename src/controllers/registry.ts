import type { ControllerFactory } from './controller-factory.ts';
import { countController } from './count/controller.ts';
import { fooController } from './foo/controller.ts';
import { webAppController } from './webapp/controller.ts';

/** The controllers by the names that `--controllers` knows. */
export const CONTROLLERS: ReadonlyMap<string, ControllerFactory> = new Map([
  ['count', countController],
  ['foo', fooController],
  ['webapp', webAppController],
]);
