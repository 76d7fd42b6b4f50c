import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { request } from 'node:http';
import { url as inspectorUrl } from 'node:inspector';
import type { TestContext } from 'node:test';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { profilingDownloads } from '../../../../src/cli/serving/profiling.ts';
import type { ProfilingDeps } from '../../../../src/cli/serving/profiling.ts';
import { V8Profiler } from '../../../../src/cli/serving/v8-profiler.ts';
import { HttpServer } from '../../../../src/manager/http-server.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { runAll } from '../../../../src/util/run-all.ts';
import { recordingLogger } from '../../../support/recording-logger.ts';

const MIB = 1024 ** 2;

/** The profiler of this very process, behind a server of its own. */
class Profiled {
  readonly clock = new FakeClock();
  readonly recorded = recordingLogger();
  /** What comes in place of the heap snapshot, which takes long in a process of many tests. */
  readonly snapshots: Readable[] = [];
  /** How many CPU profiles are being taken. */
  taking = 0;
  #address = '';
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  async start(deps: Partial<ProfilingDeps> = {}): Promise<void> {
    const { log, lines } = this.recorded;
    const profiler = new V8Profiler({
      sleep: async (ms, signal) => {
        this.taking++;
        await this.clock.sleep(ms, signal);
        this.taking--;
      },
    });
    const downloads = profilingDownloads({
      profiler: {
        cpuProfile: (ms, signal) => profiler.cpuProfile(ms, signal),
        heapProfile: () => profiler.heapProfile(),
        heapSnapshot: () => {
          const endless = Readable.from(begunForEver());
          this.snapshots.push(endless);
          return endless;
        },
      },
      log,
      address: '127.0.0.1:6060',
      memory: () => ({ used: 100 * MIB, heap: 6 * MIB, limit: 200 * MIB }),
      ...deps,
    });
    const server = new HttpServer(
      { log },
      { name: 'profiles', bindAddress: '127.0.0.1:0', routes: { downloads } },
    );
    this.#running = runAll(
      [(signal) => server.run(signal), (signal) => profiler.run(signal)],
      this.#stop.signal,
    );
    await until(() => lines.some(({ message }) => message === 'Listening'));
    this.#address = String(lines.find(({ message }) => message === 'Listening')?.fields['address']);
  }

  ask(path: string, headers: Record<string, string> = {}, method = 'GET'): ClientRequest {
    const asked = request(`http://${this.#address}${path}`, { method, headers, agent: false });
    asked.on('error', () => undefined);
    return asked.end();
  }

  async get(path: string, headers: Record<string, string> = {}, method = 'GET') {
    const asked = this.ask(path, headers, method);
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
    const { statusCode: status, headers: answered } = response;
    return { status, headers: answered, text: Buffer.concat(chunks).toString() };
  }

  async refusal(path: string, headers: Record<string, string> = {}, method = 'GET') {
    const { status, text } = await this.get(path, headers, method);
    return [status, text.trimEnd()];
  }

  /** Resolves when everything has come to its end. */
  async end(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}

async function profiled(t: TestContext, deps?: Partial<ProfilingDeps>): Promise<Profiled> {
  const world = new Profiled();
  await world.start(deps);
  t.after(() => world.end());
  return world;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((next) => setImmediate(next));
}

function* begunForEver() {
  yield '{"snapshot":';
  for (;;) yield ' '.repeat(10_000);
}

/** Looked for in profiles. */
function burnForAWhile(ms: number): number {
  let sum = 0;
  for (const end = performance.now() + ms; performance.now() < end;) sum += Math.sqrt(sum + 1);
  return sum;
}

/** Looked for in heap profiles. */
function hoardForAWhile(): readonly unknown[] {
  return Array.from({ length: 8 }, () => Array<number>(MIB / 4).fill(1));
}

interface Node {
  readonly callFrame: { readonly functionName: string };
  readonly children?: readonly Node[];
}

function namesIn({ callFrame, children = [] }: Node): string[] {
  return [callFrame.functionName, ...children.flatMap(namesIn)];
}

describe('the CPU profile', () => {
  it('has what ran in the seconds that were asked for, for Chrome DevTools', async (t) => {
    const world = await profiled(t);
    const answer = world.get('/debug/pprof/profile?seconds=5');
    await until(() => world.taking === 1);
    burnForAWhile(60);
    await world.clock.advance(5000);
    const { status, headers, text } = await answer;
    assert.equal(status, 200);
    assert.equal(headers['content-type'], 'application/json');
    assert.match(String(headers['content-disposition']), /filename="crd-controller\.cpuprofile"/);
    const { nodes, samples, timeDeltas, startTime, endTime } = JSON.parse(text);
    assert.ok(nodes.some((node: Node) => node.callFrame.functionName === burnForAWhile.name));
    assert.ok(samples.length > 5 && samples.length === timeDeltas.length);
    assert.ok(endTime - startTime >= 60_000, 'in microseconds');
    assert.equal(inspectorUrl(), undefined, 'nobody can attach a debugger');
  });

  it('takes 30 s if nobody says otherwise, and nobody says nonsense', async (t) => {
    const world = await profiled(t);
    const answer = world.refusal('/debug/pprof/profile');
    await until(() => world.taking === 1);
    assert.equal(world.clock.untilNext, 30_000);
    await world.clock.advance(30_000);
    assert.equal((await answer)[0], 200);
    for (const seconds of ['0', '-1', '1.5', '301', '1e1', '', '9'.repeat(99), 'x']) {
      assert.deepEqual(await world.refusal(`/debug/pprof/profile?seconds=${seconds}`), [
        400,
        `seconds must be a whole number from 1 to 300: got "${seconds}"`,
      ]);
    }
    assert.equal((await world.refusal('/debug/pprof/profile', {}, 'HEAD'))[0], 405);
    assert.equal(world.taking, 0);
  });

  it('is one at a time, and over when its client goes', async (t) => {
    const world = await profiled(t);
    const first = world.ask('/debug/pprof/profile');
    await until(() => world.taking === 1);
    assert.deepEqual(await world.refusal('/debug/pprof/profile?seconds=1'), [
      409,
      'A CPU profile is being taken already',
    ]);
    first.destroy();
    await until(() => world.taking === 0);
    assert.equal(world.clock.pending, 0);
    const next = world.refusal('/debug/pprof/profile?seconds=1');
    await until(() => world.taking === 1);
    await world.clock.advance(1000);
    assert.equal((await next)[0], 200);
  });

  it('does not hold up a daemon that stops', async (t) => {
    const world = await profiled(t);
    world.ask('/debug/pprof/profile');
    await until(() => world.taking === 1);
    await world.end();
    assert.equal(world.taking, 0);
    assert.ok(!world.recorded.lines.some(({ level }) => level === 'error'));
  });
});

describe('the heap profile', () => {
  it('has what was allocated since the start and is still there', async (t) => {
    const world = await profiled(t);
    const hoard = hoardForAWhile();
    const { status, headers, text } = await world.get('/debug/pprof/heap');
    assert.equal(hoard.length, 8);
    assert.equal(status, 200);
    assert.match(String(headers['content-disposition']), /filename="crd-controller\.heapprofile"/);
    const { head, samples } = JSON.parse(text);
    assert.ok(namesIn(head).includes(hoardForAWhile.name));
    assert.ok(samples.length >= 1);
    const [refused] = await world.refusal('/debug/pprof/heap?seconds=5');
    assert.equal(refused, 400);
  });

  it('is not there before samples are taken, nor after', async () => {
    const profiler = new V8Profiler(new FakeClock());
    assert.equal(await profiler.heapProfile(), undefined);
    const stop = new AbortController();
    const running = profiler.run(stop.signal);
    await until(() => true);
    assert.ok(await profiler.heapProfile());
    stop.abort();
    await running;
    assert.equal(await profiler.heapProfile(), undefined);
  });
});

describe('the heap snapshot', () => {
  it('is refused where it would leave this machine', async (t) => {
    const why =
      'Secrets can be read in a heap snapshot: ask on the machine itself, at localhost or 127.0.0.1';
    const open = await profiled(t, { address: ':6060' });
    assert.deepEqual(await open.refusal('/debug/heapsnapshot'), [403, why]);
    const here = await profiled(t);
    for (const host of ['rebound.example:6060', '127.0.0.1.example', '10.0.0.1:6060']) {
      assert.deepEqual(await here.refusal('/debug/heapsnapshot', { host }), [403, why], host);
    }
  });

  it('is refused where it would take more memory than there is', async (t) => {
    for (const [used, heap, needed] of [
      [101, 6, 101],
      [100, 7, 112],
    ] as const) {
      const memory = () => ({ used: used * MIB, heap: heap * MIB, limit: 200 * MIB });
      const world = await profiled(t, { memory });
      assert.deepEqual(await world.refusal('/debug/heapsnapshot'), [
        503,
        `A heap snapshot may take ${needed}MiB of memory, and ${used}MiB of 200MiB are in use`,
      ]);
      assert.deepEqual(world.snapshots, []);
    }
  });

  it('is one at a time, and gone when its client goes', async (t) => {
    const world = await profiled(t);
    const asked = world.ask('/debug/heapsnapshot');
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    assert.equal(response.statusCode, 200);
    assert.match(
      String(response.headers['content-disposition']),
      /filename="crd-controller\.heapsnapshot"/,
    );
    assert.deepEqual(await world.refusal('/debug/heapsnapshot'), [
      409,
      'A heap snapshot is being taken already',
    ]);
    asked.destroy();
    await until(() => world.snapshots[0]?.closed === true);
    const next = world.ask('/debug/heapsnapshot');
    const [another] = (await once(next, 'response')) as [IncomingMessage];
    assert.equal(another.statusCode, 200);
    await world.end();
    assert.ok(world.snapshots[1]?.destroyed);
    assert.ok(!world.recorded.lines.some(({ level }) => level === 'error'));
  });

  it('is of every object there is', async () => {
    const { stdout } = new Worker(new URL('snapshot-worker.ts', import.meta.url), { stdout: true });
    const { nodes, ...has } = JSON.parse(await text(stdout));
    assert.ok(nodes > 10_000, String(nodes));
    assert.deepEqual(has, { hasClass: true, hasToken: true });
  });
});
