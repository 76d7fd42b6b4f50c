import { NODES } from '../api/builtin.ts';
import { ATS } from '../api/generated/at.ts';
import { COUNTS } from '../api/generated/count.ts';
import { FOOS } from '../api/generated/foo.ts';
import { WEB_APPS } from '../api/generated/web-app.ts';
import type { Resource } from '../api/resource.ts';
import { atController } from './at/controller.ts';
import type { ControllerFactory } from './controller-factory.ts';
import { countController } from './count/controller.ts';
import { fooController } from './foo/controller.ts';
import { podCountController } from './pod-count/controller.ts';
import { webAppController } from './webapp/controller.ts';

export interface RegisteredController {
  readonly build: ControllerFactory;
  /** What its keys name. */
  readonly resource: Resource;
  /** Part of `*`. What writes to objects of the whole cluster is not. */
  readonly isOnByDefault: boolean;
  /** It has no meaning within namespaces, and does not run when they are given. */
  readonly isClusterScoped: boolean;
}

/** The controllers by the names that `--controllers` knows. */
export const CONTROLLERS: ReadonlyMap<string, RegisteredController> = new Map([
  ['count', namespaced(COUNTS, countController)],
  ['webapp', namespaced(WEB_APPS, webAppController)],
  ['at', namespaced(ATS, atController)],
  ['foo', namespaced(FOOS, fooController)],
  [
    'pod-count',
    { build: podCountController, resource: NODES, isOnByDefault: false, isClusterScoped: true },
  ],
]);

/** The names that `*` stands for. */
export const DEFAULT_CONTROLLERS: readonly string[] = [...CONTROLLERS]
  .filter(([, { isOnByDefault }]) => isOnByDefault)
  .map(([name]) => name);

function namespaced(resource: Resource, build: ControllerFactory): RegisteredController {
  return { build, resource, isOnByDefault: true, isClusterScoped: false };
}
