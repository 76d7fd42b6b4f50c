/**
 * Preloaded into every test file by `npm test`. node:test follows each promise with an async hook, to
 * know in which test an error nobody caught was made; in a simulation of two thousand objects that is
 * a third of the CPU time. Here its hooks follow all but promises.
 *
 * What that costs is the name of the test. An error that nobody caught still fails the file, by its
 * exit code, and node:test prints it; without the preload it says which test made it.
 */
import { createRequire } from 'node:module';
import type * as AsyncHooks from 'node:async_hooks';

// The module as node:test sees it, before node:test has looked.
const hooks = createRequire(import.meta.url)('node:async_hooks') as {
  createHook: typeof AsyncHooks.createHook;
};
const { createHook } = hooks;
hooks.createHook = (options) => createHook({ ...options, trackPromises: false });

if (process.env['NODE_TEST_CONTEXT'] !== undefined) {
  const fail = () => {
    process.exitCode = 1;
  };
  process.on('unhandledRejection', fail);
  process.on('uncaughtException', fail);
}
