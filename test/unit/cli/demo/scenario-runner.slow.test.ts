import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NODES, PODS } from '../../../../src/api/builtin.ts';
import { COUNTS } from '../../../../src/api/generated/count.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { Kubectl } from '../../../../src/cli/demo/kubectl.ts';
import { DemoPrinter } from '../../../../src/cli/demo/demo-printer.ts';
import type { Scenario } from '../../../../src/cli/demo/scenario.ts';
import {
  SCENARIOS,
  selectScenarios,
  ScenarioRunner,
} from '../../../../src/cli/demo/scenario-runner.ts';
import { observedKinds, Observer } from '../../../../src/cli/demo/observer.ts';
import { packageRoot } from '../../../../src/cli/program/package.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { Cluster } from '../../../../src/cluster/cluster.ts';
import type { ClusterOptions } from '../../../../src/cluster/cluster.ts';
import { FakeClock, settle } from '../../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../../src/util/logger.ts';
import { CONTROLLERS } from '../../../support/own-program.ts';
import { newDaemon } from '../../../support/test-cluster.ts';

/** Returns the parts of a demo without a cluster and a daemon. */
function testDemo(scenarios: readonly Scenario[] = SCENARIOS) {
  const clock = new FakeClock();
  let cluster: Cluster | undefined;
  const server = new ApiServer({ clock, kubelets: (node) => cluster?.kubelet(node) });
  const client = new HttpClient({ handler: server.handler, server: 'in-process', clock });
  const stop = new AbortController();
  const lines: string[] = [];
  const printer = new DemoPrinter({
    print: (text) => lines.push(text),
    colour: false,
    monotonic: () => clock.monotonic(),
  });
  const onChange = (text: string) => lines.push(text);
  const observed = observedKinds(scenarios.flatMap(({ kinds }) => kinds));
  const observer = new Observer({ client, clock, onChange }, 'default', observed);
  const { signal } = stop;
  const root = packageRoot();
  const kubectl = new Kubectl({ client, clock, printer, root, namespace: 'default', signal });
  const revision = () => server.revision;
  const runner = new ScenarioRunner(
    { client, clock, kubectl, printer, observer, revision },
    scenarios,
  );

  /** Starts the cluster controllers and the daemon. */
  const startAll = (options: ClusterOptions = {}) => {
    cluster = new Cluster(
      { client, clock, log: silentLogger },
      { controllers: ['-events'], ...options },
    );
    const config = { controllers: scenarios.map(({ name }) => name) };
    const own = { client, clock, log: silentLogger, random: Math.random, host: 'test' };
    return [cluster.run(signal), newDaemon(own, config).run(signal)];
  };

  /** Files are read in real time, so the number of clock steps is unknown. */
  const ended = async <T>(life: Promise<T>): Promise<T> => {
    const fate = { isOver: false };
    const over = life.finally(() => (fate.isOver = true));
    over.catch(() => undefined);
    while (!fate.isOver) await clock.advance(100);
    return over;
  };

  /** Runs the whole demo while `start` runs. */
  const runScenarios = async (start: () => readonly Promise<void>[]) => {
    await ended(runner.installKinds(signal));
    const running = [observer.run(signal), ...start()];
    const succeeded = await ended(runner.run(signal));
    return {
      succeeded,
      end: async () => {
        stop.abort(new Error('The test is over'));
        await ended(Promise.all(running));
      },
    };
  };

  return {
    clock,
    client,
    kubectl,
    lines,
    printer,
    observer,
    stop,
    runner,
    startAll,
    runScenarios,
    ended,
  };
}

test('all checks pass with a cluster and the daemon, and no objects are left', async () => {
  const { client, lines, printer, startAll, runScenarios, runner, ended, stop } = testDemo();
  const { succeeded, end } = await runScenarios(startAll);
  assert.ok(succeeded, lines.join('\n'));
  assert.equal(printer.failed, 0);
  assert.equal(printer.passed, 34);
  const { items: pods } = await client.list(PODS, { namespace: 'default' });
  assert.deepEqual(pods, []);
  const { items: nodes } = await client.list(NODES);
  assert.deepEqual(
    nodes.map(({ metadata }) => metadata.labels),
    [
      {
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/hostname': 'node-1',
        'kubernetes.io/os': 'linux',
      },
    ],
  );
  assert.ok(await ended(runner.applySamples(stop.signal)), lines.join('\n'));
  assert.equal(lines.at(-1), '✓ All objects are ready');
  await end();
});

test('a check fails in a cluster without garbage collection', async () => {
  const { lines, runScenarios, startAll } = testDemo(selectScenarios(['count']));
  const { succeeded, end } = await runScenarios(() =>
    startAll({ controllers: ['-events', '-garbage-collector'] }),
  );
  assert.equal(succeeded, false);
  assert.equal(
    lines.at(-1),
    '✗ The Count is deleted, and the garbage collector deletes its Pods: these still exist: test-count-0, test-count-1',
  );
  await end();
});

describe('without a controller', () => {
  const firstClaims: Readonly<Record<string, string>> = {
    count:
      '3 Pods, test-count-0 to test-count-2, are ready; the Count is healthy: test-count-0 does not exist',
    webapp:
      '2 of 2 replicas are available, behind a Service that the WebApp owns: the status is out of date',
    at: 'The command succeeds and the phase is DONE: the phase is unset',
    foo: 'The Foo has one Deployment, example-foo, with 1 of 1 replicas available: it owns none',
    'pod-count': 'Each new Pod has one event with the count: web is not available',
  };

  for (const scenario of SCENARIOS) {
    test(`the scenario of ${scenario.name} ends at the first failed check with the reason`, async () => {
      const { lines, printer, runScenarios } = testDemo([scenario]);
      const { succeeded, end } = await runScenarios(() => []);
      assert.equal(succeeded, false);
      assert.equal(printer.failed, 1);
      assert.equal(lines.at(-1), `✗ ${firstClaims[scenario.name]}`);
      await end();
    });
  }

  test('the run can be aborted', async () => {
    const { observer, stop, runner, ended } = testDemo();
    await ended(runner.installKinds(stop.signal));
    const watching = observer.run(stop.signal);
    const played = runner.run(stop.signal);
    await settle(50);
    stop.abort(new Error('enough'));
    await assert.rejects(played, { message: 'enough' });
    await watching;
  });
});

test('every controller has a scenario, and every scenario has a controller', () => {
  assert.deepEqual(
    SCENARIOS.map(({ name }) => name),
    CONTROLLERS,
  );
});

test('selects scenarios by names of controllers, in their own order', () => {
  const chosen = (...only: string[]) => selectScenarios(only).map(({ name }) => name);
  assert.deepEqual(chosen('foo', 'at'), ['at', 'foo']);
  assert.deepEqual(chosen(), CONTROLLERS);
  assert.throws(() => selectScenarios(['count', 'webap']), {
    name: 'UsageError',
    message:
      'unknown controller "webap" in --only: must be one of count, webapp, at, foo, pod-count; did you mean webapp?',
  });
});

test('the observer reports each change once', async () => {
  const { client, lines, observer, stop, runner, ended } = testDemo();
  await ended(runner.installKinds(stop.signal));
  const watching = observer.run(stop.signal);
  await settle();
  lines.length = 0;
  const pod = await client.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'default' },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  });
  await client.patch(PODS, pod.metadata, {
    type: 'merge',
    body: { metadata: { labels: { a: 'b' } } },
  });
  await client.patch(
    PODS,
    pod.metadata,
    {
      type: 'merge',
      body: { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } },
    },
    { subresource: 'status' },
  );
  await client.delete(PODS, pod.metadata, { gracePeriodSeconds: 0 });
  await settle(50);
  // A deletion without a grace period is written before the Pod is removed.
  assert.deepEqual(lines, [
    'pod/p  Pending',
    'pod/p  Running, ready',
    'pod/p  Terminating',
    'pod/p  deleted',
  ]);
  assert.deepEqual(observer.linesOf('pod/p').at(-1), 'deleted');
  assert.equal(observer.podsSeen, 1);
  stop.abort();
  await watching;
});

test('prints the tables of the server', async () => {
  const { kubectl, lines, stop, runner, ended } = testDemo();
  await ended(runner.installKinds(stop.signal));
  await kubectl.get(COUNTS, PODS);
  assert.deepEqual(lines.slice(-2), [
    '$ kubectl get counts,pods',
    'No resources found in default namespace.',
  ]);
  await kubectl.apply('examples/01-count');
  lines.length = 0;
  await kubectl.get(COUNTS, PODS);
  const [, heading, row] = lines;
  assert.match(heading ?? '', /^NAME +DESIRED +READY +HEALTHY +AGE$/);
  assert.match(row ?? '', /^count\.demo\.mark8s\.io\/test-count +3 /);
  await kubectl.getWide(COUNTS);
  assert.match(lines.at(-2) ?? '', /^NAME +DESIRED +READY +HEALTHY +APP +REASON +AGE$/);
});
