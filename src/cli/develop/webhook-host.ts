import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { isLoopback } from '../../serving/bind-address.ts';

/**
 * Returns the host name or address by which the API server of a context reaches this machine: in the clusters of k3d, kind
 * and minikube the names or the network of these tools, else the address that routes to the server.
 */
export async function webhookHost(context: string, server: URL): Promise<string> {
  const { hostname } = server;
  if (isLoopback(hostname)) {
    if (context.startsWith('k3d-')) return 'host.k3d.internal';
    if (context.startsWith('kind-')) return dockerHost('kind');
    if (context !== 'minikube') return '127.0.0.1';
  }
  return context === 'minikube' ? 'host.minikube.internal' : ownAddress(hostname);
}

/** On Linux, containers reach this machine by the gateway of their network. Docker Desktop has a name for it. */
async function dockerHost(network: string): Promise<string> {
  if (process.platform !== 'linux') return 'host.docker.internal';
  const format = '{{range .IPAM.Config}}{{.Gateway}} {{end}}';
  const args = ['network', 'inspect', network, '--format', format];
  const { stdout } = await promisify(execFile)('docker', args);
  const gateway = stdout.split(/\s+/).find((address) => /^\d+(?:\.\d+){3}$/.test(address));
  return gateway ?? 'host.docker.internal';
}

/** Returns the address of this machine on the route to a host. Sends no packet. */
async function ownAddress(host: string): Promise<string> {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const socket = createSocket(bare.includes(':') ? 'udp6' : 'udp4');
  try {
    socket.connect(443, bare);
    await once(socket, 'connect');
    const { address, family } = socket.address();
    return family === 'IPv6' ? `[${address}]` : address;
  } finally {
    socket.close();
  }
}
