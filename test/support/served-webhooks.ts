import type { CustomResourceDefinition } from '../../src/api/builtin.ts';
import type { Draft, KubernetesObject } from '../../src/api/object.ts';
import { untilAborted } from '../../src/util/abort.ts';
import { createCertificateAuthority } from '../../src/util/x509.ts';
import { completeDefinition, webhookObjects } from '../../src/webhook/install.ts';
import { webhookNames } from '../../src/webhook/manifests.ts';
import type { ReviewerDeps } from '../../src/webhook/reviewer.ts';
import { WebhookServer } from '../../src/webhook/webhook-server.ts';
import type { Webhooks } from '../../src/webhook/webhooks.ts';

const NAMES = webhookNames('served', 'default');

/** Declared webhooks, served over HTTPS on a loopback address. */
export class ServedWebhooks {
  readonly #url: string;
  /** In base64. */
  readonly #caBundle: string;
  readonly #webhooks: Webhooks;
  readonly #close: () => Promise<void>;

  private constructor(
    webhooks: Webhooks,
    url: string,
    caBundle: string,
    close: () => Promise<void>,
  ) {
    this.#webhooks = webhooks;
    this.#url = url;
    this.#caBundle = caBundle;
    this.#close = close;
  }

  static async start(webhooks: Webhooks, deps: ReviewerDeps = {}): Promise<ServedWebhooks> {
    const commonName = 'webhooks';
    const authority = await createCertificateAuthority({ commonName });
    const ipAddresses = ['127.0.0.1'];
    const pair = await authority.issue({ commonName, ipAddresses, usages: 'server' });
    const certificate = { load: () => Promise.resolve(pair), watch: untilAborted };
    const options = { bindAddress: '127.0.0.1:0', certificate };
    const server = new WebhookServer(webhooks, options, deps);
    const stop = new AbortController();
    const running = server.run(stop.signal);
    const caBundle = Buffer.from(authority.certificatePem).toString('base64');
    return new ServedWebhooks(webhooks, `https://${await server.listening}`, caBundle, () => {
      stop.abort();
      return running;
    });
  }

  /** Returns the CRDs and the webhook configurations, with URLs of this server instead of those of a Service. */
  objects(...crds: readonly Draft<CustomResourceDefinition>[]): readonly Draft<KubernetesObject>[] {
    const entries = this.#webhooks.entries();
    const objects = webhookObjects(entries, NAMES).filter(({ kind }) => kind !== 'Service');
    const complete = crds.map((crd) => completeDefinition(crd, entries, NAMES));
    return this.redirected([...complete, ...objects]);
  }

  /** Returns manifests with URLs of this server instead of those of a Service. */
  redirected(manifests: readonly Draft<KubernetesObject>[]): readonly Draft<KubernetesObject>[] {
    const atUrl = (name: string, value: { service: { path: string } }) =>
      name === 'clientConfig'
        ? { url: this.#url + value.service.path, caBundle: this.#caBundle }
        : value;
    return JSON.parse(JSON.stringify(manifests), atUrl) as Draft<KubernetesObject>[];
  }

  close(): Promise<void> {
    return this.#close();
  }
}
