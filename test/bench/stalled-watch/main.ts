/**
 * Measures how long a change is not received after a fault of the watch connection, for our informer
 * and others. Each fault and client has its own server, proxy and process; all run concurrently in real
 * time. A change that is not received within three minutes counts as lost.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { temporaryKubeconfig } from '../../../src/cli/embedded/kubeconfig-file.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { CONFIG_MAPS } from '../../../src/api/builtin.ts';
import { TcpProxy } from '../../support/chaos/tcp-proxy.ts';
import type { BenchmarkCall } from '../benchmark.ts';
import { FAULTS } from './faults.ts';
import type { Fault } from './faults.ts';

const CLIENTS = ['ours', 'client-node', 'fluent'] as const;

type ClientName = (typeof CLIENTS)[number];

interface Cell {
  readonly fault: string;
  readonly client: ClientName;
  /** Time until the change during the fault was received; undefined if it was not. */
  readonly seconds: number | undefined;
  /** Connections at the proxy at the end. */
  readonly connections: number;
}

const TIMEOUT_MS = 180_000;
const FAULT_MS = 10_000;
/** Age of a watch when the fault starts. */
const SETTLE_MS = 5000;

export async function main({ json }: BenchmarkCall): Promise<void> {
  const cells = await Promise.all(
    FAULTS.flatMap((fault, row) =>
      CLIENTS.map(async (client, column) => {
        // Processes that all start at once would delay each other.
        await sleep((row * CLIENTS.length + column) * 700);
        return measure(fault, client);
      }),
    ),
  );
  console.log(json ? JSON.stringify({ capSeconds: TIMEOUT_MS / 1000, cells }) : table(cells));
}

async function measure(fault: Fault, client: ClientName): Promise<Cell> {
  const server = new ApiServer();
  const listening = await server.listen();
  const proxy = await TcpProxy.start(Number(new URL(listening.url).port));
  const text = JSON.stringify(listening.kubeconfig());
  const kubeconfig = await temporaryKubeconfig(
    JSON.parse(text.replaceAll(listening.url, `https://127.0.0.1:${proxy.port}`)),
  );
  const owner = new HttpClient({ handler: server.handler, server: 'https://bench' });
  const set = (value: string) =>
    owner.patch(
      CONFIG_MAPS,
      { namespace: 'default', name: 'a' },
      { type: 'merge', body: { metadata: { labels: { value } } } },
    );
  await owner.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'default', name: 'a', labels: { value: 'before' } },
  });
  const child = spawn(process.execPath, [join(import.meta.dirname, `${client}.ts`)], {
    env: { ...process.env, KUBECONFIG: kubeconfig.path },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const received = new Set<string>();
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => received.add(line));
  const receives = async (value: string, withinMs: number) => {
    const until = performance.now() + withinMs;
    while (!received.has(value) && performance.now() < until) await sleep(50);
    return received.has(value);
  };
  try {
    if (!(await receives('before', 60_000))) throw new Error(`${client} did not sync`);
    await sleep(SETTLE_MS);
    const target = { server, proxy };
    const from = performance.now();
    fault.start(target);
    await set('during');
    if (fault.end) setTimeout(() => fault.end?.(target), FAULT_MS);
    const isReceived = await receives('during', TIMEOUT_MS);
    const seconds = isReceived ? (performance.now() - from) / 1000 : undefined;
    return { fault: fault.name, client, seconds, connections: proxy.connections };
  } finally {
    child.kill('SIGKILL');
    await once(child, 'close');
    await proxy.close();
    await server.close();
    await kubeconfig.remove();
  }
}

function table(cells: readonly Cell[]): string {
  const rows = FAULTS.map(({ name }) => {
    const of = (client: ClientName) => {
      const cell = cells.find((one) => one.fault === name && one.client === client);
      const delay = cell?.seconds === undefined ? '**never**' : `${cell.seconds.toFixed(1)} s`;
      return `${delay} (${cell?.connections})`;
    };
    return `| ${[name, ...CLIENTS.map(of)].join(' | ')} |`;
  });
  return [
    `| fault | ${CLIENTS.join(' | ')} |`,
    `| --- |${CLIENTS.map(() => ' --- |').join('')}`,
    ...rows,
  ].join('\n');
}
