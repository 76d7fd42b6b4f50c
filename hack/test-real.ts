/**
 * Runs conformance tests and stories against real control planes: each test file that uses
 * test/support/control-plane.ts gets etcd and kube-apiserver instead of the embedded server. Then it runs the
 * stories that depend on Kubernetes' own controllers on a complete cluster. Before that, it compares our log
 * with the real klog, evaluates our alerts with the Prometheus engine, and renders our charts with Helm. Arguments are the test
 * files to run; `--cluster` runs them on the cluster.
 *
 * The stories of kubectl also run on the embedded server, with the kubectl of the control plane's version.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { BinariesUnavailable, COMPONENTS, findOrBuild, isComponent } from './envtest/binaries.ts';

/** Stories with Deployments, with Pods that end, or about the controllers of a cluster. */
const ON_A_CLUSTER = [
  ...['webapp', 'at', 'foo'].map((name) => `test/stories/${name}.test.ts`),
  'test/stories/cluster-controllers.test.ts',
  'test/stories/examples.test.ts',
  'test/real/high-availability.test.ts',
  'test/real/same-name.test.ts',
];

/** Evaluates the alerts and the dashboard in the Prometheus engine. */
const ALERTS = 'hack/promql/alerts.test.ts';

/** Lints and renders the Helm charts. */
const CHARTS = 'hack/helm/chart.test.ts';

const args = process.argv.slice(2);
const files = args.filter((arg) => arg !== '--cluster');

if (files.length === 0) {
  await runNode(['hack/klog/fuzz.ts']);
  await runTests([ALERTS], {});
  await runTests([CHARTS], {});
}

try {
  const { kubectl } = await findOrBuild(COMPONENTS.filter(isComponent), (line) =>
    console.log(`test:real: ${line}`),
  );
  const env = { KUBECTL: process.env['KUBECTL'] ?? kubectl };
  const run = (where: string, wanted: readonly string[], concurrency?: number) =>
    runTests(wanted, { ...env, CONTROL_PLANE: where }, concurrency);
  if (files.length > 0) {
    await run(args.includes('--cluster') ? 'cluster' : 'real', files);
  } else {
    await runTests(['test/stories/kubectl.test.ts'], env);
    // Two at a time, because a story mostly waits.
    await run('real', ['test/{conformance,stories,processes,real}/**/*.test.ts'], 2);
    await run('cluster', ON_A_CLUSTER);
  }
} catch (error) {
  if (error instanceof BinariesUnavailable) {
    console.log(`test:real: SKIPPED: ${error.message}`);
  } else {
    console.error('test:real:', error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}

/** Each file starts a control plane. A complete cluster takes both cores of a small machine. */
async function runTests(
  wanted: readonly string[],
  env: Readonly<Record<string, string>>,
  concurrency = 1,
): Promise<void> {
  const limits = [`--test-concurrency=${concurrency}`, '--test-timeout=600000'];
  await runNode(['--import', './test/support/preload.ts', '--test', ...limits, ...wanted], env);
}

/** Sets a failing exit code if the run fails. */
async function runNode(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const child = spawn(process.execPath, args, {
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  // Ctrl-C also reaches the test runner, which ends first.
  const ignore = () => undefined;
  const stop = () => child.kill('SIGTERM');
  process.on('SIGINT', ignore);
  process.once('SIGTERM', stop);
  const [code] = (await once(child, 'close')) as [number | null];
  process.off('SIGINT', ignore);
  process.off('SIGTERM', stop);
  if (code !== 0) process.exitCode = code ?? 1;
}
