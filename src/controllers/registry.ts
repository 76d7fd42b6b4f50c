import { NODES } from '../api/builtin.ts';
import { ATS } from '../api/generated/at.ts';
import { COUNTS } from '../api/generated/count.ts';
import { FOOS } from '../api/generated/foo.ts';
import { WEB_APPS } from '../api/generated/web-app.ts';
import type { Resource } from '../api/resource.ts';
import type { Controller } from '../manager/controller.ts';
import type { ControllerKit } from '../manager/run-controllers.ts';
import { atController } from './at/controller.ts';
import { countController } from './count/controller.ts';
import { fooController } from './foo/controller.ts';
import type { NamespacedControllerOptions } from './options.ts';
import { podCountController } from './pod-count/controller.ts';
import { webAppController } from './webapp/controller.ts';

/** The configuration of the daemon, as far as controllers use it. */
export interface DaemonControllerConfig extends NamespacedControllerOptions {
  readonly podCountEvents: boolean;
}

export interface RegisteredController {
  readonly build: (kit: ControllerKit, config: DaemonControllerConfig) => Controller;
  /** The reconciled kind. */
  readonly resource: Resource;
  /** Whether `*` includes it. A controller that writes to cluster-scoped objects is not included. */
  readonly isOnByDefault: boolean;
  /** Whether it needs the whole cluster. Then it does not run if namespaces are given. */
  readonly isClusterScoped: boolean;
}

/** The controllers by their names in `--controllers`. */
export const CONTROLLERS: ReadonlyMap<string, RegisteredController> = new Map([
  ['count', namespaced(COUNTS, countController)],
  ['webapp', namespaced(WEB_APPS, webAppController)],
  ['at', namespaced(ATS, atController)],
  ['foo', namespaced(FOOS, fooController)],
  [
    'pod-count',
    {
      build: (kit, { concurrency, podCountEvents }) =>
        podCountController(kit, { concurrency, podEvents: podCountEvents }),
      resource: NODES,
      isOnByDefault: false,
      isClusterScoped: true,
    },
  ],
]);

/** The names that `*` includes. */
export const DEFAULT_CONTROLLERS: readonly string[] = [...CONTROLLERS]
  .filter(([, { isOnByDefault }]) => isOnByDefault)
  .map(([name]) => name);

function namespaced(
  resource: Resource,
  build: (kit: ControllerKit, options: NamespacedControllerOptions) => Controller,
): RegisteredController {
  return {
    build: (kit, { namespaces, concurrency }) => build(kit, { namespaces, concurrency }),
    resource,
    isOnByDefault: true,
    isClusterScoped: false,
  };
}
