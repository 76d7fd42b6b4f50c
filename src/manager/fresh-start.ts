import { catchUp } from '../cache/reflector/catch-up.ts';
import type { CatchUpDeps } from '../cache/reflector/catch-up.ts';
import type { Runnable } from '../util/runnable.ts';
import type { Controller } from './controller.ts';

/**
 * Runs `controller` once its informers show at least what the server had when it was to start: to be
 * put in the place of a controller that starts when its process becomes the leader. The leader before
 * may have written until a moment ago, and caches that were kept warm may lag behind what it wrote.
 *
 * Each controller waits for its own informers: one that cannot be served holds up no other.
 */
export function freshStart(
  controller: Pick<Controller, 'name' | 'informers' | 'run'>,
  deps: CatchUpDeps,
): Runnable {
  return {
    name: controller.name,
    run: async (signal) => {
      const { clock, log } = deps;
      const sinceMs = clock.monotonic();
      const caches = controller.informers.flatMap(({ parts }) => parts);
      const arrived = await Promise.all(caches.map((cache) => catchUp(cache, deps, signal)));
      if (arrived.includes(false)) return;
      log.v(2).info('Caches have caught up with the server', {
        controller: controller.name,
        tookMs: Math.round(clock.monotonic() - sinceMs),
      });
      await controller.run(signal);
    },
  };
}
