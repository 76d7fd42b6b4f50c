import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ClientOptions, ClientReport } from '../clients/meter.ts';
import { clientGo } from './client-go.ts';

/** The floor comes first: ratios are to it. */
export const CLIENTS = ['bare', 'ours', 'client-node', 'fluent', 'client-go'] as const;
export type ClientName = (typeof CLIENTS)[number];

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
}

/**
 * How to start each client that can run here. What cannot is named on stderr, loudly: a table
 * without a peer is not a table in which it lost.
 */
export async function commandsOf(
  names: readonly ClientName[],
): Promise<ReadonlyMap<ClientName, Command>> {
  const commands = new Map<ClientName, Command>();
  for (const name of names) {
    const command = name === 'client-go' ? await clientGo() : nodeProgram(name);
    if (command) commands.set(name, command);
  }
  return commands;
}

function nodeProgram(name: ClientName): Command {
  const file = join(import.meta.dirname, '..', 'clients', `${name}.ts`);
  return { file: process.execPath, args: ['--expose-gc', file] };
}

/**
 * Runs a client to its end.
 *
 * @param onSynced called once its cache is filled, while it goes on
 */
export async function runClient(
  { file, args }: Command,
  options: ClientOptions,
  onSynced: () => void = () => undefined,
): Promise<ClientReport[]> {
  const child = spawn(file, [...args, JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = exitOf(child);
  const reports: ClientReport[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const report = JSON.parse(line) as ClientReport;
    reports.push(report);
    if (report.at === 'synced') onSynced();
  }
  const code = await ended;
  if (code !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${code}`);
  return reports;
}

function exitOf(child: ChildProcess): Promise<number | NodeJS.Signals | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? signal));
  });
}
