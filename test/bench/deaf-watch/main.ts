/**
 * How long a change stays unheard when something happens to the watch, for our informer and its
 * peers: each fault and client has a server, a proxy and a process of its own, and all run side by
 * side in real time. Who has heard nothing after three minutes never will, as far as anybody waits.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { temporaryKubeconfig } from '../../../src/cli/kubeconfig-file.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { CONFIG_MAPS } from '../../support/config-maps.ts';
import { TcpProxy } from '../../support/chaos/tcp-proxy.ts';
import type { BenchmarkCall } from '../benchmark.ts';
import { FAULTS } from './faults.ts';
import type { Fault } from './faults.ts';

const CLIENTS = ['ours', 'client-node', 'fluent'] as const;

type ClientName = (typeof CLIENTS)[number];

interface Cell {
  readonly fault: string;
  readonly client: ClientName;
  /** Until what changed during the fault was heard; undefined: never. */
  readonly seconds: number | undefined;
  /** Connections at the proxy at the end. */
  readonly connections: number;
}

const CAP_MS = 180_000;
const FAULT_MS = 10_000;
/** A watch has stood for a while before it is harmed. */
const PEACE_MS = 5000;

export async function main({ json }: BenchmarkCall): Promise<void> {
  const cells = await Promise.all(
    FAULTS.flatMap((fault, row) =>
      CLIENTS.map(async (client, column) => {
        // Processes that all begin at once would wait for each other.
        await sleep((row * CLIENTS.length + column) * 700);
        return measure(fault, client);
      }),
    ),
  );
  console.log(json ? JSON.stringify({ capSeconds: CAP_MS / 1000, cells }) : table(cells));
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
  const heard = new Set<string>();
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => heard.add(line));
  const hears = async (value: string, withinMs: number) => {
    const until = performance.now() + withinMs;
    while (!heard.has(value) && performance.now() < until) await sleep(50);
    return heard.has(value);
  };
  try {
    if (!(await hears('before', 60_000))) throw new Error(`${client} did not begin`);
    await sleep(PEACE_MS);
    const place = { server, proxy };
    const from = performance.now();
    fault.begin(place);
    await set('during');
    if (fault.end) setTimeout(() => fault.end?.(place), FAULT_MS);
    const isHeard = await hears('during', CAP_MS);
    const seconds = isHeard ? (performance.now() - from) / 1000 : undefined;
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
