import { didYouMean } from '../../util/did-you-mean.ts';
import { UsageError } from '../exit-codes.ts';
import { goQuote } from '../../util/go-quote.ts';
import type { Scene } from './scene.ts';
import { atScene } from './scenes/at.ts';
import { countScene } from './scenes/count.ts';
import { fooScene } from './scenes/foo.ts';
import { podCountScene } from './scenes/pod-count.ts';
import { webAppScene } from './scenes/webapp.ts';

/** One for each controller, in the order in which they are played. */
export const SCENES: readonly Scene[] = [countScene, webAppScene, atScene, fooScene, podCountScene];

/**
 * The scenes of the controllers in `only`, in their order; all, if it is empty.
 *
 * @throws {UsageError} on a name that is no controller's
 */
export function selectScenes(only: readonly string[]): readonly Scene[] {
  const names = SCENES.map(({ name }) => name);
  const unknown = only.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new UsageError(
      `unknown controller ${goQuote(unknown)} in --only: must be one of ${names.join(', ')}${didYouMean(unknown, names)}`,
    );
  }
  return only.length === 0 ? SCENES : SCENES.filter(({ name }) => only.includes(name));
}
