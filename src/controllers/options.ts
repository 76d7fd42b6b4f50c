import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

/** Options of a controller of a namespaced kind. */
export interface NamespacedControllerOptions {
  /**
   * Namespaces whose objects are reconciled.
   * @default all
   */
  readonly namespaces?: readonly string[] | undefined;
  /**
   * Number of keys that are synced at the same time.
   * @default 10
   */
  readonly concurrency?: number | undefined;
}

const OPTIONS: OptionNames<NamespacedControllerOptions> = { namespaces: true, concurrency: true };

/** @throws {TypeError} if there is an option that does not exist */
export function checkNamespacedOptions(options: NamespacedControllerOptions, where: string): void {
  checkOptions(options, OPTIONS, where);
}
