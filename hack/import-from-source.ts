/**
 * Lets the examples import 'crd-controller' as a user's program does, and resolves it to src/: no build is needed,
 * and none can be stale. For `node --import`, and for tests that import an example.
 */
import { registerHooks } from 'node:module';

const SOURCE = new URL('../src/', import.meta.url);

registerHooks({
  resolve: (specifier, context, next) => {
    const match = /^crd-controller(?:\/([a-z]+))?$/.exec(specifier);
    const url = match && new URL(`${match[1] ?? 'index'}.ts`, SOURCE).href;
    return next(url ?? specifier, context);
  },
});
