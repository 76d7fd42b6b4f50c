import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Program } from './program.ts';

/** Of the ways to a mount namespace: for root, and for whoever may make a user namespace too. */
const WAYS = [['--mount'], ['--user', '--map-root-user', '--mount']];

/**
 * Puts what kubelet mounts where every client looks for it, and nothing else of this machine's
 * /var/run; what is mounted ends with the process.
 */
const SCRIPT = `
mount -t tmpfs tmpfs /var/run &&
mkdir -p /var/run/secrets/kubernetes.io/serviceaccount &&
mount --bind "$0" /var/run/secrets/kubernetes.io/serviceaccount &&
exec "$@"`;

/** A service account, as kubelet writes it into a folder for containers to see. */
export interface ServiceAccountFiles {
  readonly token: string;
  /** PEM of the authority of the API server. */
  readonly ca: string;
  readonly namespace: string;
}

/** What a container of a Pod is given, whoever it is. */
export interface PodOptions {
  /** Where the files of its service account are. */
  readonly account: string;
  /** URL of the API server. */
  readonly server: string;
  readonly environment?: Readonly<Record<string, string>>;
}

export function writeServiceAccount(
  folder: string,
  { token, ca, namespace }: ServiceAccountFiles,
): void {
  writeFileSync(join(folder, 'token'), token, { mode: 0o600 });
  writeFileSync(join(folder, 'ca.crt'), ca);
  writeFileSync(join(folder, 'namespace'), namespace);
}

/** Why this machine cannot run a process as in a Pod, if it cannot. */
export function whyNoPods(): string | undefined {
  return wayIn() ? undefined : 'this machine lets nobody make a mount namespace (unshare --mount)';
}

/**
 * Starts a program as one process that sees what a container of a Pod would see of its cluster: the
 * service account at its usual place, in a mount namespace of its own, and where the API server is,
 * in its environment. Of this machine it inherits the PATH.
 */
export function inPod(
  command: readonly string[],
  { account, server, environment = {} }: PodOptions,
): Program {
  const way = wayIn();
  if (!way) throw new Error(whyNoPods());
  const { hostname, port } = new URL(server);
  return new Program('unshare', [...way, 'sh', '-c', SCRIPT, account, ...command], {
    PATH: process.env['PATH'] ?? '',
    HOME: '/nonexistent',
    KUBERNETES_SERVICE_HOST: hostname,
    KUBERNETES_SERVICE_PORT: port,
    ...environment,
  });
}

let way: readonly string[] | undefined | 'unknown' = 'unknown';

function wayIn(): readonly string[] | undefined {
  if (way === 'unknown') {
    way = WAYS.find((flags) => spawnSync('unshare', [...flags, 'true']).status === 0);
  }
  return way;
}
