import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import type { ValidatingWebhook } from '../../src/api/builtin.ts';
import {
  CONFIG_MAPS,
  CUSTOM_RESOURCE_DEFINITIONS,
  NAMESPACES,
  SECRETS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from '../../src/api/builtin.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import { systemClock } from '../../src/util/clock.ts';
import type { Runnable } from '../../src/util/runnable.ts';
import { createCertificateAuthority } from '../../src/util/x509.ts';
import { CaBundleKeeper } from '../../src/webhook/ca-bundle.ts';
import { ManagedCertificate } from '../../src/webhook/certificates.ts';
import { WebhookServer } from '../../src/webhook/webhook-server.ts';
import { Webhooks } from '../../src/webhook/webhooks.ts';
import { BOXES_V2 } from '../support/boxes.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { startControlPlane } from '../support/control-plane.ts';
import { recordingLogger } from '../support/recording-logger.ts';
import { needsReal } from '../support/skip.ts';
import { until } from '../support/until.ts';

/**
 * Two replicas of a webhook server behind a load balancer, called by a kube-apiserver under load, while their
 * certificates are renewed, replaced and lost. Certificates are valid for seconds instead of days.
 */

const NAMESPACE = 'webhook-certificates';
const AT = { namespace: NAMESPACE, name: 'certificates' };
const NAME = 'webhook-certificates';
const CRD = 'boxes.boxes.example.com';
const HOST = 'localhost';
const OPTIONS = {
  namespace: NAMESPACE,
  secretName: AT.name,
  dnsNames: [HOST],
  validityMs: 15_000,
  authorityValidityMs: 600_000,
  propagationMs: 2000,
};
/** Requests that wait for a response at the same time. */
const CONCURRENCY = 4;

describe('Certificates of a webhook under load', { skip: needsReal('a kube-apiserver') }, () => {
  let plane: ControlPlane;
  let balancer: Server;
  let url: string;
  let a: Replica;
  let b: Replica;
  const replicas: Replica[] = [];
  const failures: string[] = [];
  let admitted = 0;
  let probed = 0;
  const stopLoad = new AbortController();
  let load: Promise<unknown>;

  before(async () => {
    plane = await startControlPlane();
    const metadata = { name: NAMESPACE };
    await plane.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
    balancer = await balance(replicas);
    const { port } = balancer.address() as AddressInfo;
    url = `https://${HOST}:${port}`;
    await apply(['configmaps.example.com', 'others.example.com']);
    a = new Replica(plane);
    b = new Replica(plane);
    replicas.push(a, b);
    a.lead();
    await until('both replicas are ready', async () => (a.isReady && b.isReady) || undefined);
    await until('the webhook is called', () =>
      create().then(
        () => true,
        () => undefined,
      ),
    );
    load = Promise.all([...Array.from({ length: CONCURRENCY }, createForever), probeForever()]);
  });

  after(async () => {
    stopLoad.abort();
    await load;
    for (const replica of replicas.slice()) await replica.stop();
    balancer?.close();
    await plane?.close();
  });

  /** Applies the configuration as `kubectl apply --server-side` does. */
  async function apply(names: readonly string[]): Promise<void> {
    const [entry] = WEBHOOKS.entries().admission;
    const webhooks = names.map((name): ValidatingWebhook => ({
      name,
      clientConfig: { url: url + entry?.path },
      rules: [
        { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] },
      ],
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': NAMESPACE } },
      failurePolicy: 'Fail',
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
    }));
    const metadata = { name: NAME };
    await plane.client.patch(
      VALIDATING_WEBHOOK_CONFIGURATIONS,
      metadata,
      {
        type: 'apply',
        body: {
          apiVersion: 'admissionregistration.k8s.io/v1',
          kind: 'ValidatingWebhookConfiguration',
          metadata,
          webhooks,
        },
      },
      { fieldManager: 'kubectl' },
    );
  }

  /** Creates a ConfigMap as a dry run, which calls the webhook. */
  async function create(): Promise<void> {
    const metadata = { namespace: NAMESPACE, generateName: 'load-' };
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata };
    await plane.client.create(CONFIG_MAPS, object, { dryRun: true });
  }

  async function createForever(): Promise<void> {
    while (!stopLoad.signal.aborted) {
      try {
        await create();
        admitted++;
      } catch (error) {
        failures.push(`create: ${String(error)}`);
      }
      await systemClock.sleep(10);
    }
  }

  /** Opens connections with the CA bundle of the configuration, because API servers reuse theirs. */
  async function probeForever(): Promise<void> {
    while (!stopLoad.signal.aborted) {
      // A test deletes the configuration.
      const bundle = await caBundle().catch(() => '');
      for (const replica of replicas.filter(({ isReady }) => isReady)) {
        await replica.handshake(bundle).then(
          () => probed++,
          (error: unknown) => failures.push(`handshake: ${String(error)}`),
        );
      }
      await systemClock.sleep(20);
    }
  }

  async function caBundle(): Promise<string> {
    const at = { name: NAME };
    const { webhooks = [] } = await plane.client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, at);
    return Buffer.from(webhooks[0]?.clientConfig.caBundle ?? '', 'base64').toString();
  }

  /** Waits until all replicas serve another certificate, and requests were admitted with it. */
  async function renewed(isNext: (x509: X509Certificate) => boolean = () => true): Promise<void> {
    const before = new Set(replicas.map(({ fingerprint }) => fingerprint));
    await until('another certificate', async () => {
      const isNew = replicas.every(
        ({ x509, fingerprint }) => x509 && !before.has(fingerprint) && isNext(x509),
      );
      return isNew || undefined;
    });
    const enough = admitted + 50;
    await until('requests', async () => (admitted > enough ? true : undefined));
    assert.deepEqual(failures, []);
  }

  it('are renewed without a failed request', { timeout: 90_000 }, async () => {
    await renewed();
  });

  it('are stored again when the Secret is deleted, and replaced', { timeout: 90_000 }, async () => {
    const [old] = authoritiesIn(await caBundle());
    assert.ok(old);
    await plane.client.delete(SECRETS, AT);
    await renewed((x509) => !x509.verify(old.publicKey));
  });

  it('are served after their authority was replaced by hand', { timeout: 90_000 }, async () => {
    const authority = await createCertificateAuthority({ commonName: 'mine' });
    const pair = await authority.issue({ commonName: 'me', dnsNames: [HOST], usages: 'server' });
    const texts = {
      'ca.crt': authority.certificatePem,
      'ca.key': authority.privateKeyPem,
      'tls.crt': pair.certificatePem,
      'tls.key': pair.privateKeyPem,
    };
    const data = Object.fromEntries(
      Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
    );
    await plane.client.patch(SECRETS, AT, { type: 'merge', body: { data } });
    const { fingerprint256 } = new X509Certificate(pair.certificatePem);
    await renewed((x509) => x509.fingerprint256 === fingerprint256);
  });

  it('do not prevent the removal of a webhook by server-side apply', async () => {
    const before = await caBundle();
    await apply(['configmaps.example.com']);
    const at = { name: NAME };
    const { webhooks = [] } = await plane.client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, at);
    assert.equal(webhooks.length, 1);
    assert.equal(await caBundle(), before);
    assert.deepEqual(failures, []);
  });

  it('have their authority in a configuration that is deleted and created again', async () => {
    await plane.client.delete(VALIDATING_WEBHOOK_CONFIGURATIONS, { name: NAME });
    await apply(['configmaps.example.com']);
    await until('the CA bundle', async () => (await caBundle()) || undefined);
    // Requests before fail, and the API server observes the CA bundle a little later.
    await systemClock.sleep(500);
    failures.length = 0;
    const enough = admitted + 20;
    await until('requests', async () => (admitted > enough ? true : undefined));
    assert.deepEqual(failures, []);
  });

  it('have their authority in a conversion while the CRD has one', async () => {
    const at = { name: CRD };
    const conversion = {
      strategy: 'Webhook',
      webhook: { clientConfig: { url: `${url}/convert` }, conversionReviewVersions: ['v1'] },
    } as const;
    const set = (value: object) =>
      plane.client.patch(
        CUSTOM_RESOURCE_DEFINITIONS,
        at,
        { type: 'merge', body: { spec: { conversion: value } } },
        { fieldManager: 'kubectl' },
      );
    const stored = async () =>
      (await plane.client.get(CUSTOM_RESOURCE_DEFINITIONS, at)).spec.conversion;
    const written = () =>
      until('the CA bundle', async () => (await stored())?.webhook?.clientConfig?.caBundle);
    await plane.client.create(CUSTOM_RESOURCE_DEFINITIONS, BOXES_V2.definition);
    await set(conversion);
    const bundle = await written();
    const reports = a.reports();
    await set({ strategy: 'None', webhook: null });
    await until('the leader observed it', async () => a.reports() > reports || undefined);
    assert.deepEqual(await stored(), { strategy: 'None' });
    await set(conversion);
    assert.equal(await written(), bundle);
    assert.deepEqual(failures, []);
  });

  it(
    'are replaced by the remaining replica after the leader stopped',
    { timeout: 90_000 },
    async () => {
      replicas.splice(replicas.indexOf(a), 1);
      await systemClock.sleep(500);
      await a.stop();
      b.lead();
      const certificate = b.fingerprint;
      await plane.client.patch(SECRETS, AT, {
        type: 'merge',
        body: { data: { 'tls.crt': '', 'ca.key': '' } },
      });
      await renewed((x509) => x509.fingerprint256 !== certificate);
      assert.ok(probed > 100, `${probed} handshakes`);
      assert.deepEqual([a.errors(), b.errors()], [[], []]);
    },
  );
});

const WEBHOOKS = new Webhooks().validates(CONFIG_MAPS, () => [], { operations: ['CREATE'] });

/** One replica with a client of its own. */
class Replica {
  readonly certificate: ManagedCertificate;
  readonly #server: WebhookServer;
  readonly #connection: ReturnType<typeof connectCluster>;
  readonly #recording = recordingLogger([], 0);
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];
  x509: X509Certificate | undefined;
  port = 0;

  constructor({ config }: ControlPlane) {
    const { log } = this.#recording;
    this.#connection = connectCluster(config, { clock: systemClock, log, userAgent: 'replica' });
    const { client } = this.#connection;
    this.certificate = new ManagedCertificate({ client, log }, OPTIONS);
    const options = { bindAddress: '127.0.0.1:0', certificate: this.certificate };
    this.#server = new WebhookServer(WEBHOOKS, options, { log });
    this.#run(this.certificate);
    this.#run(this.#server);
    const watch = (signal: AbortSignal) =>
      this.certificate.watch(signal, ({ certificatePem }) => {
        this.x509 = new X509Certificate(certificatePem);
      });
    this.#run({ name: 'watch', run: watch });
    void this.#server.listening.then((address) => {
      this.port = Number(address.split(':').at(-1));
    });
  }

  get isReady(): boolean {
    const { readiness } = this.#server;
    return readiness.check() === undefined && this.certificate.readiness.check() === undefined;
  }

  get fingerprint(): string | undefined {
    return this.x509?.fingerprint256;
  }

  lead(): void {
    const { client } = this.#connection;
    const { certificate } = this;
    const deps = { client, certificate, log: this.#recording.log };
    const targets = {
      validatingWebhookConfigurations: [NAME],
      customResourceDefinitions: [CRD],
    };
    this.#run(new CaBundleKeeper(deps, targets));
  }

  /** Opens a TLS connection as a client that trusts `bundle`. */
  handshake(bundle: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port: this.port, servername: HOST, ca: bundle };
      const socket = connectTls(options, () => {
        socket.destroy();
        resolve();
      });
      socket.once('error', reject);
    });
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
    await this.#connection.close();
  }

  /** Number of log lines that the API server does not call the conversion webhook. */
  reports(): number {
    return this.#recording.lines.filter(
      ({ message, fields }) =>
        message.includes('does not call') && String(fields['object']).endsWith(CRD),
    ).length;
  }

  /** Messages of errors in the log. */
  errors(): string[] {
    return this.#recording.lines
      .filter(({ level }) => level === 'error')
      .map(({ message, error }) => `${message}: ${String(error)}`);
  }

  #run(runnable: Runnable): void {
    this.#running.push(runnable.run(this.#stop.signal));
  }
}

/** Starts a load balancer that passes each connection to the next replica that is ready, as a Service. */
async function balance(replicas: readonly Replica[]): Promise<Server> {
  let next = 0;
  const server = createServer((client) => {
    const ready = replicas.filter(({ isReady }) => isReady);
    const replica = ready[next++ % ready.length];
    if (!replica) {
      client.destroy();
      return;
    }
    const upstream = connect(replica.port, '127.0.0.1');
    client.pipe(upstream).pipe(client);
    client.on('error', () => upstream.destroy());
    upstream.on('error', () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  return server;
}

function authoritiesIn(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN[^-]*-----[^-]*-----END[^-]*-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}
