/**
 * Preloaded into every test file by `npm test`, for speed and to limit time and memory.
 *
 * Each file is a process that loads most of the source, so the V8 compile cache is kept between files and
 * runs.
 *
 * node:test tracks each promise with an async hook, to assign uncaught errors to tests. This takes a third of
 * the CPU time in a simulation of two thousand objects, so its hooks skip promises here. An uncaught error
 * still fails the file and is printed, but without the name of the test.
 */
import { createRequire, enableCompileCache } from 'node:module';
import { isMainThread } from 'node:worker_threads';
import { boundThisProcess } from './bounds.ts';
import { COMPILE_CACHE } from './compile-cache.ts';
import type * as AsyncHooks from 'node:async_hooks';

enableCompileCache(COMPILE_CACHE);

// Patches the module before node:test imports it.
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
