// Runs the daemon for a long time against kube-apiserver and etcd, with changes and faults, and measures its resources.
//
//   npm run soak -- [--minutes=N] [--seed=N] [--output=FILE]
//
// Counts, WebApps and Foos are created, changed, scaled and deleted, and Pods are deleted. Meanwhile connections are cut, the
// Lease is deleted, and kube-apiserver restarts. At the end each object must be in its desired state, and no measurement may
// grow: see `trendOf`. Prints a table and writes a chart. Exits with code 1 if an object is wrong or a measurement grows.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { isApiError } from '../../src/api/api-error.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, LEASES, PODS } from '../../src/api/builtin.ts';
import type { CustomResourceDefinition } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import { controllerOf } from '../../src/api/metadata.ts';
import { isReady } from '../../src/api/readiness.ts';
import type { Resource } from '../../src/api/resource.ts';
import { seededRandom } from '../../src/util/seeded-random.ts';
import { TcpProxy } from '../../test/support/chaos/tcp-proxy.ts';
import { startControlPlane } from '../../test/support/control-plane.ts';
import { parseExposition } from '../../test/support/exposition.ts';
import { crdController } from '../../test/support/program.ts';
import { until } from '../../test/support/until.ts';
import { freePorts } from '../envtest/real-control-plane.ts';
import { chartOf, shown, trendOf } from './series.ts';
import type { Series } from './series.ts';

const SAMPLE_MS = 5000;
const CHANGE_MS = 250;
const FAULT_MS = 30_000;
const MAX_OBJECTS = 40;
const SETTLE_MS = 240_000;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    output: { type: 'string', default: 'dist/soak.svg' },
  },
});
const random = seededRandom(Number(values.seed));
const below = (end: number) => Math.floor(random() * end);
const namespace = 'default';

process.env['CONTROL_PLANE'] ??= 'real';
const plane = await startControlPlane({ cluster: { kubelet: { terminationMs: 0 } } });
const { client, config, processes } = plane;
if (!processes) throw new Error('needs a control plane whose processes can end');
const folder = join(import.meta.dirname, '../../crds');
for (const { plural, group } of [COUNTS, WEB_APPS, FOOS]) {
  const text = readFileSync(join(folder, `${plural}.${group}.yaml`), 'utf8');
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, parse(text) as CustomResourceDefinition);
}
const proxy = await TcpProxy.start(Number(new URL(config.server).port));
const kubeconfig = `${plane.kubeconfigPath}-of-the-proxy`;
const direct = readFileSync(plane.kubeconfigPath, 'utf8');
const url = `https://127.0.0.1:${proxy.port}`;
writeFileSync(kubeconfig, direct.replaceAll(config.server, url), { mode: 0o600 });
const [port] = await freePorts(1);
const daemon = crdController(
  [
    `--kubeconfig=${kubeconfig}`,
    '--controllers=count,webapp,foo',
    '--leader-elect',
    '--leader-elect-step-down',
    `--leader-elect-resource-namespace=${namespace}`,
    `--metrics-bind-address=127.0.0.1:${port}`,
    '--metrics-secure=false',
    '--health-probe-bind-address=0',
  ],
  Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      /^(?:MALLOC_|LD_PRELOAD|NODE_OPTIONS)/.test(name) && value ? [[name, value]] : [],
    ),
  ),
);

/** Desired replicas by name, for each kind. */
const DESIRED = {
  counts: new Map<string, number>(),
  webapps: new Map<string, number>(),
  foos: new Map<string, number>(),
};
const KINDS: readonly {
  readonly resource: Resource;
  readonly desired: Map<string, number>;
  readonly spec: (name: string, replicas: number) => object;
}[] = [
  {
    resource: COUNTS,
    desired: DESIRED.counts,
    spec: (_: string, count: number) => ({ name: `nginx:${below(3)}`, count }),
  },
  {
    resource: WEB_APPS,
    desired: DESIRED.webapps,
    spec: (_: string, replicas: number) => ({ version: `1.${below(9)}`, replicas }),
  },
  {
    resource: FOOS,
    desired: DESIRED.foos,
    spec: (name: string, replicas: number) => ({ deploymentName: `foo-${name}`, replicas }),
  },
];

/** Repeats a change until the server has it. */
async function changed(change: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await change();
      return;
    } catch (error) {
      if (isApiError(error, 'alreadyExists', 'notFound')) return;
      if (!isApiError(error)) throw error;
      await sleep(500);
    }
  }
}

let serial = 0;
let changes = 0;

async function change(): Promise<void> {
  changes++;
  const { resource, desired, spec } = KINDS[below(KINDS.length)] ?? KINDS[0]!;
  const names = [...desired.keys()];
  const name = names[below(names.length)];
  const at = { namespace, name: name ?? '' };
  const replicas = 1 + below(5);
  const kind = below(10);
  if (name === undefined || (kind < 3 && names.length < MAX_OBJECTS / KINDS.length)) {
    const metadata = { namespace, name: `x${++serial}` };
    const { group, version, kind: its } = resource;
    const draft = { apiVersion: `${group}/${version}`, kind: its, metadata };
    const body = { ...draft, spec: spec(metadata.name, replicas) };
    await changed(() => client.create(resource, body));
    desired.set(metadata.name, replicas);
  } else if (kind < 5) {
    await changed(() => client.delete(resource, at));
    desired.delete(name);
  } else if (kind < 6) {
    const { items } = await client.list(PODS, { namespace }).catch(() => ({ items: [] }));
    const pod = items[below(items.length)]?.metadata;
    if (pod) await changed(() => client.delete(PODS, pod));
  } else {
    const body = { spec: spec(name, replicas) };
    await changed(() => client.patch(resource, at, { type: 'merge', body }));
    desired.set(name, replicas);
  }
}

const FAULTS: readonly (readonly [name: string, () => unknown])[] = [
  ['connections cut', () => proxy.reset()],
  [
    'Lease deleted',
    () => changed(() => client.delete(LEASES, { namespace, name: 'crd-controller' })),
  ],
  ['connections cut in a line', () => proxy.cutAfter(100)],
  [
    'server restarted',
    async () => {
      await processes.terminate('kube-apiserver');
      await processes.restart('kube-apiserver');
    },
  ],
  ['connections silent', () => proxy.setBehaviour('blackhole')],
  [
    'server killed',
    async () => {
      await processes.crash('kube-apiserver');
      await processes.restart('kube-apiserver');
    },
  ],
];

/** Returns what differs from the desired state. */
async function problems(): Promise<string[]> {
  const found: string[] = [];
  const owners = new Map<string, string>();
  const expected = new Map<string, number>();
  for (const { resource, desired } of KINDS) {
    const { items } = await client.list(resource, { namespace });
    for (const item of items) {
      const { name, uid } = item.metadata;
      owners.set(uid, name);
      const wanted = desired.get(name);
      if (wanted === undefined) found.push(`${resource.kind} ${name} is there`);
      else if (!isReady(item)) found.push(`${resource.kind} ${name} is not ready`);
      expected.set(uid, resource === COUNTS ? (wanted ?? 0) : 1);
    }
    if (items.length < desired.size) found.push(`${resource.plural}: some are missing`);
  }
  const { items: pods } = await client.list(PODS, { namespace });
  const { items: deployments } = await client.list(DEPLOYMENTS, { namespace });
  for (const { kind, metadata } of [...pods, ...deployments]) {
    const owner = controllerOf({ metadata });
    if (!owner) found.push(`${kind} ${metadata.name} has no owner`);
    else if (owner.kind === 'ReplicaSet') continue;
    else if (!owners.has(owner.uid)) found.push(`${kind} ${metadata.name} is an orphan`);
    else expected.set(owner.uid, (expected.get(owner.uid) ?? 0) - 1);
  }
  for (const [uid, missing] of expected) {
    if (missing !== 0) found.push(`${owners.get(uid)}: ${missing} owned objects are missing`);
  }
  for (const { metadata, spec } of deployments) {
    const owner = owners.get(controllerOf({ metadata })?.uid ?? '') ?? '';
    const wanted = DESIRED.webapps.get(owner) ?? DESIRED.foos.get(owner);
    if (spec?.replicas !== wanted)
      found.push(`Deployment ${metadata.name}: not ${wanted} replicas`);
  }
  return found;
}
const MEASURED: readonly (readonly [Series['name'], Series['unit'], string, string?])[] = [
  ['resident', 'bytes', 'process_resident_memory_bytes'],
  ['heap reserved', 'bytes', 'nodejs_heap_size_total_bytes'],
  ['heap used', 'bytes', 'nodejs_heap_size_used_bytes'],
  ['external', 'bytes', 'nodejs_external_memory_bytes'],
  ['file descriptors', 'count', 'process_open_fds'],
  ['sockets', 'count', 'nodejs_active_resources', 'TCPSocketWrap'],
  ['timers', 'count', 'nodejs_active_resources', 'Timeout'],
];
const measured = MEASURED.map(([name, unit]): Series => ({ name, unit, samples: [] }));
const rest: Series = { name: 'resident, not heap', unit: 'bytes', samples: [] };
const faults: (readonly [number, string])[] = [];

const scrape = async () => {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  return response.ok ? parseExposition(await response.text()) : undefined;
};
await until('the daemon serves metrics', () => scrape().catch(() => undefined));
const startMs = performance.now();
const seconds = () => (performance.now() - startMs) / 1000;

async function sample(): Promise<void> {
  if (daemon.child.exitCode !== null)
    throw new Error(`the daemon ended: ${daemon.output.slice(-4000)}`);
  const samples = (await scrape()) ?? [];
  const at = seconds();
  const read = MEASURED.map(([, , name, type]) =>
    samples
      .filter((each) => each.name === name && (!type || each.labels['type'] === type))
      .reduce((sum, { value }) => sum + value, 0),
  );
  read.forEach((value, index) => measured[index]?.samples.push([at, value]));
  const [resident = 0, reserved = 0, , external = 0] = read;
  rest.samples.push([at, resident - reserved - external]);
}

const endMs = startMs + Number(values.minutes) * 60_000;
async function every(ms: number, work: () => Promise<unknown>): Promise<void> {
  while (performance.now() < endMs) {
    await work();
    await sleep(ms);
  }
}
let turn = 0;
await Promise.all([
  every(SAMPLE_MS, sample),
  every(CHANGE_MS, change),
  every(0, async () => {
    await sleep(FAULT_MS);
    if (performance.now() > endMs - FAULT_MS) return;
    const [name, fault] = FAULTS[turn++ % FAULTS.length] ?? FAULTS[0]!;
    faults.push([seconds(), name]);
    await fault();
  }),
]);
const settledBy = performance.now() + SETTLE_MS;
let wrong = await problems();
while (wrong.length > 0 && performance.now() < settledBy) {
  await sleep(1000);
  wrong = await problems();
}
daemon.child.kill('SIGTERM');
await daemon.ended();
await proxy.close();
await plane.close();

console.log(`${changes} changes, ${faults.length} faults, ${serial} objects created`);
console.log('measurement              median      growth in 1 h     at most');
const series = [...measured, rest];
for (const each of series) {
  const { median, perHour, bound, isFlat } = trendOf(each);
  const cells = [median, perHour, bound].map((value) => shown(value, each.unit).padStart(15));
  console.log(`${each.name.padEnd(18)}${cells.join('')}${isFlat ? '' : '  grows'}`);
}
mkdirSync(dirname(values.output), { recursive: true });
writeFileSync(values.output, chartOf('Resources of the daemon', series, faults));
console.log(wrong.length === 0 ? 'All objects are as desired' : wrong.join('\n'));
process.exitCode = wrong.length > 0 || !series.every((each) => trendOf(each).isFlat) ? 1 : 0;
