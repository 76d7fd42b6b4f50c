import type { Client } from '../client/client.ts';
import { HttpClient } from '../client/http-client.ts';
import type { HealthCheck } from '../serving/health-checks.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';
import type { Runnable } from '../util/runnable.ts';
import { CaBundleKeeper } from '../webhook/ca-bundle.ts';
import { ManagedCertificate } from '../webhook/certificates.ts';
import { needsServer } from '../webhook/install.ts';
import { caBundleTargets, webhookNames } from '../webhook/manifests.ts';
import type { WebhookNames } from '../webhook/manifests.ts';
import { WebhookServer } from '../webhook/webhook-server.ts';
import type { WebhookServerOptions } from '../webhook/webhook-server.ts';
import type { Webhooks } from '../webhook/webhooks.ts';
import type { ControllerKit } from './controller-kit.ts';

/** Options of the server of a program's webhooks. */
export interface WebhookServingOptions extends Omit<WebhookServerOptions, 'certificate'> {
  /**
   * Certificate of the server: `CertificateFiles` for one that another program manages.
   * @default a certificate of its own, in a Secret that the replicas share; the leader writes its authority to the CA bundles
   */
  readonly certificate?: WebhookServerOptions['certificate'] | undefined;
  /**
   * Namespace of the program, for the names of its Secret and Service.
   * @default that of the kubeconfig or Pod
   */
  readonly namespace?: string | undefined;
  /**
   * Client for the Secret, which also a standby writes: its writes must not be fenced by leader election.
   * @default the client of the program
   */
  readonly client?: Client | undefined;
}

const OPTIONS: OptionNames<WebhookServingOptions> = {
  bindAddress: true,
  certificate: true,
  minVersion: true,
  ciphers: true,
  clientCa: true,
  maxConnections: true,
  namespace: true,
  client: true,
};

/** The server of a program's webhooks, and what it needs. */
export interface WebhookServing {
  readonly server: WebhookServer;
  /** Checks for `/readyz`. */
  readonly readiness: readonly HealthCheck[];
  /** Run in each replica. */
  readonly servers: readonly Runnable[];
  /** Run in the leader. */
  readonly leader: readonly Runnable[];
}

/**
 * Returns the server of the declared webhooks; undefined if the API server needs none.
 *
 * @throws {RangeError} if name or namespace of the program is needed and unknown
 */
export function webhookServing(
  webhooks: Webhooks,
  options: WebhookServingOptions,
  { kit, name, client }: { kit: ControllerKit; name: string | undefined; client: Client },
): WebhookServing | undefined {
  checkOptions(options, OPTIONS, 'webhookServer');
  const entries = webhooks.entries();
  if (!needsServer(entries)) return undefined;
  const { namespace, client: secretClient = client, certificate, ...rest } = options;
  const { clock, random, tracing, metrics } = kit;
  const deps = { clock, random, log: kit.log.named('webhook') };
  const serve = (certificate: WebhookServerOptions['certificate']) =>
    new WebhookServer(
      webhooks,
      { ...rest, certificate },
      { ...deps, tracing, metrics: metrics?.webhook },
    );
  if (certificate) {
    const server = serve(certificate);
    return { server, readiness: [server.readiness], servers: [server], leader: [] };
  }
  const names = namesOf(name, namespace ?? namespaceOf(secretClient));
  const managed = new ManagedCertificate(
    { ...deps, client: secretClient },
    { namespace: names.namespace, secretName: names.secret, dnsNames: [names.dnsName] },
  );
  const server = serve(managed);
  const targets = caBundleTargets(entries, names);
  return {
    server,
    readiness: [server.readiness, managed.readiness],
    servers: [managed, server],
    leader: [
      {
        name: 'webhook-ca-bundle',
        // A replica can lead several times, and a keeper runs once.
        run: (signal) =>
          new CaBundleKeeper({ ...deps, client: kit.client, certificate: managed }, targets).run(
            signal,
          ),
      },
    ],
  };
}

function namesOf(name: string | undefined, namespace: string | undefined): WebhookNames {
  if (!name) {
    throw new RangeError(
      'webhooks need the name of the program for their Secret: set the option name',
    );
  }
  if (!namespace) {
    throw new RangeError(
      'webhooks need the namespace of the program for their Secret, and the kubeconfig has none: set webhookServer.namespace',
    );
  }
  return webhookNames(name, namespace);
}

function namespaceOf(client: Client): string | undefined {
  return client instanceof HttpClient ? client.namespace : undefined;
}
