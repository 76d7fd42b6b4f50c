import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { CustomResourceDefinition } from '../../api/builtin.ts';
import type { Draft } from '../../api/object.ts';
import { FolderLockedError, lockFolder } from '../../apiserver/storage/folder-lock.ts';
import { readManifests } from '../../client/apply/manifest-files.ts';
import { connectCluster } from '../../client/cluster-connection.ts';
import { loadClusterConfig } from '../../client/kube-config/kube-config.ts';
import { isLoopback } from '../../serving/bind-address.ts';
import { toHex } from '../../util/bytes.ts';
import { sha256 } from '../../util/sha256.ts';
import { createCertificateAuthority } from '../../util/x509.ts';
import { EXIT_OK, UsageError } from '../common/errors.ts';
import { newTemporaryFolder } from '../common/temporary-folder.ts';
import { freePort } from '../common/free-port.ts';
import { userAgent } from '../program/cluster-access.ts';
import { declaredWebhooks } from '../program/declared-webhooks.ts';
import type { ProgramOptions } from '../program/program.ts';
import { ClusterSession } from './cluster-session.ts';
import type { WebhookEndpoint } from './cluster-session.ts';
import { isWatched } from './watched-process.ts';
import { webhookHost } from './webhook-host.ts';

/** Files of a project for `runOnCluster`. */
export interface RunOnClusterOptions {
  /** Module that runs the program. */
  readonly main: string;
  /** Folder of the CRDs. */
  readonly crds: string;
  /**
   * Flags: `--cluster=CONTEXT`, `--kubeconfig`, `--webhook-url`, and those of the program.
   * @default those of this process
   */
  readonly argv?: readonly string[] | undefined;
}

/** Runs a program on a cluster, as `runOnCluster` does, and returns its exit code. */
export async function clusterRun(
  program: ProgramOptions,
  { main, crds, argv = process.argv.slice(2) }: RunOnClusterOptions,
): Promise<number> {
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  // The cluster is cleaned up also if the terminal was closed.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  const { value: context, rest: others } = flagIn(argv, '--cluster');
  if (!context) {
    throw new UsageError(
      'npm start -- --cluster=CONTEXT names the context to use, so that no other cluster is changed: kubectl config get-contexts lists them',
    );
  }
  const { value: webhookUrl, rest } = flagIn(others, '--webhook-url');
  const { value: kubeconfig } = flagIn(rest, '--kubeconfig');
  const config = await loadClusterConfig({ context, kubeconfig, environment: process.env });
  const unlock = lockCluster(program.name, context, config.server);
  const connection = connectCluster(config, { userAgent: userAgent(program) });
  const folder = await newTemporaryFolder('npm-start-');
  const signals = new Signals();
  try {
    const webhooks = declaredWebhooks(program);
    const flags = [`--context=${context}`];
    let endpoint: WebhookEndpoint | undefined;
    if (ClusterSession.needsEndpoint(webhooks)) {
      const url = await endpointUrl(webhookUrl, context, config.server);
      endpoint = { url: url.origin, authority: await writeCertificate(url.hostname, folder) };
      const host = isLoopback(url.hostname) ? '127.0.0.1' : '';
      flags.push(`--webhook-bind-address=${host}:${url.port || 443}`);
      flags.push(`--webhook-cert-path=${folder}`);
    }
    const definitions = await definitionsIn(crds);
    const session = new ClusterSession({
      client: connection.client,
      program: program.name,
      definitions,
      webhooks,
      endpoint,
      print,
    });
    print(`Context ${context}, ${config.server}:`);
    if (endpoint) print(`  The API server calls the webhooks at ${endpoint.url}`);
    try {
      await session.start();
      const code = await runProcess([main, ...flags, ...rest], signals);
      return signals.first === undefined ? code : EXIT_OK;
    } finally {
      if (!signals.isRestart) {
        print(`Context ${context}:`);
        await session.end();
      }
    }
  } finally {
    signals.dispose();
    await rm(folder, { recursive: true });
    await connection.close();
    unlock();
  }
}

/**
 * Locks a cluster for one run of a program by this user: the first one that ends would remove the webhooks of the other.
 *
 * @throws {UsageError} if another process holds the lock
 */
function lockCluster(program: string, context: string, server: string): () => void {
  const id = toHex(sha256(`${program} ${server}`)).slice(0, 16);
  const folder = join(tmpdir(), `npm-start-${userInfo().uid}-${id}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    return lockFolder(folder);
  } catch (error) {
    if (!(error instanceof FolderLockedError)) throw error;
    throw new UsageError(
      `The process ${error.holder} runs ${program} on the cluster of the context ${context}: stop it first. If that process is another program, delete ${error.file}`,
    );
  }
}

/** Returns the value of a flag, and the other arguments. An empty value if the flag has none. */
function flagIn(argv: readonly string[], flag: string) {
  const given = argv.find((each) => each === flag || each.startsWith(`${flag}=`));
  const rest = argv.filter((each) => each !== given);
  return { value: given?.slice(flag.length + 1), rest };
}

async function endpointUrl(
  given: string | undefined,
  context: string,
  server: string,
): Promise<URL> {
  if (given === undefined) {
    const host = await webhookHost(context, new URL(server));
    return new URL(`https://${host}:${await freePort()}`);
  }
  const url = URL.parse(given);
  if (url?.protocol !== 'https:') {
    throw new UsageError(`--webhook-url=${given} must be a URL, as in https://192.168.0.7:9443`);
  }
  return url;
}

/** Writes a certificate for a host, and returns its authority. */
async function writeCertificate(host: string, folder: string): Promise<string> {
  const authority = await createCertificateAuthority({ commonName: 'npm-start' });
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const { certificatePem, privateKeyPem } = await authority.issue({
    commonName: 'npm-start',
    usages: 'server',
    ...(isIP(bare) > 0 ? { ipAddresses: [bare] } : { dnsNames: [bare] }),
  });
  await writeFile(join(folder, 'tls.crt'), certificatePem);
  await writeFile(join(folder, 'tls.key'), privateKeyPem, { mode: 0o600 });
  return authority.certificatePem;
}

async function definitionsIn(folder: string): Promise<Draft<CustomResourceDefinition>[]> {
  const texts = await readManifests([folder]);
  return texts.flatMap(({ text }) =>
    parseAllDocuments(text).map((document): Draft<CustomResourceDefinition> => document.toJS()),
  );
}

/**
 * Sends SIGTERM to the process of the program when the IPC channel to its parent closes, because that was killed. The channel
 * does not keep the process running.
 */
const ENDS_WITH_PARENT =
  "process.once('disconnect', () => process.kill(process.pid, 'SIGTERM')); process.channel.unref();";

/**
 * Runs the program in a group of its own, because Ctrl-C and `node --watch` both send a signal, and the second one kills. So a
 * terminal that is closed sends it no signal.
 */
async function runProcess(args: readonly string[], signals: Signals): Promise<number> {
  const { WATCH_REPORT_DEPENDENCIES: _, ...env } = process.env;
  const preload = `--import=data:text/javascript,${encodeURIComponent(ENDS_WITH_PARENT)}`;
  const child = spawn(process.execPath, [preload, ...args], {
    env,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    detached: true,
  });
  signals.onFirst(() => child.kill());
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}

/** The first signal that ends this process: of Ctrl-C, of `node --watch`, or of a terminal that is closed. */
class Signals {
  first: NodeJS.Signals | undefined;
  #onFirst: (() => void) | undefined;
  readonly #listener = (name: NodeJS.Signals) => {
    if (this.first !== undefined) return;
    this.first = name;
    this.#onFirst?.();
  };

  constructor() {
    for (const name of ENDING_SIGNALS) process.on(name, this.#listener);
  }

  /** Whether `node --watch` ends this process to start it again. */
  get isRestart(): boolean {
    return isWatched() && (this.first === undefined || this.first === 'SIGTERM');
  }

  /** Calls a function at the first signal, also if it has been received. */
  onFirst(listener: () => void): void {
    this.#onFirst = listener;
    if (this.first !== undefined) listener();
  }

  dispose(): void {
    for (const name of ENDING_SIGNALS) process.off(name, this.#listener);
  }
}

const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
