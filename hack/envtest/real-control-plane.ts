import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { cp, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findOrBuild, kubernetesVersion } from './binaries.ts';
import { ChildProcess } from './child-process.ts';
import { kubeconfig, replaceServingAuthority, writeCredentials } from './credential-files.ts';

/** The programs of a control plane; kube-apiserver depends on etcd. */
export type ControlPlaneProgram = 'etcd' | 'kube-apiserver';

/** A kube-apiserver with its own etcd on this machine. */
export interface RealControlPlane {
  /** `https://127.0.0.1:PORT` */
  readonly url: string;
  /** PEM of the CA of the serving certificate. */
  readonly ca: string;
  /** Bearer token of a member of `system:masters`. */
  readonly token: string;
  /** A kubeconfig with these credentials, readable by its owner only. */
  readonly kubeconfigPath: string;
  /** Compacts the history of etcd up to now, as kube-apiserver does every five minutes. */
  compact(): Promise<void>;
  /**
   * Kills a program with SIGKILL before this call returns; resolves when it has ended. Its port and its data
   * stay reserved.
   */
  crash(program: ControlPlaneProgram): Promise<void>;
  /** Stops a program with SIGTERM, as an upgrade does. */
  terminate(program: ControlPlaneProgram): Promise<void>;
  /**
   * Starts a program again with the same arguments; resolves when all running programs are ready. After a crash
   * of etcd, kube-apiserver needs a short time for each resource to reconnect.
   *
   * @param version of Kubernetes from now on; unchanged by default
   */
  restart(program: ControlPlaneProgram, version?: string): Promise<void>;
  /**
   * Stops both programs, copies the data of etcd and starts them. The returned function restores the copy in
   * the same way, with its resourceVersions, as `etcdutl snapshot restore` does by default.
   */
  backUp(): Promise<() => Promise<void>>;
  /** Replaces etcd by an empty one, in the same way. */
  wipe(): Promise<void>;
  /**
   * Creates a serving certificate of a new CA, which kube-apiserver uses after a restart. Resolves with the PEM
   * of the CA. For client certificates, the server still trusts the previous CA.
   */
  replaceAuthority(): Promise<string>;
  /** A folder for test data, removed by `stop`. */
  readonly folder: string;
  /** Stops both processes and removes their data. */
  stop(): Promise<void>;
}

/** A start takes three seconds on an idle machine, and many times as long on a busy one. */
const READY_TIMEOUT_MS = 120_000;

/** A graceful stop takes up to two seconds on an idle machine. */
const TERMINATION_TIMEOUT_MS = 60_000;

/** Another process may take a free port before kube-apiserver listens on it; then the start is repeated. */
const ATTEMPTS = 3;

/**
 * Starts etcd and kube-apiserver and waits until they are ready. No controller and no scheduler runs. Admission
 * by ServiceAccount is off, so that Pods need none. The processes end with this one, in any case.
 *
 * @param moreFlags of kube-apiserver
 * @param version of Kubernetes
 * @throws {BinariesUnavailable} if this machine has no binaries and cannot build them
 */
export async function startRealControlPlane(
  report: (line: string) => void = () => undefined,
  moreFlags: readonly string[] = [],
  version: string = kubernetesVersion(),
): Promise<RealControlPlane> {
  const binariesOf = (release: string) => findOrBuild(['etcd', 'kube-apiserver'], report, release);
  const first = await binariesOf(version);
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(first, binariesOf, moreFlags);
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
      report(`start failed, trying again: ${error instanceof Error ? error.message : 'unknown'}`);
    }
  }
}

type Binaries = Readonly<Record<ControlPlaneProgram, string>>;

async function start(
  first: Binaries,
  binariesOf: (version: string) => Promise<Binaries>,
  moreFlags: readonly string[],
): Promise<RealControlPlane> {
  const folder = mkdtempSync(join(tmpdir(), 'crd-controller-envtest-'));
  const removeFolder = () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  process.once('exit', removeFolder);
  const paths = { ...first };
  const running = new Map<ControlPlaneProgram, ChildProcess>();
  const end = async (program: ControlPlaneProgram, how: (child: ChildProcess) => Promise<void>) => {
    const child = running.get(program);
    running.delete(program);
    if (child) await how(child);
  };
  const crash = (program: ControlPlaneProgram) => end(program, (child) => child.kill());
  const stop = async () => {
    await Promise.all([...running.keys()].map(crash));
    removeFolder();
    process.off('exit', removeFolder);
  };
  try {
    const [etcdPort, port] = await freePorts(2);
    const etcdUrl = `http://127.0.0.1:${etcdPort}`;
    const url = `https://127.0.0.1:${port}`;
    const token = randomBytes(24).toString('hex');
    const { ca, flags } = await writeCredentials(folder, token);
    let servedBy = ca;
    const args: Record<ControlPlaneProgram, readonly string[]> = {
      etcd: [
        `--data-dir=${join(folder, 'etcd')}`,
        `--listen-client-urls=${etcdUrl}`,
        `--advertise-client-urls=${etcdUrl}`,
        '--listen-peer-urls=http://127.0.0.1:0',
        '--unsafe-no-fsync',
        '--log-level=warn',
      ],
      'kube-apiserver': [
        ...flags,
        `--etcd-servers=${etcdUrl}`,
        '--bind-address=127.0.0.1',
        `--secure-port=${port}`,
        `--cert-dir=${folder}`,
        '--endpoint-reconciler-type=none',
        '--service-cluster-ip-range=10.0.0.0/24',
        '--service-account-issuer=https://kubernetes.default.svc',
        '--authorization-mode=RBAC',
        // Without controllers, namespaces have no ServiceAccount.
        ...(moreFlags.includes('--enable-admission-plugins=ServiceAccount')
          ? []
          : ['--disable-admission-plugins=ServiceAccount']),
        ...moreFlags,
        '--allow-privileged',
        '--profiling=false',
      ],
    };
    const launch = (program: ControlPlaneProgram) =>
      running.set(program, new ChildProcess(paths[program], args[program]));
    const ready = () => untilReady({ url, ca: servedBy, token, etcdUrl }, running);
    launch('etcd');
    launch('kube-apiserver');
    await ready();
    const data = join(folder, 'etcd');
    const whileStopped = async (work: () => Promise<void>) => {
      await crash('kube-apiserver');
      await end('etcd', (child) => child.terminate(TERMINATION_TIMEOUT_MS));
      await work();
      launch('etcd');
      launch('kube-apiserver');
      await ready();
    };
    let backups = 0;
    const kubeconfigPath = join(folder, 'kubeconfig');
    await writeFile(kubeconfigPath, kubeconfig(url, ca, token), { mode: 0o600 });
    return {
      url,
      ca,
      token,
      kubeconfigPath,
      folder,
      compact: () => compact(etcdUrl),
      crash,
      terminate: (program) => end(program, (child) => child.terminate(TERMINATION_TIMEOUT_MS)),
      async restart(program, version) {
        if (running.has(program)) throw new Error(`${program} has not ended`);
        if (version !== undefined) paths[program] = (await binariesOf(version))[program];
        launch(program);
        await ready();
      },
      async backUp() {
        const copy = join(folder, `backup-${backups++}`);
        await whileStopped(() => cp(data, copy, { recursive: true }));
        return () =>
          whileStopped(async () => {
            await rm(data, { recursive: true });
            await cp(copy, data, { recursive: true });
          });
      },
      wipe: () => whileStopped(() => rm(data, { recursive: true })),
      async replaceAuthority() {
        servedBy = await replaceServingAuthority(folder);
        return servedBy;
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function compact(etcdUrl: string): Promise<void> {
  const ask = async (what: string, body: object): Promise<unknown> => {
    const answer = await fetch(`${etcdUrl}/v3/kv/${what}`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`etcd: ${what}: ${answer.status}: ${await answer.text()}`);
    return answer.json();
  };
  const anyKey = Buffer.from('/').toString('base64');
  const { header } = (await ask('range', { key: anyKey })) as { header: { revision: string } };
  await ask('compaction', { revision: header.revision, physical: true });
}

export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => {
    const address = server.address();
    if (typeof address !== 'object' || !address) throw new Error('A TCP server has no port');
    return address.port;
  });
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
}

interface Addresses extends Pick<RealControlPlane, 'url' | 'ca' | 'token'> {
  readonly etcdUrl: string;
}

/** Resolves when all running programs are ready. */
async function untilReady(
  { url, ca, token, etcdUrl }: Addresses,
  running: ReadonlyMap<ControlPlaneProgram, ChildProcess>,
): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  // kube-apiserver caches its readiness, and may not have noticed an outage of etcd.
  const questions = {
    etcd: () => etcdReadyz(etcdUrl),
    'kube-apiserver': () => readyz(url, ca, token),
  };
  for (const program of running.keys()) {
    for (;;) {
      for (const child of running.values()) child.requireRunning();
      const answer = await questions[program]();
      if (answer === 'ok') break;
      if (performance.now() >= deadline) {
        const logs = [...running.values()].map((child) => child.log).join('\n');
        throw new Error(`${program} is not ready after ${READY_TIMEOUT_MS} ms: ${answer}\n${logs}`);
      }
      await sleep(50);
    }
  }
}

async function etcdReadyz(etcdUrl: string): Promise<string> {
  try {
    const answer = await fetch(`${etcdUrl}/readyz`, { signal: AbortSignal.timeout(5000) });
    const body = await answer.text();
    return answer.ok ? 'ok' : body;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function readyz(url: string, ca: string, token: string): Promise<string> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}` };
    const request = get(`${url}/readyz`, { ca, headers, agent: false, timeout: 5000 }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      answer.once('close', () => resolve(body));
    });
    request.once('timeout', () => request.destroy(new Error('no answer within 5 s')));
    request.once('error', (error) => resolve(error.message));
  });
}
