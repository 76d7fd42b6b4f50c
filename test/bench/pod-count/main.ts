import { NODES, PODS } from '../../../src/api/builtin.ts';
import { LABEL } from '../../../src/controllers/pod-count/controller.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { Simulation } from '../../support/simulation.ts';
import type { BenchmarkCall } from '../benchmark.ts';
import { Arguments } from '../support/arguments.ts';
import { table } from '../support/table.ts';

/** Number of concurrent requests. */
const WIDTH = 100;

/**
 * Measures how many requests the Pod count causes while Pods are created and deleted, in virtual time:
 * the embedded server and the daemon are in this process. Three in five changes create a Pod, two
 * delete one.
 *
 * `--pods=50000 --rate=1000 --seconds=60`
 */
export async function main({ args, json }: BenchmarkCall): Promise<void> {
  const given = new Arguments(args);
  const pods = given.number('pods', 50_000);
  const rate = given.number('rate', 1000);
  const seconds = given.number('seconds', 60);
  given.end();

  const simulation = new Simulation();
  const { client } = simulation;
  const metadata = { name: 'master', labels: { 'node-role.kubernetes.io/control-plane': '' } };
  await client.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata });
  const at = (number: number) => ({ namespace: 'default', name: `pod-${number}` });
  const create = (number: number) =>
    client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: at(number),
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    });
  const remove = (number: number) => client.delete(PODS, at(number), { gracePeriodSeconds: 0 });
  await inParallel(pods, create);
  console.error(`${pods} Pods exist`);

  const sent = { reads: 0, labels: 0, events: 0 };
  const around =
    (handler: HttpHandler): HttpHandler =>
    (request) => {
      if (request.method === 'GET') sent.reads++;
      else if (request.path.includes('/events')) sent.events++;
      else sent.labels++;
      return handler(request);
    };
  simulation.startDaemonBehind(around, { controllers: ['pod-count'] });
  await simulation.pass(5000);
  const before = { ...sent };
  let first = 0;
  let next = pods;
  const startedMs = performance.now();
  for (let second = 0; second < seconds; second++) {
    const [from, to] = [first, next];
    const [gone, come] = [Math.floor(rate * 0.4), Math.ceil(rate * 0.6)];
    await inParallel(come, (number) => create(to + number));
    await inParallel(gone, (number) => remove(from + number));
    [first, next] = [from + gone, to + come];
    await simulation.pass(1000);
  }
  const tookMs = performance.now() - startedMs;
  await simulation.pass(11_000);
  const node = await client.get(NODES, { name: 'master' });
  const result = {
    pods,
    rate,
    seconds,
    label: node.metadata.labels?.[LABEL],
    labelWrites: sent.labels - before.labels,
    events: sent.events - before.events,
    reads: sent.reads - before.reads,
    realSeconds: Math.round(tookMs / 1000),
  };
  await simulation.end();
  if (result.label !== String(next - first)) throw new Error(`The label says ${result.label}`);
  if (json) console.log(JSON.stringify({ benchmark: 'pod-count', ...result }));
  else print(result);
}

function print(result: Readonly<Record<string, unknown>>): void {
  console.log(
    table(
      ['what', 'number'],
      Object.entries(result).map(([what, number]) => [what, String(number)]),
    ),
  );
}

async function inParallel(
  count: number,
  work: (number: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: WIDTH }, worker));
}
