import { Gauge } from 'prom-client';
import type { Registry } from './registry.ts';

/** What a manager tells of those that it runs. */
export interface ManagerMetrics {
  /** The controller runs, or no longer does. */
  running(controller: string, runs: boolean): void;
}

/** The name that component-base has for the programs of a control plane. */
const MANAGER = 'crd-controller';

/** Which controllers run in this process: on a standby none do. Call it once for a registry. */
export function managerMetrics(registry: Registry): ManagerMetrics {
  const running = new Gauge({
    name: 'running_managed_controllers',
    help: 'Whether a controller runs in this process: 1 does, 0 does not',
    labelNames: ['name', 'manager'],
    registers: [registry],
  });
  return {
    running: (name, runs) => running.set({ name, manager: MANAGER }, runs ? 1 : 0),
  };
}
