import { CUSTOM_RESOURCE_DEFINITIONS } from '../../src/api/builtin.ts';
import type { CustomResourceDefinition } from '../../src/api/builtin.ts';
import type { Draft } from '../../src/api/object.ts';
import type { Client } from '../../src/client/client.ts';
import { RestMapper } from '../../src/client/rest-mapper.ts';
import { untilAborted } from '../../src/util/abort.ts';
import { silentLogger } from '../../src/util/logger.ts';
import type { Logger } from '../../src/util/logger.ts';
import { createCertificateAuthority } from '../../src/util/x509.ts';
import { completeDefinition, webhookObjects } from '../../src/webhook/install.ts';
import { webhookNames } from '../../src/webhook/manifests.ts';
import { WebhookServer } from '../../src/webhook/webhook-server.ts';
import type { Webhooks } from '../../src/webhook/webhooks.ts';

const NAMES = webhookNames('served', 'default');

/** Declared webhooks, served over HTTPS on a loopback address. */
export class ServedWebhooks {
  readonly url: string;
  /** In base64. */
  readonly caBundle: string;
  readonly #webhooks: Webhooks;
  readonly #close: () => Promise<void>;

  private constructor(
    webhooks: Webhooks,
    url: string,
    caBundle: string,
    close: () => Promise<void>,
  ) {
    this.#webhooks = webhooks;
    this.url = url;
    this.caBundle = caBundle;
    this.#close = close;
  }

  static async start(webhooks: Webhooks, log: Logger = silentLogger): Promise<ServedWebhooks> {
    const commonName = 'webhooks';
    const authority = await createCertificateAuthority({ commonName });
    const ipAddresses = ['127.0.0.1'];
    const pair = await authority.issue({ commonName, ipAddresses, usages: 'server' });
    const certificate = { load: () => Promise.resolve(pair), watch: untilAborted };
    const options = { bindAddress: '127.0.0.1:0', certificate };
    const server = new WebhookServer(webhooks, options, { log });
    const stop = new AbortController();
    const running = server.run(stop.signal);
    const caBundle = Buffer.from(authority.certificatePem).toString('base64');
    return new ServedWebhooks(webhooks, `https://${await server.listening}`, caBundle, () => {
      stop.abort();
      return running;
    });
  }

  /** Creates the webhook configurations and the CRD, with URLs of this server instead of those of a Service. */
  async install(client: Client, crd: Draft<CustomResourceDefinition>): Promise<void> {
    const entries = this.#webhooks.entries();
    const mapper = new RestMapper(client);
    for (const object of webhookObjects(entries, NAMES)) {
      if (object.kind === 'Service') continue;
      await client.create(await mapper.get(object.apiVersion, object.kind), this.#atUrl(object));
    }
    const complete = completeDefinition(crd, entries, NAMES);
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, this.#atUrl(complete));
  }

  close(): Promise<void> {
    return this.#close();
  }

  #atUrl<T>(object: T): T {
    const { url, caBundle } = this;
    return JSON.parse(JSON.stringify(object), (name, value: { service: { path: string } }) =>
      name === 'clientConfig' ? { url: url + value.service.path, caBundle } : value,
    ) as T;
  }
}
