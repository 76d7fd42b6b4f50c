import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { ClientOptions, ClientReport } from '../clients/meter.ts';
import { goProgram, nodeProgram, rustProgram } from './programs.ts';
import type { Program } from './programs.ts';
import { startServer } from './server-program.ts';
import type { ServerOptions } from './server-program.ts';
import type { Setting } from './workload.ts';
import type { Sample } from './workload.ts';

const NODE_CLIENTS = ['bare', 'ours', 'client-node', 'fluent'] as const;

/** Programs with a cache. The baseline comes first: ratios are relative to it. */
export const CLIENTS: readonly string[] = [...NODE_CLIENTS, 'client-go', 'kube-rs'];

/** Time after which a client fails. */
const TIMEOUT_MS = 120_000;

function programOf(client: string): Promise<Program> {
  if (client === 'client-go') return goProgram('informer');
  if (client === 'kube-rs') return rustProgram('informer');
  return Promise.resolve(nodeProgram(`clients/${client}.ts`, ['--expose-gc']));
}

/** The reports of a client. */
export interface Reports {
  readonly synced: ClientReport;
  /** Undefined without events. */
  readonly stormed: ClientReport | undefined;
}

/**
 * Starts a canned server. Each sample runs one client on it.
 *
 * @param clients the clients that are measured
 * @param sampleOf returns the numbers of the table
 */
export async function cannedSetting(
  options: ServerOptions,
  clients: readonly string[],
  sampleOf: (reports: Reports) => Sample,
): Promise<Setting> {
  for (const client of clients) await programOf(client).catch(() => undefined);
  const server = await startServer(options);
  const { kind = 'foos', mode = 'stream', objects, events = 0, rate = 0 } = options;
  const { url, caFile, checksums } = server;
  return {
    async sample(client) {
      const given = { server: url, caFile, kind, mode, objects, events, latency: rate > 0 };
      const reports = await runClient(await programOf(client), given, () => server.storm());
      const [synced] = reports;
      const stormed = reports.find(({ at }) => at === 'stormed');
      if (!synced || (events > 0 && !stormed)) throw new Error('did not handle all events');
      for (const { at, checksum } of reports) {
        if (checksum === undefined || checksum === checksums[at]) continue;
        throw new Error(`the cache differs from the server's state when ${at}`);
      }
      return sampleOf({ synced, stormed });
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** Runs a client until it exits. */
async function runClient(
  { file, args }: Program,
  options: ClientOptions,
  onSynced: () => void,
): Promise<ClientReport[]> {
  const child = spawn(file, [...args, JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const timeout = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
  try {
    const ended = exitOf(child);
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
    const reports: ClientReport[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      const report = JSON.parse(line) as ClientReport;
      reports.push(report);
      if (report.at === 'synced') onSynced();
    }
    const code = await ended;
    if (code !== 0)
      throw new Error(`exited with ${code}: ${log.trim().split('\n').slice(-5).join(' ')}`);
    return reports;
  } finally {
    clearTimeout(timeout);
  }
}

function exitOf(child: ChildProcess): Promise<number | NodeJS.Signals | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? signal));
  });
}
