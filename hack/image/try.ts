/**
 * Runs an image under the restricted Pod Security level against the embedded API server, and reports its size,
 * start-up time and content:
 *
 *     node hack/image/try.ts [IMAGE [RUNS]]
 *
 * Requires buildah, runc and root. hack/image/build.sh builds the image.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Container } from './container.ts';
import { Image } from './container.ts';

/** As in hack/deploy/manager. */
const MEMORY_LIMIT_BYTES = 384 * 2 ** 20;
const SETTLE_MS = 3000;

const [name = 'localhost/crd-controller:0.1.0', runs = '5'] = process.argv.slice(2);
const root = join(import.meta.dirname, '../..');

const missing = ['buildah', 'runc'].filter((tool) => !isThere(tool));
if (missing.length > 0 || process.getuid?.() !== 0) {
  const why = missing.length > 0 ? `missing: ${missing.join(', ')}` : 'requires root';
  console.log(`image: SKIPPED: ${why}`);
} else {
  const folder = mkdtempSync(join(tmpdir(), 'crd-controller-image-'));
  const kubeconfig = join(folder, 'kubeconfig');
  const server = spawn(
    process.execPath,
    [join(root, 'src/cli/main.ts'), 'serve', `--write-kubeconfig=${kubeconfig}`],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const image = new Image(name);
  try {
    await once(server.stdout, 'data');
    chownSync(kubeconfig, 65532, 65532);
    await tryImage(image, kubeconfig, Number(runs));
  } finally {
    server.kill('SIGTERM');
    await once(server, 'close');
    image.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function tryImage(image: Image, kubeconfig: string, times: number): Promise<void> {
  report('image', `${mib(image.bytes)} MiB on disk, ${mib(sizeOf(image, '/app'))} of it /app`);
  checkContents(image);

  const files = { '/kube/config': kubeconfig };
  const access = '--kubeconfig=/kube/config';
  const memoryBytes = MEMORY_LIMIT_BYTES;
  const applied = await image.run({
    args: ['apply', access, '-f', '/app/crds', '-f', '/app/examples/01-count'],
    files,
    memoryBytes,
  });
  assert.equal(applied.code, 0, applied.stderr);

  const args = [access, '-v=2', '--health-probe-bind-address=127.0.0.1:0'];
  const startUps: number[] = [];
  const stops: number[] = [];
  for (let run = 0; run < times; run++) {
    const container = image.start({ args, files, memoryBytes });
    startUps.push(await container.logged(/"Starting workers"/));
    if (run === 0) await inspect(container);
    stops.push(await stopped(container));
  }
  report('start-up', `${spread(startUps)} ms from the runtime's start to the start of the workers`);
  report('SIGTERM', `${spread(stops)} ms to exit code 0, as process 1`);

  const version: number[] = [];
  const bare: number[] = [];
  for (let run = 0; run < times; run++) {
    version.push(await timed(() => image.run({ args: ['version'], memoryBytes })));
    bare.push(
      await timed(() => image.run({ entrypoint: ['node'], args: ['-e', '0'], memoryBytes })),
    );
  }
  report('processes', `version ${spread(version)} ms, node alone ${spread(bare)} ms`);
  await outOfMemory(image);
}

function checkContents(image: Image): void {
  const { Labels } = image.config;
  for (const label of ['version', 'revision', 'created', 'licenses', 'title', 'description']) {
    assert.ok(Labels[`org.opencontainers.image.${label}`], `missing label ${label}`);
  }
  const sbom: { components: { name: string; version: string }[] } = JSON.parse(
    image.read('/app/sbom.cdx.json'),
  );
  const licences = image.read('/app/THIRD-PARTY-LICENSES');
  for (const { name: part, version } of sbom.components) {
    assert.ok(licences.includes(`${part} ${version} (`), `missing licence of ${part} ${version}`);
  }
  report('contents', `${sbom.components.length} packages in the SBOM, each with its licence`);
}

/** Checks the process attributes in the kernel and the readiness endpoint. */
async function inspect(container: Container): Promise<void> {
  await container.logged(/"Count is healthy" .*ready=3 desired=3/);
  await sleep(SETTLE_MS);
  const status = await container.status();
  assert.equal(status.get('Uid'), '65532 65532 65532 65532');
  assert.equal(status.get('NSpid')?.split(' ').at(-1), '1');
  assert.equal(status.get('NoNewPrivs'), '1');
  for (const set of ['CapPrm', 'CapEff', 'CapBnd']) assert.match(status.get(set) ?? '', /^0+$/);
  const [resident, own] = ['VmRSS', 'RssAnon'].map((field) => status.get(field) ?? '');
  report('memory', `${resident} resident when idle, ${own} of it its own`);
  const [, address] = /"Listening".*address="?(127\.0\.0\.1:\d+)/.exec(container.stderr) ?? [];
  const ready = await fetch(`http://${address}/readyz`);
  assert.equal(ready.status, 200, await ready.text());
  // Without --disable-sigusr1 this opens a debugger.
  await container.kill('USR1');
  await sleep(200);
  assert.doesNotMatch(container.stderr, /Debugger|^E\d{4}/m);
}

async function stopped(container: Container): Promise<number> {
  // Log output of the start takes some time.
  await sleep(SETTLE_MS);
  const fromMs = performance.now();
  await container.kill('TERM');
  const { code, stderr } = await container.ended;
  assert.equal(code, 0, stderr);
  return performance.now() - fromMs;
}

/**
 * Checks that the heap limit is reached before the container's memory limit: with a message and a report, not
 * by a kill.
 */
async function outOfMemory(image: Image): Promise<void> {
  const flags = image.config.Entrypoint.slice(0, -1);
  const hoard =
    'const all = []; setInterval(() => { for (let i = 0; i < 5000; i++) all.push({ i }); }, 0)';
  const { code, stderr } = await image.run({
    entrypoint: flags,
    args: ['-e', hoard],
    memoryBytes: MEMORY_LIMIT_BYTES,
  });
  assert.notEqual(code, 137, 'the kernel killed it');
  assert.match(stderr, /JavaScript heap out of memory/);
  assert.match(stderr, /Node\.js report completed/);
  report('out of memory', `ends with ${code} and a report`);
}

function sizeOf(image: Image, path: string): number {
  return Number(execFileSync('du', ['-sb', image.path(path)], { encoding: 'utf8' }).split('\t')[0]);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const fromMs = performance.now();
  await work();
  return performance.now() - fromMs;
}

/** Formats the minimum, median and maximum. */
function spread(numbers: readonly number[]): string {
  const sorted = numbers.toSorted((left, right) => left - right).map(Math.round);
  return `${sorted[0]} / ${sorted[Math.floor(sorted.length / 2)]} / ${sorted.at(-1)}`;
}

function mib(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}

function report(what: string, text: string): void {
  console.log(`image: ${what}: ${text}`);
}

function isThere(tool: string): boolean {
  try {
    execFileSync(tool, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
