import type { ControllerFactory } from './controller-factory.ts';
import { atController } from './at/controller.ts';
import { countController } from './count/controller.ts';
import { fooController } from './foo/controller.ts';
import { webAppController } from './webapp/controller.ts';

/** The controllers by the names that `--controllers` knows. */
export const CONTROLLERS: ReadonlyMap<string, ControllerFactory> = new Map([
  ['count', countController],
  ['at', atController],
  ['foo', fooController],
  ['webapp', webAppController],
]);
