import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import '../../hack/import-from-source.ts';
import { isApiError } from '../../src/api/api-error.ts';
import { JOBS, PODS } from '../../src/api/builtin.ts';
import type { Resource } from '../../src/api/resource.ts';
import { RestMapper } from '../../src/client/rest-mapper.ts';
import { commandLine } from '../../src/cli/command-line.ts';
import { generate } from '../../src/cli/commands/generate.ts';
import { parseFlags } from '../../src/cli/flags/flag-parser.ts';
import { GENERATE_OPTIONS } from '../../src/cli/flags/options.ts';
import { OBSERVED_ROLES } from '../../src/codegen/tested-role.ts';
import { runControllers } from '../../src/manager/run-controllers.ts';
import type { ControllerKit } from '../../src/manager/run-controllers.ts';
import { silentLogger } from '../../src/util/logger.ts';
import type { Logger } from '../../src/util/logger.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { environmentOf } from '../support/own-program.ts';
import { Program } from '../support/program.ts';
import { ServedWebhooks } from '../support/served-webhooks.ts';
import { applyObjects, serviceAccountToken } from '../support/roles.ts';
import type { Manifest } from '../support/roles.ts';
import type { CronJob } from '../../examples/06-library/cronjob/kinds.ts';
import { recordingLogger } from '../support/recording-logger.ts';
import { TlsCluster } from '../support/tls-cluster.ts';

type ClusterModule = typeof import('../../examples/06-library/static-site/test/cluster.ts');

// Imported after the package name was mapped to the source.
const { podController } = await import('../../examples/06-library/pod-controller.ts');
const { STATIC_SITES } =
  await import('../../examples/06-library/static-site/src/generated/static-site.ts');
const { program } = await import('../../examples/06-library/static-site/src/program.ts');
const { cronJobController } =
  await import('../../examples/06-library/cronjob/cron-job-controller.ts');
const { CRON_JOBS, CRON_JOBS_V2 } = await import('../../examples/06-library/cronjob/kinds.ts');
const { webhooks: cronJobWebhooks } = await import('../../examples/06-library/cronjob/webhooks.ts');
const CLUSTER = '../../examples/06-library/static-site/test/cluster.ts';
// Another instance than that of the tests below, with roles of its own.
const { load, roleOf, startCluster } = (await import(`${CLUSTER}?own`)) as ClusterModule;
// Also runs the tests of the examples. Those of static-site are part of every project that `init` creates.
if (process.env['CONTROL_PLANE'] === undefined) {
  await import('../../examples/06-library/static-site/test/static-site.test.ts');
  await import('../../examples/06-library/static-site-webhooks/test/webhooks.test.ts');
  await import('../../examples/06-library/dns-records/test/dns-record.test.ts');
  await import('../../examples/06-library/backups/test/backups.test.ts');
  await import('../../examples/06-library/count-v2/test/count-v2.test.ts');
  await import('../../examples/06-library/cronjob/test/cronjob.test.ts');
  await import('../../examples/06-library/secret-copies/test/secret-copier.test.ts');
}

const EXAMPLES = join(import.meta.dirname, '../../examples/06-library');
const HOOK = join(import.meta.dirname, '../../hack/import-from-source.ts');

/** Runs an example like a user of a checkout. */
function example(file: string, args: readonly string[]): Program {
  const cache = getCompileCacheDir();
  return new Program(process.execPath, ['--import', HOOK, join(EXAMPLES, file), ...args], {
    PATH: process.env['PATH'] ?? '',
    HOME: '/nonexistent',
    ...(cache && { NODE_COMPILE_CACHE: cache }),
  });
}

it('the tests of a new project find the permissions that only a restart needs', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'observed-roles-'));
  context.after(() => rmSync(folder, { recursive: true }));
  process.env[OBSERVED_ROLES] = folder;
  const role = roleOf('static-site');
  delete process.env[OBSERVED_ROLES];
  await context.test('a test that only creates an object', async (inner) => {
    const { client, clock } = await startCluster(inner, 'static-site');
    await client.create(STATIC_SITES, load('samples/static-site.yaml'));
    await clock.advance(10_000);
  });
  await role.verify();
  const [file = ''] = readdirSync(folder);
  const { permissions } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  // Owned objects are applied once by each new leader.
  const needed = ['create', 'get', 'patch'].map((verb) => `${verb} deployments.apps`);
  assert.deepEqual(new Set(needed).difference(new Set(permissions)), new Set());
});

for (const module of ['dns-records/dns-record.ts', 'backups/kinds.ts', 'cronjob/kinds.ts']) {
  it(`the CRDs of ${module} are generated from it`, async () => {
    const file = join(EXAMPLES, module);
    const args = ['--check', `--out=${join(dirname(file), 'crds')}`];
    const { values } = parseFlags(GENERATE_OPTIONS, args, environmentOf());
    const printed: string[] = [];
    const print = (line: string) => printed.push(line);
    assert.equal(await generate([file], values, { print }), 0, printed.join());
  });
}

describe('The library examples on a control plane', () => {
  let plane: ControlPlane;
  let cluster: TlsCluster;
  let folder: string;

  before(async () => {
    plane = await startControlPlane({ cluster: { kubelet: { terminationMs: 100 } } });
  });
  after(() => plane.close());
  beforeEach(async () => {
    cluster = await TlsCluster.create(plane);
    folder = mkdtempSync(join(tmpdir(), 'library-'));
  });
  afterEach(async () => {
    await cluster.end();
    rmSync(folder, { recursive: true, force: true });
  });

  const createPod = (name: string) =>
    cluster.client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: cluster.namespace },
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    });

  /** Runs the controller of pods.ts in this process. */
  const runPodController = (
    stateFile: string,
    print: (line: string) => void,
    signal: AbortSignal,
    log: Logger = silentLogger,
  ) => {
    const options = { stateFile, namespaces: [cluster.namespace], print };
    const controllers = (kit: ControllerKit) => [podController(kit, options)];
    return runControllers({ client: cluster.client, log, controllers }, signal);
  };

  const stop = async (program: Program) => {
    program.child.kill('SIGTERM');
    const { code, stderr } = await program.ended();
    assert.equal(code, 0, stderr);
  };

  it('pods.ts reports new Pods, and one that was deleted while it did not run', async () => {
    const stateFile = join(folder, 'state.json');
    await createPod('web');
    const first = example('pods.ts', [
      `--kubeconfig=${plane.kubeconfigPath}`,
      `--namespace=${cluster.namespace}`,
      `--state=${stateFile}`,
    ]);
    await first.printed(/Sync\/Add\/Update for Pod web\n/);
    await createPod('late');
    await first.printed(/Sync\/Add\/Update for Pod late\n/);
    await stop(first);
    assert.deepEqual(JSON.parse(readFileSync(stateFile, 'utf8')), [
      `${cluster.namespace}/late`,
      `${cluster.namespace}/web`,
    ]);

    const late = { namespace: cluster.namespace, name: 'late' };
    await cluster.client.delete(PODS, late, { gracePeriodSeconds: 0 });
    await cluster.until('deleted', async () => (await cluster.podNames()).join() === 'web');
    const reported: string[] = [];
    const end = new AbortController();
    const running = runPodController(stateFile, (line) => reported.push(line), end.signal);
    await cluster.until('reported', async () =>
      reported.includes(`Pod ${cluster.namespace}/late does not exist anymore`),
    );
    end.abort();
    await running;
    assert.equal(existsSync(`${stateFile}.next`), false);
  });

  it('a Pod whose report fails is retried five times and then dropped', async () => {
    const { log, lines } = recordingLogger();
    await createPod('web');
    let attempts = 0;
    const end = new AbortController();
    const failToReport = () => {
      attempts++;
      throw new Error('printer out of paper');
    };
    const running = runPodController(join(folder, 'state.json'), failToReport, end.signal, log);
    const dropped = () => lines.filter(({ message }) => message.includes('dropping the key'));
    await cluster.until('dropped', async () => dropped().length > 0);
    assert.ok(attempts >= 6);
    assert.equal(dropped()[0]?.fields['attempt'], 6);
    end.abort();
    await running;
  });

  it('cronjob reviews, converts and runs a CronJob over HTTPS', async (context) => {
    if (plane.kind === 'given') return context.skip('it does not reach this process');
    const { client, namespace } = cluster;
    const served = await ServedWebhooks.start(cronJobWebhooks);
    context.after(() => served.close());
    const mapper = new RestMapper(client);
    for (const object of served.objects(CRON_JOBS.definition)) {
      await client.create(await mapper.get(object.apiVersion, object.kind), object);
    }
    const at = { namespace, name: 'cronjob-sample' };
    const apply = async (version: 'v1' | 'v2', spec: object = {}) => {
      const file = join(EXAMPLES, `cronjob/sample-${version}.yaml`);
      const object = parse(readFileSync(file, 'utf8')) as CronJob;
      const body = { ...object, metadata: at, spec: { ...object.spec, ...spec } };
      const patch = { type: 'apply', body, force: true } as const;
      const resource: Resource = version === 'v1' ? CRON_JOBS : CRON_JOBS_V2;
      return client.patch(resource, at, patch, { fieldManager: version });
    };
    await cluster.until('a malformed schedule is rejected', async () => {
      const answer = apply('v1', { schedule: '0 25 * * *' });
      const error = await answer.catch((cause: unknown) => cause);
      return isApiError(error, 'invalid');
    });
    await apply('v2');
    assert.equal((await client.get(CRON_JOBS, at)).spec.schedule, '*/1 * * * *');
    // The last minute is due at once.
    const lastScheduleTime = new Date(Date.now() - 90_000).toISOString();
    const patch = { type: 'merge', body: { status: { lastScheduleTime } } } as const;
    await client.patch(CRON_JOBS_V2, at, patch, { subresource: 'status' });
    const end = new AbortController();
    const controllers = (kit: ControllerKit) => [cronJobController(kit)];
    const running = runControllers({ client, controllers }, end.signal);
    context.after(() => {
      end.abort();
      return running;
    });
    await cluster.until('a Job runs', async () => {
      const { items } = await client.list(JOBS, { namespace });
      return items.some(({ spec }) => spec?.template.spec?.restartPolicy === 'OnFailure');
    });
    await cluster.until('the status is written', async () => {
      const { status } = await client.get(CRON_JOBS_V2, at);
      return status?.conditions?.length === 3 && status.lastScheduleTime !== lastScheduleTime;
    });
  });

  it('the program of a new project runs with the permissions of its own manifests', async (context) => {
    // The installation is not removed.
    if (plane.kind === 'given') return context.skip('not in the cluster of a user');
    const printed: string[] = [];
    const run = async (...args: string[]) => {
      const print = (text: string) => printed.push(text);
      assert.equal(
        await commandLine(program, args, {}, { print, warn: print, colour: false }),
        0,
        printed.join('\n'),
      );
    };
    await run('manifests');
    const manifests = parseAllDocuments(printed.join('\n')).map((each) => each.toJS() as Manifest);
    await applyObjects(cluster.client, manifests);
    const kubeconfig = parse(readFileSync(plane.kubeconfigPath, 'utf8'));
    const account = { namespace: 'static-site-controller-system', name: 'static-site-controller' };
    kubeconfig.users[0].user = { token: await serviceAccountToken(cluster.client, account) };
    kubeconfig.contexts[0].context.namespace = account.namespace;
    const flags = [`--kubeconfig=${join(folder, 'kubeconfig')}`, '--leader-elect'];
    writeFileSync(join(folder, 'kubeconfig'), JSON.stringify(kubeconfig), { mode: 0o600 });
    await run('check', ...flags);
    const daemon = example('static-site/src/main.ts', [...flags, '-v=2']);
    await daemon.printed(/"Starting workers"/);
    const at = { namespace: cluster.namespace, name: 'sample' };
    const { spec } = parse(
      readFileSync(join(EXAMPLES, 'static-site/samples/static-site.yaml'), 'utf8'),
    );
    await cluster.client.create(STATIC_SITES, {
      apiVersion: 'example.com/v1alpha1',
      kind: 'StaticSite',
      metadata: at,
      spec,
    });
    const status = async () => (await cluster.client.get(STATIC_SITES, at)).status;
    await cluster.until('ready', async () => {
      const ready = (await status())?.conditions?.find(({ type }) => type === 'Ready');
      return ready?.message === '2 of 2 replicas are available' && ready.status === 'True';
    });
    await cluster.settle();
    const { resourceVersion } = (await cluster.client.get(STATIC_SITES, at)).metadata;
    await cluster.settle();
    assert.equal(
      (await cluster.client.get(STATIC_SITES, at)).metadata.resourceVersion,
      resourceVersion,
    );
    assert.doesNotMatch(daemon.stderr, /^E\d|forbidden/m);
    await stop(daemon);
  });
});
