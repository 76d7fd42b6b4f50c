/**
 * Preloaded into every test file by `npm test`, for speed and to limit time and memory.
 *
 * Each file is a process that loads most of the source, so the V8 compile cache is kept between files and
 * runs.
 *
 * node:test tracks each promise and other resource with an async hook, to assign uncaught errors to tests. This takes
 * a third of the CPU time in a simulation of two thousand objects, and more with Node.js 22. So its hook is called
 * for the resources of tests only, which it needs to find the parent of a test. An uncaught error still fails the
 * file and is printed, but without the name of the test.
 */
import { createRequire, enableCompileCache, registerHooks } from 'node:module';
import { isMainThread } from 'node:worker_threads';
import { limitAbortListeners } from './abort-listeners.ts';
import { boundThisProcess } from './bounds.ts';
import { COMPILE_CACHE } from './compile-cache.ts';
import type * as AsyncHooks from 'node:async_hooks';

enableCompileCache(COMPILE_CACHE);

// A relative import of our source needs no search for the file, its links and the type of its package. The search takes
// a third of the time to load the source.
registerHooks({
  resolve: (specifier, context, next) => {
    const { parentURL, conditions } = context;
    const isSource = /^\.\.?\/.*\.ts$/.test(specifier) && conditions.includes('import');
    if (!isSource || parentURL === undefined) return next(specifier, context);
    const { href } = new URL(specifier, parentURL);
    return { url: href, format: 'module-typescript', shortCircuit: true };
  },
});

// Patches the module before node:test imports it.
const asyncHooks = createRequire(import.meta.url)('node:async_hooks') as {
  AsyncResource: typeof AsyncHooks.AsyncResource;
  createHook: typeof AsyncHooks.createHook;
};
const { AsyncResource, createHook } = asyncHooks;
const inits: NonNullable<AsyncHooks.HookCallbacks['init']>[] = [];
asyncHooks.AsyncResource = class extends AsyncResource {
  constructor(type: string, options?: number | AsyncHooks.AsyncResourceOptions) {
    super(type, options);
    if (type !== 'Test') return;
    for (const init of inits) init(this.asyncId(), type, this.triggerAsyncId(), this);
  }
};
asyncHooks.createHook = (callbacks) => {
  // AsyncLocalStorage of Node.js 22 has a hook without `destroy`.
  if (!('destroy' in callbacks)) return createHook(callbacks);
  inits.push((...resource) => callbacks.init?.(...resource));
  return createHook({});
};

const isTestFile = process.env['NODE_TEST_CONTEXT'] !== undefined;
const runsAllFiles = process.execArgv.includes('--test-isolation=none');
if (isMainThread && (isTestFile || runsAllFiles)) {
  boundThisProcess();
  limitAbortListeners();
}

if (isTestFile) {
  const fail = () => {
    process.exitCode = 1;
  };
  process.on('unhandledRejection', fail);
  process.on('uncaughtException', fail);
}
