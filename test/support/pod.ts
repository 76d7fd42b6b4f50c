import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Program } from './program.ts';

/** Ways to create a mount namespace: as root, or with a user namespace. */
const WAYS = [['--mount'], ['--user', '--map-root-user', '--mount']];

/** Mounts the service account at its standard path over /var/run. The mount ends with the process. */
const SCRIPT = `
mount -t tmpfs tmpfs /var/run &&
mkdir -p /var/run/secrets/kubernetes.io/serviceaccount &&
mount --bind "$0" /var/run/secrets/kubernetes.io/serviceaccount &&
exec "$@"`;

/** Files of a service account, as kubelet mounts them into containers. */
export interface ServiceAccountFiles {
  readonly token: string;
  /** Certificate authority of the API server, in PEM. */
  readonly ca: string;
  readonly namespace: string;
}

/** Environment of a container in a Pod. */
export interface PodOptions {
  /** Folder with the files of its service account. */
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

/** Returns why this machine cannot run a process as in a Pod, or undefined. */
export function whyNoPodEnvironment(): string | undefined {
  return mountNamespaceFlags()
    ? undefined
    : 'this machine does not allow a mount namespace (unshare --mount)';
}

/**
 * Starts a program in the environment of a container in a Pod: the service account at its standard path, in
 * a separate mount namespace, and the address of the API server in environment variables. Inherits PATH.
 */
export function runInPod(
  command: readonly string[],
  { account, server, environment = {} }: PodOptions,
): Program {
  const way = mountNamespaceFlags();
  if (!way) throw new Error(whyNoPodEnvironment());
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

function mountNamespaceFlags(): readonly string[] | undefined {
  if (way === 'unknown') {
    way = WAYS.find((flags) => spawnSync('unshare', [...flags, 'true']).status === 0);
  }
  return way;
}
