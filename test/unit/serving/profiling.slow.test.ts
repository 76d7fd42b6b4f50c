import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { request } from 'node:http';
import type { HeapProfiler } from 'node:inspector';
import type { TestContext } from 'node:test';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { before, describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { profilingDownloads } from '../../../src/serving/profiling.ts';
import type { ProfilingDeps } from '../../../src/serving/profiling.ts';
import { HttpServer } from '../../../src/serving/http-server.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import type { Found } from './profiled-process.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

const MIB = 1024 ** 2;

/**
 * Server with fake profiles, because real ones take long in the process of the tests. See
 * profiled-process.ts for real ones.
 */
class Profiled {
  readonly clock = new FakeClock();
  readonly recorded = recordingLogger();
  heap: HeapProfiler.SamplingHeapProfile | undefined;
  readonly snapshots: Readable[] = [];
  /** Number of CPU profiles in progress. */
  taking = 0;
  #address = '';
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  async start(deps: Partial<ProfilingDeps> = {}): Promise<void> {
    const { log, lines } = this.recorded;
    const downloads = profilingDownloads({
      profiler: {
        cpuProfile: async (ms, signal) => {
          this.taking++;
          await this.clock.sleep(ms, signal);
          this.taking--;
          return signal.aborted ? undefined : { nodes: [], startTime: 0, endTime: 1000 * ms };
        },
        heapProfile: () => Promise.resolve(this.heap),
        heapSnapshot: () => {
          const endless = Readable.from(endlessBody());
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
    this.#running = server.run(this.#stop.signal);
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

  /** Stops the server and waits for its end. */
  async end(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}

async function profiled(t: TestContext, deps?: Partial<ProfilingDeps>): Promise<Profiled> {
  const fixture = new Profiled();
  await fixture.start(deps);
  t.after(() => fixture.end());
  return fixture;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((next) => setImmediate(next));
}

function* endlessBody() {
  yield '{"snapshot":';
  for (;;) yield ' '.repeat(10_000);
}

describe('the CPU profile', () => {
  it('covers the requested number of seconds, and is an attachment', async (t) => {
    const fixture = await profiled(t);
    const answer = fixture.get('/debug/pprof/profile?seconds=5');
    await until(() => fixture.taking === 1);
    await fixture.clock.advance(5000);
    const { status, headers, text } = await answer;
    assert.equal(status, 200);
    assert.equal(headers['content-type'], 'application/json');
    assert.equal(
      headers['content-disposition'],
      'attachment; filename="crd-controller.cpuprofile"',
    );
    assert.deepEqual(JSON.parse(text), { nodes: [], startTime: 0, endTime: 5_000_000 });
  });

  it('takes 30 s by default, and rejects invalid durations', async (t) => {
    const fixture = await profiled(t);
    const answer = fixture.refusal('/debug/pprof/profile');
    await until(() => fixture.taking === 1);
    assert.equal(fixture.clock.untilNext, 30_000);
    await fixture.clock.advance(30_000);
    assert.equal((await answer)[0], 200);
    for (const seconds of ['0', '-1', '1.5', '301', '1e1', '', '9'.repeat(99), 'x']) {
      assert.deepEqual(await fixture.refusal(`/debug/pprof/profile?seconds=${seconds}`), [
        400,
        `seconds must be a whole number from 1 to 300: got "${seconds}"`,
      ]);
    }
    assert.equal((await fixture.refusal('/debug/pprof/profile', {}, 'HEAD'))[0], 405);
    assert.equal(fixture.taking, 0);
  });

  it('allows one request at a time, and ends when the client disconnects', async (t) => {
    const fixture = await profiled(t);
    const first = fixture.ask('/debug/pprof/profile');
    await until(() => fixture.taking === 1);
    assert.deepEqual(await fixture.refusal('/debug/pprof/profile?seconds=1'), [
      409,
      'A CPU profile is already being taken; try again later',
    ]);
    first.destroy();
    await until(() => fixture.taking === 0);
    assert.equal(fixture.clock.pending, 0);
    const next = fixture.refusal('/debug/pprof/profile?seconds=1');
    await until(() => fixture.taking === 1);
    await fixture.clock.advance(1000);
    assert.equal((await next)[0], 200);
  });

  it('does not delay the shutdown', async (t) => {
    const fixture = await profiled(t);
    fixture.ask('/debug/pprof/profile');
    await until(() => fixture.taking === 1);
    await fixture.end();
    assert.equal(fixture.taking, 0);
    assert.ok(!fixture.recorded.lines.some(({ level }) => level === 'error'));
  });
});

describe('the heap profile', () => {
  it('covers the time since the profiler was started', async (t) => {
    const fixture = await profiled(t);
    assert.equal((await fixture.refusal('/debug/pprof/heap'))[0], 503);
    const callFrame = {
      functionName: '(root)',
      scriptId: '0',
      url: '',
      lineNumber: 0,
      columnNumber: 0,
    };
    fixture.heap = { head: { callFrame, selfSize: 0, children: [] } };
    const { status, headers, text } = await fixture.get('/debug/pprof/heap');
    assert.equal(status, 200);
    assert.equal(
      headers['content-disposition'],
      'attachment; filename="crd-controller.heapprofile"',
    );
    assert.deepEqual(JSON.parse(text), fixture.heap);
    assert.equal((await fixture.refusal('/debug/pprof/heap?seconds=5'))[0], 400);
  });
});

describe('the heap snapshot', () => {
  it('is rejected on addresses that other machines can reach', async (t) => {
    const open = await profiled(t, { address: ':6060' });
    const [status, why] = await open.refusal('/debug/heapsnapshot');
    assert.equal(status, 403);
    assert.match(String(why), /secrets/);
    assert.deepEqual(open.snapshots, []);
  });

  it('is rejected if the memory is not sufficient', async (t) => {
    for (const [used, heap, needed] of [
      [101, 6, 101],
      [100, 7, 112],
    ] as const) {
      const memory = () => ({ used: used * MIB, heap: heap * MIB, limit: 200 * MIB });
      const fixture = await profiled(t, { memory });
      assert.deepEqual(await fixture.refusal('/debug/heapsnapshot'), [
        503,
        `A heap snapshot needs up to ${needed}MiB of memory, and ${used}MiB of 200MiB are in use`,
      ]);
      assert.deepEqual(fixture.snapshots, []);
    }
  });

  it('allows one request at a time, and is discarded when the client disconnects', async (t) => {
    const fixture = await profiled(t);
    const asked = fixture.ask('/debug/heapsnapshot');
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    assert.equal(response.statusCode, 200);
    assert.match(
      String(response.headers['content-disposition']),
      /filename="crd-controller\.heapsnapshot"/,
    );
    assert.deepEqual(await fixture.refusal('/debug/heapsnapshot'), [
      409,
      'A heap snapshot is already being taken; try again later',
    ]);
    asked.destroy();
    await until(() => fixture.snapshots[0]?.closed === true);
    const next = fixture.ask('/debug/heapsnapshot');
    const [another] = (await once(next, 'response')) as [IncomingMessage];
    assert.equal(another.statusCode, 200);
    await fixture.end();
    assert.ok(fixture.snapshots[1]?.destroyed);
    assert.ok(!fixture.recorded.lines.some(({ level }) => level === 'error'));
  });
});

describe('a process that requests its own profiles', () => {
  let found: Found;
  before(async () => {
    const entry = new URL('profiled-process.ts', import.meta.url);
    const worker = new Worker(entry, { stdout: true });
    const [written] = await Promise.all([text(worker.stdout), once(worker, 'exit')]);
    found = JSON.parse(written);
  });

  it('finds the running functions with their durations in the CPU profile', () => {
    const { hasFunction, samples, ms } = found.cpu;
    assert.ok(hasFunction);
    assert.ok(samples > 5, `${samples} samples`);
    assert.ok(ms >= 60, `${ms} ms`);
  });

  it('finds the allocation sites of live memory in the heap profile', () => {
    assert.deepEqual(found.heap, { hasFunction: true, retainedArrays: 8 });
    assert.equal(found.outside, 0, 'before samples are taken, and after');
  });

  it('finds every object in the heap snapshot, including secrets', () => {
    const { nodes, ...has } = found.snapshot;
    assert.ok(nodes > 10_000, String(nodes));
    assert.deepEqual(has, { hasClass: true, hasToken: true });
  });

  it('can cancel a profile, and opens no debugger port', () => {
    assert.deepEqual([found.isCancelledEmpty, found.pending], [true, 0]);
    assert.equal(found.inspectorUrl, 'none');
  });
});
