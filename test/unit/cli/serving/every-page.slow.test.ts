import assert from 'node:assert/strict';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { ChangeableLogLevel } from '../../../../src/cli/logs/log-level.ts';
import { metricsOf } from '../../../../src/metrics/metrics.ts';
import { createRegistry, expose } from '../../../../src/metrics/registry.ts';
import { selfSignedCertificate } from '../../../../src/serving/serving-certificate.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { recordingLogger } from '../../../support/recording-logger.ts';
import { Simulation } from '../../../support/simulation.ts';
import { newDaemon } from '../../../support/test-cluster.ts';

const SRC = join(import.meta.dirname, '../../../../src');

/** Returns the paths of all pages, settings and downloads in the source. */
function servedPaths(): string[] {
  const files = globSync('{serving,cli}/**/*.ts', { cwd: SRC });
  const paths = files.flatMap((file) =>
    [...readFileSync(join(SRC, file), 'utf8').matchAll(/\[\s*'(\/[\w/-]*)',/g)].map(
      ([, path = '']) => path,
    ),
  );
  return [...new Set([...paths, '/metrics'])].toSorted();
}

/** Paths about the embedded cluster, which the daemon does not serve. */
const CLUSTER = /^\/debug\/(?:cluster|faults\/)/;

/** Paths that need the profiler, which slows down its process. */
const PROFILES = ['/debug/heapsnapshot', '/debug/pprof/heap', '/debug/pprof/profile'];

describe('every page of a daemon', () => {
  let simulation: Simulation;
  let address: string;
  let stop: AbortController;
  let running: Promise<void>;

  beforeEach(() => {
    simulation = new Simulation();
  });

  async function start(debugBindAddress: string): Promise<void> {
    const { log, lines } = recordingLogger();
    const registry = createRegistry();
    const clock = new FakeClock();
    const reviewer = { raw: () => Promise.reject(new Error('a request without a token')) };
    const certificate = selfSignedCertificate({ clock, dnsNames: ['test'] });
    const whole = newDaemon(
      {
        client: simulation.client,
        clock,
        log,
        random: Math.random,
        host: 'test',
        metrics: metricsOf(registry),
        expose: () => expose(registry),
        logLevel: new ChangeableLogLevel(2, () => log),
        secure: { reviewer, certificate },
      },
      { healthProbeBindAddress: debugBindAddress, debugBindAddress },
    );
    stop = new AbortController();
    running = whole.run(stop.signal);
    const listening = () => lines.find(({ message }) => message === 'Listening');
    while (!listening()) await new Promise((next) => setImmediate(next));
    address = String(listening()?.fields['address']);
  }

  afterEach(async () => {
    stop.abort();
    await running;
    await simulation.end();
  });

  async function statusOf(
    path: string,
    headers: Record<string, string>,
    method = 'HEAD',
    isSecure = false,
  ): Promise<number> {
    const options = { method, headers, agent: false, rejectUnauthorized: false };
    const asked = isSecure
      ? secureRequest(`https://127.0.0.1:${address.split(':').at(-1)}${path}`, options)
      : request(`http://${address}${path}`, options);
    asked.end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.resume();
    return response.statusCode ?? 0;
  }

  it('responds to local clients on a loopback address', async () => {
    await start('127.0.0.1:0');
    const paths = servedPaths();
    for (const path of paths.filter((path) => !PROFILES.includes(path) && !CLUSTER.test(path))) {
      const status = await statusOf(path, {});
      // A page with a required parameter responds with 400, and two addresses lead to /debug/.
      assert.ok([200, 308, 400].includes(status), `${path}: ${status}`);
    }
    assert.deepEqual(
      paths.filter((path) => PROFILES.includes(path)),
      PROFILES,
    );
  });

  it('rejects web pages, also those whose host name resolves to this machine', async () => {
    await start('127.0.0.1:0');
    for (const path of servedPaths()) {
      for (const headers of [
        { host: 'rebound.example:6060' },
        { origin: 'http://page.example' },
        { 'sec-fetch-site': 'cross-site' },
      ] as readonly Record<string, string>[]) {
        // Metrics are also for a proxy in the same Pod, which passes other hosts on.
        const expected = path === '/metrics' && 'host' in headers ? 200 : 403;
        assert.equal(await statusOf(path, headers), expected, JSON.stringify([path, headers]));
      }
    }
  });

  it('rejects requests without a token on other addresses', async () => {
    await start('0.0.0.0:0');
    const paths = servedPaths();
    assert.ok(
      ['/', '/debug/', '/debug/flags/v', '/debug/faults/cut-watches'].every((path) =>
        paths.includes(path),
      ),
    );
    for (const path of paths) {
      for (const method of ['GET', 'HEAD', 'PUT', 'POST']) {
        assert.equal(await statusOf(path, {}, method, true), 401, `${method} ${path}`);
      }
    }
  });
});
