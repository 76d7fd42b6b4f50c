import { CACHE } from './cache.ts';
import { LEADERELECTION } from './leaderelection.ts';
import type { Mutant } from './mutant.ts';
import { RECORD } from './record.ts';
import { WORKQUEUE } from './workqueue.ts';

/** The faults to plant, by the folder of `src/` whose tests have to notice them. */
export const MUTANTS: Readonly<Record<string, readonly Mutant[]>> = {
  cache: CACHE,
  workqueue: WORKQUEUE,
  record: RECORD,
  leaderelection: LEADERELECTION,
};
