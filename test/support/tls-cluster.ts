import { NAMESPACES } from '../../src/api/builtin.ts';
import { isApiError } from '../../src/api/api-error.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import type { Resource } from '../../src/api/resource.ts';
import type { Client } from '../../src/client/client.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import { systemClock } from '../../src/util/clock.ts';
import type { ControlPlane } from './control-plane.ts';
import { TestCluster } from './test-cluster.ts';

/** A namespace of a control plane, accessed over TLS in real time. */
export class TlsCluster extends TestCluster {
  readonly isVirtual = false;
  readonly client: Client;
  readonly namespace: string;
  protected readonly quietMs = 300;
  protected readonly clock = systemClock;
  protected readonly random = Math.random;

  protected readonly daemonClient: Client;

  private constructor({ client, config }: ControlPlane, namespace: string) {
    super();
    this.client = client;
    this.namespace = namespace;
    const connection = connectCluster(config, {
      userAgent: 'daemon',
      wrapTransport: (handler) => this.wire.around(handler),
    });
    this.daemonClient = this.wire.follow(connection.client);
    this.onEnd(() => connection.close());
  }

  /** Creates a test cluster in a new namespace of a control plane, which may be shared. */
  static async create(plane: ControlPlane): Promise<TlsCluster> {
    const { client } = plane;
    const { metadata } = await client.create(NAMESPACES, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { generateName: 'story-' },
    });
    const cluster = new TlsCluster(plane, metadata.name);
    cluster.onEnd(() => client.delete(NAMESPACES, metadata));
    return cluster;
  }

  pass(ms: number): Promise<void> {
    return systemClock.sleep(ms);
  }

  elapsedMs(): number {
    return systemClock.monotonic();
  }

  /** Installs the CRD unless it exists, and waits until its resource is served. */
  override async installCrd(
    resource: Resource = COUNTS,
    ...children: readonly Resource[]
  ): Promise<void> {
    try {
      await super.installCrd(resource, ...children);
    } catch (error) {
      if (!isApiError(error, 'alreadyExists')) throw error;
    }
    await this.until('the resource is served', async () => {
      try {
        await this.client.list(resource, { namespace: this.namespace });
        return true;
      } catch (error) {
        if (isApiError(error, 'notFound')) return false;
        throw error;
      }
    });
  }
}
