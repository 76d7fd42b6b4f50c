#!/usr/bin/env node
/**
 * Runs a program of the folder that `envtest-assets` writes: `main.js etcd …` or `main.js kube-apiserver …`. It stops
 * on SIGTERM and SIGINT, and when the process that started it has ended.
 */
import { hasErrorCode } from '../../util/values.ts';
import type { EnvtestProgram } from './program.ts';

const PROGRAMS: Readonly<Record<string, () => Promise<EnvtestProgram>>> = {
  etcd: async () => (await import('./etcd.ts')).etcd,
  'kube-apiserver': async () => (await import('./kube-apiserver.ts')).kubeApiserver,
};

/** How often the parent process is looked for, in milliseconds. */
const PARENT_CHECK_MS = 1000;

const [name = '', ...args] = process.argv.slice(2);
const load = PROGRAMS[name];
if (load) {
  const program = await load();
  process.exitCode = await program(args, {
    signal: stopSignal(),
    print: (line) => void process.stdout.write(`${line}\n`),
    warn: (line) => void process.stderr.write(`${line}\n`),
  });
} else {
  process.stderr.write(`usage: main.js ${Object.keys(PROGRAMS).join('|')} [flags]\n`);
  process.exitCode = 2;
}

/** Whether a process exists. On Windows, a process keeps the identifier of a parent that has ended. */
function exists(id: number): boolean {
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    return !hasErrorCode(error, 'ESRCH');
  }
}

function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => stop.abort(new Error(signal)));
  }
  const parent = process.ppid;
  const check = setInterval(() => {
    if (process.ppid !== parent || !exists(parent))
      stop.abort(new Error('the parent process has ended'));
  }, PARENT_CHECK_MS);
  check.unref();
  return stop.signal;
}
