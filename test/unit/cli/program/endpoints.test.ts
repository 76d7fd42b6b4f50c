import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import {
  debugFlags,
  endpoints,
  servingCertificate,
} from '../../../../src/cli/program/endpoints.ts';
import type { EndpointsConfig, EndpointsDeps } from '../../../../src/cli/program/endpoints.ts';
import { ChangeableLogLevel } from '../../../../src/cli/logs/log-level.ts';
import type { ServingConfig } from '../../../../src/cli/program/run-config.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../../src/util/logger.ts';
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

/** Runs the endpoints of `config`, and requests `/livez` and `/metrics` without TLS at the first address. */
async function asked(config: Partial<EndpointsConfig>) {
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const certificate = await servingCertificate(SERVING, { clock, log, host: 'pod-a' });
  const reviewer = { raw: () => Promise.reject(new Error('unexpected review')) };
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

describe('the endpoints of the daemon', () => {
  it('are not served without an address', async () => {
    assert.deepEqual(await asked({}), { servers: 0, statuses: [], warnings: [] });
  });

  it('serve probes without TLS, and reject requests for metrics without TLS', async () => {
    assert.deepEqual(await asked({ healthProbeBindAddress: HERE, serving: SERVING }), {
      servers: 1,
      statuses: [200, 404],
      warnings: [],
    });
    const secure = { servers: 1, statuses: Array(2).fill('no plain HTTP'), warnings: [] };
    assert.deepEqual(await asked({ metricsBindAddress: HERE, serving: SERVING }), secure);
    assert.deepEqual(await asked({ metricsBindAddress: HERE }), secure, 'by default');
  });

  it('serve metrics without authorization if configured, and warn if other machines can reach them', async () => {
    const here = await asked({ metricsBindAddress: HERE, serving: INSECURE });
    assert.deepEqual(here, { servers: 1, statuses: [404, 200], warnings: [] });
    const everywhere = await asked({ metricsBindAddress: '0.0.0.0:0', serving: INSECURE });
    assert.deepEqual(everywhere, {
      servers: 1,
      statuses: [404, 200],
      warnings: ['Serving metrics without TLS and authentication (--metrics-secure=false)'],
    });
  });

  it('require authorization for debug pages on addresses that other machines can reach', async () => {
    const here = await asked({ debugBindAddress: HERE, serving: SERVING });
    assert.deepEqual(here.statuses, [404, 404]);
    assert.deepEqual((await asked({ profilerAddress: HERE })).statuses, [404, 404]);
    for (const flag of ['debugBindAddress', 'profilerAddress']) {
      const everywhere = await asked({ [flag]: '0.0.0.0:0', serving: INSECURE });
      assert.deepEqual(everywhere.statuses, ['no plain HTTP', 'no plain HTTP'], flag);
    }
  });

  it('require authorization for all routes of an address if one route needs it', async () => {
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

  it('report that the port is in use or the certificate is missing, and what to do', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    const { log } = recordingLogger();
    const deps = { clock: new FakeClock(), log, routes: ROUTES };
    const taken = { ...NOWHERE, healthProbeBindAddress: `127.0.0.1:${port}` };
    const [server] = endpoints(deps, taken);
    assert.ok(server);
    await assert.rejects(server.run(new AbortController().signal), {
      name: 'AddressError',
      message: new RegExp(
        `^Unable to listen on 127.0.0.1:${port} for endpoints: .*EADDRINUSE.*; stop the process`,
      ),
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

  it('have a certificate for the host of the program by default', async () => {
    const deps = { clock: new FakeClock(), log: silentLogger, host: 'pod-a' };
    const { certificatePem } = await (await servingCertificate(SERVING, deps)).load();
    const { subjectAltName = '' } = new X509Certificate(certificatePem);
    assert.deepEqual(subjectAltName.split(', ').slice(0, 2), ['DNS:pod-a', 'DNS:localhost']);
  });

  it('need the dependencies for authorization', () => {
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

  it("is the log verbosity in klog's format", () => {
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

  it('keeps the value if the new value is invalid', () => {
    for (const text of ['', 'high', '4.5', '0x4', '1e1', '-1', '2147483648', '9'.repeat(19)]) {
      assert.throws(() => setting?.set(text), RangeError, text);
    }
    assert.equal(level.verbosity, 0);
  });
});
