/**
 * Preloaded into every test file by `npm test`, for speed and to bound its time and memory.
 *
 * Each file is a process that loads most of the source: what V8 made of it is kept from one to the
 * next, and from run to run.
 *
 * node:test follows each promise with an async hook, to
 * know in which test an error nobody caught was made; in a simulation of two thousand objects that is
 * a third of the CPU time. Here its hooks follow all but promises.
 *
 * What that costs is the name of the test. An error that nobody caught still fails the file, by its
 * exit code, and node:test prints it; without the preload it says which test made it.
 */
import { createRequire, enableCompileCache } from 'node:module';
import { isMainThread } from 'node:worker_threads';
import { boundThisProcess } from './bounds.ts';
import { COMPILE_CACHE } from './compile-cache.ts';
import type * as AsyncHooks from 'node:async_hooks';

enableCompileCache(COMPILE_CACHE);

// The module as node:test sees it, before node:test has looked.
const hooks = createRequire(import.meta.url)('node:async_hooks') as {
  createHook: typeof AsyncHooks.createHook;
};
const { createHook } = hooks;
hooks.createHook = (options) => createHook({ ...options, trackPromises: false });

const isTestFile = process.env['NODE_TEST_CONTEXT'] !== undefined;
const runsAllFiles = process.execArgv.includes('--test-isolation=none');
if (isMainThread && (isTestFile || runsAllFiles)) boundThisProcess();

if (isTestFile) {
  const fail = () => {
    process.exitCode = 1;
  };
  process.on('unhandledRejection', fail);
  process.on('uncaughtException', fail);
}
