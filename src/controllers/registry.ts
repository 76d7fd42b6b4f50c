import { atController } from './at/controller.ts';
import type { ControllerFactory } from './controller-factory.ts';
import { countController } from './count/controller.ts';
import { fooController } from './foo/controller.ts';
import { podCountController } from './pod-count/controller.ts';
import { webAppController } from './webapp/controller.ts';

export interface RegisteredController {
  readonly build: ControllerFactory;
  /** Part of `*`. What writes to objects of the whole cluster is not. */
  readonly isOnByDefault: boolean;
  /** It has no meaning within namespaces, and does not run when they are given. */
  readonly isClusterScoped: boolean;
}

/** The controllers by the names that `--controllers` knows. */
export const CONTROLLERS: ReadonlyMap<string, RegisteredController> = new Map([
  ['count', namespaced(countController)],
  ['webapp', namespaced(webAppController)],
  ['at', namespaced(atController)],
  ['foo', namespaced(fooController)],
  ['pod-count', { build: podCountController, isOnByDefault: false, isClusterScoped: true }],
]);

/** The names that `*` stands for. */
export const DEFAULT_CONTROLLERS: readonly string[] = [...CONTROLLERS]
  .filter(([, { isOnByDefault }]) => isOnByDefault)
  .map(([name]) => name);

function namespaced(build: ControllerFactory): RegisteredController {
  return { build, isOnByDefault: true, isClusterScoped: false };
}
