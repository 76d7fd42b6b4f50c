/**
 * Writes the code caches of a bundle, with the functions that a run of the daemon and a start of the API server
 * compile:
 *
 *     node hack/image/code-cache.ts FOLDER
 *
 * Runs the daemon until it is ready, against the embedded API server of the bundle in another process. The caches are
 * valid for this version of V8 only, and are not reproducible.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../src/cli/common/free-port.ts';
import { CODE_CACHE_FILE, SERVE_CACHE_FILE, loadProgram } from './program.ts';

const READY_TIMEOUT_MS = 60_000;
/** Time after readiness for the syncs of the sample objects. */
const SETTLE_MS = 2000;

const folder = resolve(process.argv[2] ?? 'dist/image');
const [, , , servedKubeconfig] = process.argv;
if (servedKubeconfig === undefined) await writeBoth();
else await serveAndWrite(servedKubeconfig);

async function writeBoth(): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'code-cache-'));
  const kubeconfig = join(scratch, 'kubeconfig');
  const server = spawn(process.execPath, [import.meta.filename, folder, kubeconfig], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(server, 'close');
  try {
    await once(server.stdout, 'data');
    const samples = ['crds', 'examples/01-count'].flatMap((path) => ['-f', join(folder, path)]);
    const main = join(folder, 'crd-controller.mjs');
    execFileSync(process.execPath, [main, 'apply', `--kubeconfig=${kubeconfig}`, ...samples]);
    write(CODE_CACHE_FILE, await cacheOfRun(kubeconfig, await freePort('127.0.0.1')));
  } finally {
    server.kill('SIGTERM');
    const [code] = (await closed) as [number | null];
    rmSync(scratch, { recursive: true, force: true });
    if (code !== 0) process.exitCode = 1;
  }
}

/** Serves until the process is stopped. The cache has the functions of the start, not of requests. */
async function serveAndWrite(kubeconfig: string): Promise<void> {
  process.argv.splice(2, Infinity, 'serve', `--write-kubeconfig=${kubeconfig}`);
  const { script, runCrdController } = loadProgram(folder);
  const ended = runCrdController();
  while (!existsSync(kubeconfig)) await sleep(10);
  const cache = script.createCachedData();
  await ended;
  write(SERVE_CACHE_FILE, cache);
}

function write(file: string, cache: Buffer): void {
  writeFileSync(join(folder, file), cache);
  if (loadProgram(folder).script.cachedDataRejected !== false) {
    throw new Error('V8 does not accept the code cache that it wrote');
  }
  console.error(`${file}: ${(cache.length / 1024).toFixed(0)} KiB`);
}

async function cacheOfRun(kubeconfig: string, port: number): Promise<Buffer> {
  const address = `127.0.0.1:${port}`;
  process.argv.splice(2, Infinity, `--kubeconfig=${kubeconfig}`, '--leader-elect', '-v=0');
  process.argv.push('--leader-elect-resource-namespace=default');
  process.argv.push(`--health-probe-bind-address=${address}`);
  const { script, runCrdController } = loadProgram(folder);
  const ended = runCrdController();
  await ready(`http://${address}/readyz`);
  await sleep(SETTLE_MS);
  const cache = script.createCachedData();
  process.kill(process.pid, 'SIGTERM');
  await ended;
  return cache;
}

async function ready(url: string): Promise<void> {
  const deadlineMs = performance.now() + READY_TIMEOUT_MS;
  for (;;) {
    const isReady = await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isReady) return;
    if (performance.now() > deadlineMs) throw new Error(`Not ready: ${url}`);
    await sleep(50);
  }
}
