import type { InformerSet } from '../cache/informer-set.ts';
import type { ControllerDeps } from '../manager/controller.ts';

/** What the controllers of a cluster are built from. */
export interface ClusterDeps extends ControllerDeps {
  readonly informers: InformerSet;
}
