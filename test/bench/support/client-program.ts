import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ClientOptions, ClientReport } from '../clients/meter.ts';
import { goProgram, Unavailable } from './programs.ts';

/** The baseline comes first: ratios are relative to it. */
export const CLIENTS = ['bare', 'ours', 'client-node', 'fluent', 'client-go'] as const;
export type ClientName = (typeof CLIENTS)[number];

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
}

/**
 * Returns the command of each client that can run here, and reports the others on stderr: a table
 * without a client does not compare with it.
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

async function clientGo(): Promise<Command | undefined> {
  try {
    return await goProgram('informer');
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    console.error(`bench: SKIPPED client-go: ${error.message}`);
    return undefined;
  }
}

function nodeProgram(name: ClientName): Command {
  const file = join(import.meta.dirname, '..', 'clients', `${name}.ts`);
  return { file: process.execPath, args: ['--expose-gc', file] };
}

/**
 * Runs a client until it exits.
 *
 * @param onSynced called when its cache is synced, before it exits
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
  if (code !== 0) throw new Error(`${file} ${args.join(' ')} exited with code ${code}`);
  return reports;
}

function exitOf(child: ChildProcess): Promise<number | NodeJS.Signals | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? signal));
  });
}
