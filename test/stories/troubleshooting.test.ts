import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  DEPLOYMENTS,
  EVENTS,
  PODS,
  SERVICES,
} from '../../src/api/builtin.ts';
import type { Resource } from '../../src/api/resource.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import type { Listening } from '../../src/apiserver/api-server-options.ts';
import { ServerClock } from '../../src/cli/check/server-check.ts';
import { commandLine } from '../../src/cli/command-line.ts';
import { temporaryKubeconfig } from '../../src/cli/embedded/kubeconfig-file.ts';
import { clockSkewCheck } from '../../src/serving/health-checks.ts';
import { unsupportedNodeMessage } from '../../src/cli/common/node-version.ts';
import { credentialsOf } from '../../src/client/kube-config/credentials.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { Controller } from '../../src/manager/controller.ts';
import { FakeClock } from '../../src/util/fake-clock.ts';
import { createCertificateAuthority } from '../../src/util/x509.ts';
import { done } from '../../src/workqueue/outcome.ts';
import { page, tableRows } from '../support/docs.ts';
import { Access } from '../support/access.ts';
import { recordingLogger } from '../support/recording-logger.ts';
import type { LogLine } from '../support/recording-logger.ts';
import { Replicas } from '../support/replicas.ts';
import { Simulation } from '../support/simulation.ts';
import { crdOf, NAME } from '../support/test-cluster.ts';
import { PROGRAM } from '../support/own-program.ts';

const ROOT = join(import.meta.dirname, '../..');
const MINUTE_MS = 60_000;

/** Causes a failure and returns what the user sees. */
type ProvokedFailure = () => Promise<string>;

/** By the first text in backticks of the row. */
const PROVOKED_FAILURES: Readonly<Record<string, ProvokedFailure>> = {
  'The server does not have the resource; waiting for it to appear': () =>
    inSimulation(async (simulation) => {
      simulation.startDaemon();
      await simulation.pass(MINUTE_MS);
    }),

  'No cluster is configured': () => run([]),

  'Failed to list': () =>
    inSimulation(async (simulation) => {
      await simulation.installCrd();
      simulation.startDaemonBehind(
        new Access(({ verb }) => verb !== 'list' && verb !== 'watch').around,
      );
      await simulation.pass(MINUTE_MS);
    }),

  'A permission is missing': async () => {
    const { log, lines } = recordingLogger();
    const handler = new Access(() => false).around(() => Promise.reject(new Error('allowed')));
    const clock = new FakeClock();
    const client = new HttpClient({ server: 'https://test', handler, log, clock });
    for (let attempt = 0; attempt < 2; attempt++) {
      await assert.rejects(client.get(PODS, { namespace: 'default', name: 'web' }));
      await clock.advance(MINUTE_MS);
    }
    return textOf(lines);
  },

  'x509: certificate signed by unknown authority': async () => {
    const { certificatePem } = await createCertificateAuthority({ commonName: 'other' });
    return check({ cluster: { 'certificate-authority-data': base64(certificatePem) } });
  },

  'The credential plugin': () =>
    check({
      user: {
        exec: {
          apiVersion: 'client.authentication.k8s.io/v1',
          command: 'no-such-plugin',
          interactiveMode: 'Never',
        },
      },
    }),

  'Cannot reach the API server': () => check({ cluster: { 'proxy-url': 'http://127.0.0.1:1' } }),

  'Failed to read the token file, using the last good token': async () => {
    const clock = new FakeClock();
    const { log, lines } = recordingLogger();
    const files = ['token', ''];
    const credentials = credentialsOf(
      {
        source: 'test',
        server: 'https://test',
        insecureSkipTlsVerify: false,
        credentials: { kind: 'tokenFile', path: 'token' },
        namespace: 'default',
      },
      { clock, log, readFile: async () => files.shift() ?? '' },
    );
    await credentials.headers();
    await clock.advance(MINUTE_MS);
    await credentials.headers();
    return textOf(lines);
  },

  'New leader elected': () =>
    withReplicas(async (simulation) => {
      simulation.startReplica('first');
      await simulation.pass(1000);
      const second = simulation.startReplica('second');
      await simulation.pass(1000);
      return second.lines.join('\n');
    }),

  'leader election lost': () =>
    withReplicas(async (simulation) => {
      const replica = simulation.startReplica('only');
      await simulation.pass(1000);
      replica.network('without leases');
      await simulation.pass(MINUTE_MS);
      return String(replica.ending);
    }),

  '-v=1': () =>
    run(['-v=1', '--namespaces=elsewhere', '--controllers=foo', '--once', '--kubeconfig=/nowhere']),

  'address already in use': async () => {
    const { port } = taken.address() as AddressInfo;
    return check({}, ['run', `--health-probe-bind-address=127.0.0.1:${port}`]);
  },

  'JavaScript heap out of memory': async () => {
    const args = ['--max-old-space-size=8', join(ROOT, 'src/cli/main.ts'), 'version'];
    const { stderr, signal } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    // Shells add 128 to the number of the signal.
    assert.equal(signal, 'SIGABRT');
    return stderr;
  },

  check: async () => {
    const clock = new FakeClock();
    const serverClock = new ServerClock({ now: () => clock.now() + MINUTE_MS });
    const headers = { date: new Date(clock.now()).toUTCString() };
    const body = (async function* () {})();
    const ask = serverClock.around(async () => ({ status: 200, headers, body }));
    await ask({ method: 'GET', path: '/version', headers: {} });
    return JSON.stringify(serverClock.result());
  },

  'the wall clock has moved': async () => {
    const clock = new FakeClock();
    const { check: look } = clockSkewCheck(clock);
    clock.jump(10 * MINUTE_MS);
    return String(look());
  },

  'The server rejected the status': () =>
    inSimulation(async (simulation) => {
      await simulation.installCrd();
      simulation.startDaemon();
      await simulation.applyCount();
      await simulation.untilReady(3);
      const { spec } = structuredClone(crdOf(COUNTS));
      const [version] = spec?.versions ?? [];
      const { properties } = version?.schema?.openAPIV3Schema ?? {};
      const field = properties?.['status']?.properties?.['readyReplicas'];
      assert.ok(field);
      field.maximum = 1;
      const name = 'counts.demo.mark8s.io';
      const body = { spec: { versions: spec?.versions } };
      await simulation.client.patch(CUSTOM_RESOURCE_DEFINITIONS, { name }, { type: 'merge', body });
      await simulation.client.delete(PODS, simulation.podAt(0));
      await simulation.pass(MINUTE_MS);
    }),

  ErrResourceExists: () =>
    inSimulation(async (simulation) => {
      await simulation.installCrd();
      await simulation.client.create(PODS, unownedPod(`${NAME}-0`));
      simulation.startDaemon();
      await simulation.applyCount();
      await simulation.pass(MINUTE_MS);
      return (await simulation.events()).join('\n');
    }),

  HotLoop: () =>
    inSimulation(async (simulation) => {
      const { metadata } = await simulation.client.create(PODS, unownedPod('web'));
      simulation.startControllers((kit) => {
        const pods = kit.informers.for(PODS);
        let runs = 0;
        return [
          new Controller(kit, {
            name: 'restless',
            kind: 'Pod',
            sync: async (_key, { client }) => {
              const body = { metadata: { uid: metadata.uid, labels: { run: String(runs++) } } };
              const patch = { type: 'merge', body } as const;
              await client.patch(PODS, at('web'), patch, { fieldManager: 'test' });
              return done();
            },
          }).for(pods),
        ];
      });
      await simulation.pass(5 * MINUTE_MS);
      const { items } = await simulation.client.list(EVENTS, { namespace: 'default' });
      return items.map(({ type, reason, message }) => `${type} ${reason} ${message}`).join('\n');
    }),

  'crd-controller needs Node.js 22.19': async () =>
    String(unsupportedNodeMessage('20.11.0', 'node')),
};

let listening: Listening;
let server: ApiServer;
const taken = createServer();

describe('The table of the troubleshooting page', () => {
  before(async () => {
    server = new ApiServer();
    listening = await server.listen();
    taken.listen(0, '127.0.0.1');
    await once(taken, 'listening');
  });
  after(async () => {
    taken.close();
    await server.close();
  });

  const rows = tableRows(page('docs/troubleshooting.md'), '# Troubleshooting');

  for (const row of rows) {
    const texts = quoted(row);
    it(`quotes the actual output: ${texts.join(', ')}`, async () => {
      const provocation = PROVOKED_FAILURES[texts[0] ?? ''];
      assert.ok(provocation, `no provocation for the row: ${row}`);
      const seen = await provocation();
      const commands = new Set(['check', '-v=1']);
      for (const text of texts.filter((each) => !commands.has(each))) {
        assert.ok(seen.includes(text), `${text}\nis not in\n${seen}`);
      }
      const [promised] = /exit code \d+(?= +\|)/.exec(row) ?? [];
      const [came] = /exit code \d+/.exec(seen) ?? [];
      if (promised !== undefined && came !== undefined) assert.equal(came, promised);
    });
  }

  it('has a row for each failure that is caused here', () => {
    const quotedTexts = new Set(rows.map((row) => quoted(row)[0]));
    assert.deepEqual(
      Object.keys(PROVOKED_FAILURES).filter((text) => !quotedTexts.has(text)),
      [],
    );
  });
});

describe('Objects whose controller was uninstalled before them', () => {
  it('are removed, with owned objects, by the finalizer patches of the install page', async () => {
    const patches = [
      ...page('docs/install.md').matchAll(
        /kubectl patch (\w+) NAME(\S*) --type=merge -p '([^']+)'/g,
      ),
    ];
    const resources = new Map<string, Resource>([
      ['webapp', WEB_APPS],
      ['pod', PODS],
    ]);
    const simulation = new Simulation();
    const left = async () => {
      const kinds: readonly Resource[] = [WEB_APPS, ATS, PODS, DEPLOYMENTS, SERVICES];
      const lists = await Promise.all(kinds.map((resource) => simulation.client.list(resource)));
      return lists
        .flatMap(({ items }) => items.map(({ kind, metadata }) => `${kind} ${metadata.name}`))
        .filter((name) => name !== 'Service kubernetes');
    };
    simulation.startCluster();
    try {
      await simulation.installCrd(WEB_APPS, DEPLOYMENTS, SERVICES);
      await simulation.installCrd(ATS);
      const stop = simulation.startDaemon({ controllers: ['webapp', 'at'] });
      await simulation.client.create(WEB_APPS, {
        apiVersion: 'jiajunhuang.com/v1',
        kind: 'WebApp',
        metadata: at('x'),
        spec: { version: '1.27', replicas: 1 },
      });
      const schedule = new Date(simulation.now() + MINUTE_MS).toISOString();
      await simulation.client.create(ATS, {
        apiVersion: 'cnat.programming-kubernetes.info/v1alpha1',
        kind: 'At',
        metadata: at('x'),
        spec: { schedule: schedule.replace(/\.\d+/, ''), command: 'sleep 3600' },
      });
      await simulation.pass(MINUTE_MS / 2);
      // The daemon stops halfway: the Pod of the At exists and is not recorded in its status.
      const isRecord = { verb: 'patch', resource: 'ats' };
      simulation.server.faults.failNext(isRecord, 500, { times: Number.POSITIVE_INFINITY });
      await simulation.until(
        'a Pod of the At',
        async () => (await simulation.podNames()).includes('x-pod'),
        {
          stepMs: 1000,
        },
      );
      simulation.server.faults.clear();
      await stop();
      await simulation.client.delete(WEB_APPS, at('x'));
      await simulation.client.delete(ATS, at('x'));
      await simulation.pass(MINUTE_MS);
      const waiting = await left();
      assert.ok(waiting.includes('WebApp x') && waiting.includes('Pod x-pod'), waiting.join());
      for (const [, kind = '', suffix = '', body = ''] of patches) {
        const resource = resources.get(kind);
        assert.ok(resource, kind);
        const patch = { type: 'merge', body: JSON.parse(body) as object } as const;
        await simulation.client.patch(resource, at(`x${suffix}`), patch);
      }
      await simulation.until('all objects are gone', async () => (await left()).length === 0, {
        withinMs: 5 * MINUTE_MS,
        stepMs: 1000,
      });
    } finally {
      await simulation.end();
    }
  });
});

/** Returns the texts in backticks in the first column. */
function quoted(row: string): string[] {
  const [, seen = ''] = row.split(' | ')[0]?.split('| ') ?? [];
  return [...seen.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text);
}

async function inSimulation(
  story: (simulation: Simulation) => Promise<string | void>,
): Promise<string> {
  const simulation = new Simulation();
  try {
    simulation.startCluster();
    const seen = await story(simulation);
    return seen ?? textOf(simulation.lines);
  } finally {
    await simulation.end();
  }
}

async function withReplicas(story: (simulation: Replicas) => Promise<string>): Promise<string> {
  const simulation = new Replicas();
  try {
    await simulation.installCrd();
    return await story(simulation);
  } finally {
    await simulation.end();
  }
}

/** Returns the output at the default verbosity. */
function textOf(lines: readonly LogLine[]): string {
  return lines
    .filter(({ level }) => level === 'error' || level === 0)
    .map(({ message, error, fields }) => `${message} ${String(error)} ${JSON.stringify(fields)}`)
    .join('\n');
}

/** Returns the output of the command line. */
async function run(argv: readonly string[]): Promise<string> {
  let output = '';
  const print = (text: string) => (output += `${text}\n`);
  const terminal = { print, warn: print, colour: false };
  const code = await commandLine(
    PROGRAM,
    argv,
    { HOME: '/nonexistent' },
    { ...terminal, logging: { write: print, now: Date.now, pid: 1 } },
  );
  return `${output}exit code ${code}\n`;
}

interface Kubeconfig {
  readonly clusters: readonly { readonly cluster: object }[];
  readonly users: readonly { readonly user: object }[];
}

/** Returns the output of `check` for the listening server with a modified kubeconfig. */
async function check(
  { cluster, user }: { readonly cluster?: object; readonly user?: object },
  [command = 'check', ...flags]: readonly string[] = [],
): Promise<string> {
  const given = listening.kubeconfig() as Kubeconfig;
  const [first] = given.clusters;
  const [who] = given.users;
  const file = await temporaryKubeconfig({
    ...given,
    clusters: [{ ...first, cluster: { ...first?.cluster, ...cluster } }],
    users: [{ ...who, user: user ?? who?.user }],
  });
  try {
    return await run([command, `--kubeconfig=${file.path}`, ...flags]);
  } finally {
    await file.remove();
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function at(name: string) {
  return { namespace: 'default', name };
}

function unownedPod(name: string) {
  const spec = { containers: [{ name: 'app', image: 'nginx' }] };
  return { apiVersion: 'v1', kind: 'Pod', metadata: at(name), spec };
}
