/**
 * Resolves 'crd-controller' in the examples to src/, so that they run without a build. For `node --import`, and
 * for tests that import an example.
 */
import { registerHooks } from 'node:module';

const SOURCES: ReadonlyMap<string, string> = new Map([
  ['crd-controller', new URL('../src/index.ts', import.meta.url).href],
  ['crd-controller/controllers', new URL('../src/controllers.ts', import.meta.url).href],
  ['crd-controller/testing', new URL('../src/testing.ts', import.meta.url).href],
]);

registerHooks({
  resolve: (specifier, context, next) => next(SOURCES.get(specifier) ?? specifier, context),
});
