import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse, stringify } from 'yaml';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { Draft, KubernetesObject } from '../../src/api/object.ts';
import { controllerReference } from '../../src/api/metadata.ts';
import type { Resource } from '../../src/api/resource.ts';
import { CONFIG_MAPS } from '../../src/api/builtin.ts';
import { consoleSteps, matchesOutput } from '../support/console-blocks.ts';
import type { ConsoleStep } from '../support/console-blocks.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { findKubectl, WITHOUT_COLLECTION } from '../support/kubectl.ts';
import { Program } from '../support/program.ts';
import { TlsCluster } from '../support/tls-cluster.ts';
import { DEFAULT_CONTROLLERS } from '../support/own-program.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');

const kubectl = findKubectl();
const isOurs = !process.env['CONTROL_PLANE']?.includes('/');
const skip =
  (kubectl === undefined && 'kubectl not found: add it to the PATH, or set $KUBECTL') ||
  (!isOurs && 'counts the Pods of the whole cluster');
if (skip) console.warn(`SKIPPED: ${import.meta.filename}: ${skip}`);

/**
 * The examples wait most of the time, so they run concurrently; a real control plane is too slow for
 * it.
 */
const concurrency = process.env['CONTROL_PLANE'] ? 1 : 2;

interface Sample {
  readonly kind: Resource;
  readonly file: string;
}

const SAMPLES: readonly Sample[] = [
  { kind: COUNTS, file: '01-count/count.yaml' },
  { kind: WEB_APPS, file: '02-webapp/webapp.yaml' },
  { kind: ATS, file: '03-at/at.yaml' },
  { kind: FOOS, file: '04-foo/foo.yaml' },
];

/** Read-only commands, repeated until their output is as in the README. */
const READ_ONLY = /^kubectl (get|describe|logs) /;

/**
 * Lines of client-go's own log, which are not part of a command's answer: kubectl sometimes logs the end
 * of the watch of `kubectl wait` as a warning.
 */
const CLIENT_GO_LOG = /^[IWE]\d{4} \d{2}:\d{2}:\d{2}\.\d+ .*\n?/gmu;

/** Runs every command in the READMEs and compares its output. */
describe('The READMEs of the examples', { skip, concurrency, timeout: 240_000 }, () => {
  describe('in one namespace each', { concurrency: true }, () => {
    const controlPlane = controlPlaneWith(DEFAULT_CONTROLLERS, SAMPLES);
    for (const example of ['01-count', '02-webapp', '03-at', '04-foo']) {
      it(`${example}: all commands print the documented output`, () =>
        controlPlane.follow(example));
    }
  });

  describe('alone in a cluster, because all Pods are counted', () => {
    const controlPlane = controlPlaneWith(['pod-count'], []);
    it('05-pod-count: all commands print the documented output', () =>
      controlPlane.follow('05-pod-count'));
  });
});

/** Starts a control plane with these controllers for the tests of a suite. */
function controlPlaneWith(controllers: readonly string[], samples: readonly Sample[]) {
  let home: string;
  let plane: ControlPlane;
  let daemon: TlsCluster;
  before(async () => {
    home = mkdtempSync(join(tmpdir(), 'examples-story-'));
    symlinkSync(kubectl ?? '', join(home, 'kubectl'));
    plane = await startControlPlane({ cluster: {} });
    daemon = await TlsCluster.create(plane);
    for (const { kind } of samples) await daemon.installCrd(kind);
    if (plane.kind === 'cluster') {
      await Promise.all(samples.map((sample) => untilCollected(daemon, sample)));
    }
    daemon.startDaemon({ controllers });
  });
  after(async () => {
    await daemon.end();
    await plane.close();
    rmSync(home, { recursive: true, force: true });
  });

  /** Runs the commands of an example's README in a namespace that is empty before and after. */
  const follow = async (example: string) => {
    const cluster = await TlsCluster.create(plane);
    const kubeconfig = join(home, `${example}.kubeconfig`);
    writeFileSync(kubeconfig, kubeconfigIn(cluster.namespace, plane.kubeconfigPath));
    const reader = new Reader(cluster, {
      PATH: [home, process.env['PATH'] ?? ''].join(delimiter),
      HOME: home,
      KUBECONFIG: kubeconfig,
      ...WITHOUT_COLLECTION,
    });
    const steps = consoleSteps(readFileSync(join(EXAMPLES, example, 'README.md'), 'utf8'));
    assert.ok(steps.length > 5, 'commands in the README');
    for (const step of steps) {
      // A real API server has no kubelet that serves logs here.
      if (step.command.startsWith('kubectl logs') && plane.kind !== 'embedded') continue;
      await reader.follow(step);
    }
    await reader.follow({ command: 'kubectl get pods', output: ['No resources found'] });
    await cluster.end();
  };

  return { follow };
}

/** Runs commands in a shell, in the folder of the READMEs. */
class Reader {
  readonly #cluster: TlsCluster;
  readonly #environment: Readonly<Record<string, string>>;

  constructor(cluster: TlsCluster, environment: Readonly<Record<string, string>>) {
    this.#cluster = cluster;
    this.#environment = environment;
  }

  async follow(step: ConsoleStep): Promise<void> {
    let printed = await this.#give(step);
    if (READ_ONLY.test(step.command)) {
      const deadline = performance.now() + 30_000;
      while (!matchesOutput(step, printed) && performance.now() < deadline) {
        await this.#cluster.pass(250);
        printed = await this.#give(step);
      }
    }
    if (!matchesOutput(step, printed)) {
      assert.equal(printed.trimEnd(), step.output.join('\n'), `$ ${step.command}`);
    }
  }

  async #give({ command }: ConsoleStep): Promise<string> {
    const script = `cd ${EXAMPLES}/.. && ${command}`;
    const shell = new Program('sh', ['-c', script], this.#environment);
    const { stdout, stderr } = await shell.ended();
    return stdout + stderr.replaceAll(CLIENT_GO_LOG, '');
  }
}

/** Returns the kubeconfig at `path` with `namespace` as the current namespace. */
function kubeconfigIn(namespace: string, path: string): string {
  const kubeconfig = parse(readFileSync(path, 'utf8')) as {
    contexts: { context: { namespace?: string } }[];
  };
  for (const { context } of kubeconfig.contexts) context.namespace = namespace;
  return stringify(kubeconfig);
}

/** Waits until the object is collected: Kubernetes' garbage collector discovers new kinds every 30 s. */
async function untilCollected(cluster: TlsCluster, { kind, file }: Sample): Promise<void> {
  const { client, namespace } = cluster;
  const sample: Draft<KubernetesObject> = parse(readFileSync(join(EXAMPLES, file), 'utf8'));
  const owner = await client.create(kind, {
    ...sample,
    metadata: { ...sample.metadata, namespace },
  });
  const { name } = owner.metadata;
  const ownerReferences = [controllerReference(owner)];
  await client.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, ownerReferences },
  });
  await client.delete(kind, owner.metadata);
  await cluster.until(`owned objects of a ${kind.kind} are collected`, async () => {
    const { items } = await client.list(CONFIG_MAPS, { namespace });
    return items.every(({ metadata }) => metadata.name !== name);
  });
}
