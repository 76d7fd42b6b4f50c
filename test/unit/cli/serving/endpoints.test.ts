import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import {
  debugFlags,
  endpoints,
  servingCertificate,
} from '../../../../src/cli/serving/endpoints.ts';
import type { EndpointsConfig, EndpointsDeps } from '../../../../src/cli/serving/endpoints.ts';
import { ChangeableLogLevel } from '../../../../src/cli/logs/log-level.ts';
import type { ServingConfig } from '../../../../src/cli/serving/serving-config.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { runAll } from '../../../../src/util/runnable.ts';
import { recordingLogger } from '../../../support/recording-logger.ts';

const SERVING: ServingConfig = {
  isMetricsSecure: true,
  certificate: undefined,
  minVersion: 'TLSv1.2',
  ciphers: undefined,
  http2: false,
};
const NOWHERE: EndpointsConfig = {
  healthProbeBindAddress: undefined,
  metricsBindAddress: undefined,
  debugBindAddress: undefined,
};
const ROUTES: EndpointsDeps['routes'] = {
  health: { livez: [], readyz: [] },
  metrics: { metrics: () => Promise.resolve({ contentType: 'text/plain', text: 'up 1\n' }) },
  debug: { pages: new Map() },
  profiling: { downloads: new Map() },
};

/** Runs what `config` asks for, and asks for `/livez` and `/metrics` in the clear at the first address. */
async function asked(config: Partial<EndpointsConfig>) {
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const certificate = await servingCertificate(SERVING, { clock, log, host: 'pod-a' });
  const reviewer = { raw: () => Promise.reject(new Error('nobody is asked')) };
  const secure = { reviewer, certificate };
  const servers = endpoints({ clock, log, routes: ROUTES, secure }, { ...NOWHERE, ...config });
  const stop = new AbortController();
  const running = runAll(
    servers.map((server) => (signal) => server.run(signal)),
    stop.signal,
  );
  const addresses = () => lines.filter(({ message }) => message === 'Listening');
  while (addresses().length < servers.length) await new Promise((next) => setImmediate(next));
  const address = String(addresses()[0]?.fields['address']);
  const statusOf = async (path: string) => {
    try {
      return (await fetch(`http://${address}${path}`)).status;
    } catch {
      return 'no plain HTTP';
    }
  };
  const statuses = servers.length > 0 ? [await statusOf('/livez'), await statusOf('/metrics')] : [];
  stop.abort();
  await running;
  const warnings = lines.filter(({ level }) => level === 0).map(({ message }) => message);
  return { servers: servers.length, statuses, warnings };
}

const HERE = '127.0.0.1:0';
const INSECURE = { ...SERVING, isMetricsSecure: false };

describe('the endpoints of a daemon', () => {
  it('are none, unless flags say where', async () => {
    assert.deepEqual(await asked({}), { servers: 0, statuses: [], warnings: [] });
  });

  it('show probes to everybody in the clear, and metrics to nobody', async () => {
    assert.deepEqual(await asked({ healthProbeBindAddress: HERE, serving: SERVING }), {
      servers: 1,
      statuses: [200, 404],
      warnings: [],
    });
    const secure = { servers: 1, statuses: Array(2).fill('no plain HTTP'), warnings: [] };
    assert.deepEqual(await asked({ metricsBindAddress: HERE, serving: SERVING }), secure);
    assert.deepEqual(await asked({ metricsBindAddress: HERE }), secure, 'by default');
  });

  it('show metrics to everybody if they are told to, and say so where others can reach them', async () => {
    const here = await asked({ metricsBindAddress: HERE, serving: INSECURE });
    assert.deepEqual(here, { servers: 1, statuses: [404, 200], warnings: [] });
    const everywhere = await asked({ metricsBindAddress: '0.0.0.0:0', serving: INSECURE });
    assert.deepEqual(everywhere, {
      servers: 1,
      statuses: [404, 200],
      warnings: ['Serving metrics without TLS and authentication (--metrics-secure=false)'],
    });
  });

  it('protect what is for debugging where more than this machine can reach it', async () => {
    const here = await asked({ debugBindAddress: HERE, serving: SERVING });
    assert.deepEqual(here.statuses, [404, 404]);
    assert.deepEqual((await asked({ profilerAddress: HERE })).statuses, [404, 404]);
    for (const flag of ['debugBindAddress', 'profilerAddress']) {
      const everywhere = await asked({ [flag]: '0.0.0.0:0', serving: INSECURE });
      assert.deepEqual(everywhere.statuses, ['no plain HTTP', 'no plain HTTP'], flag);
    }
  });

  it('that share an address are as secure as the most secure of them', async () => {
    const shared = {
      healthProbeBindAddress: HERE,
      metricsBindAddress: HERE,
      debugBindAddress: HERE,
    };
    assert.deepEqual(await asked({ ...shared, serving: SERVING }), {
      servers: 1,
      statuses: ['no plain HTTP', 'no plain HTTP'],
      warnings: [],
    });
    assert.deepEqual((await asked({ ...shared, serving: INSECURE })).statuses, [200, 200]);
  });

  it('are a matter of usage where the port is taken or the certificate is not there', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    const { log } = recordingLogger();
    const deps = { clock: new FakeClock(), log, routes: ROUTES };
    const taken = { ...NOWHERE, healthProbeBindAddress: `127.0.0.1:${port}` };
    const [server] = endpoints(deps, taken);
    assert.ok(server);
    await assert.rejects(server.run(new AbortController().signal), {
      name: 'UsageError',
      message: new RegExp(`^Unable to listen on 127.0.0.1:${port} for endpoints: .*EADDRINUSE`),
    });
    other.close();
    const paths = {
      certificatePath: '/nonexistent/tls.crt',
      privateKeyPath: '/nonexistent/tls.key',
    };
    await assert.rejects(servingCertificate({ certificate: paths }, { ...deps, host: 'pod-a' }), {
      name: 'UsageError',
      message: /^--metrics-cert-path: unable to load the certificate: ENOENT.*tls\.crt/,
    });
  });

  it('that are not for everybody take what protects them', () => {
    const { log } = recordingLogger();
    const deps = { clock: new FakeClock(), log, routes: ROUTES };
    assert.throws(
      () => endpoints(deps, { ...NOWHERE, metricsBindAddress: ':8443' }),
      /Option secure is required: :8443 needs TLS and authorization/,
    );
  });
});

describe('/debug/flags/v', () => {
  const { log } = recordingLogger();
  const level = new ChangeableLogLevel(2, () => log);
  const setting = debugFlags(level).get('/debug/flags/v');

  it('is the verbosity, as klog reads it', () => {
    assert.equal(setting?.get(), '2');
    for (const [text, verbosity] of [
      ['4', 4],
      ['+6\n', 6],
      ['0', 0],
    ] as const) {
      setting?.set(text);
      assert.equal(level.verbosity, verbosity);
      assert.equal(setting?.get(), String(verbosity));
    }
  });

  it('stays as it is when it is told nonsense', () => {
    for (const text of ['', 'high', '4.5', '0x4', '1e1', '-1', '2147483648', '9'.repeat(19)]) {
      assert.throws(() => setting?.set(text), RangeError, text);
    }
    assert.equal(level.verbosity, 0);
  });
});
