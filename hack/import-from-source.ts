/**
 * Resolves 'crd-controller' and its entry points in the examples to src/, so that they run without a build. For
 * `node --import`, and for tests that import an example.
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
