import { createPrivateKey, X509Certificate } from 'node:crypto';
import { SECRETS, VALIDATING_WEBHOOK_CONFIGURATIONS } from '../../../src/api/builtin.ts';
import type { Secret, ValidatingWebhook } from '../../../src/api/builtin.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import type { Clock } from '../../../src/util/clock.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import type { Certificate } from '../../../src/util/x509.ts';
import { CaBundleKeeper } from '../../../src/webhook/ca-bundle.ts';
import type { CaBundleTargets } from '../../../src/webhook/ca-bundle.ts';
import { ManagedCertificate } from '../../../src/webhook/certificates.ts';
import type { ManagedCertificateOptions } from '../../../src/webhook/certificates.ts';
import { LocalClock } from '../../support/local-clock.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

export const AT = { namespace: 'default', name: 'webhook-certificates' };
export const CONFIGURATION = 'checks';
export const CONFIGURATION_TYPE = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
};
const DNS_NAME = 'webhook.default.svc';

export const MINUTE_MS = 60_000;
export const OPTIONS: ManagedCertificateOptions = {
  namespace: AT.namespace,
  secretName: AT.name,
  dnsNames: [DNS_NAME],
  validityMs: 6 * MINUTE_MS,
  authorityValidityMs: 24 * MINUTE_MS,
  propagationMs: 10_000,
};

/** Time after which an API server has observed a change of a configuration. */
const API_SERVER_LAG_MS = 9000;

/** Replicas of a webhook server with a ValidatingWebhookConfiguration, in virtual time. */
export class CertificateReplicas {
  readonly clock = new FakeClock();
  /** The clock of replicas, whose wall clock may be faster. */
  readonly wall: Clock;
  readonly server = new ApiServer({ clock: this.clock });
  readonly client = this.clientOver(this.server.handler);
  readonly replicas: Replica[] = [];
  /** Moments at which an API server would not have accepted the certificate of a replica. */
  readonly rejections: string[] = [];
  /** CA bundles of the configuration, with the time from which they were set. */
  readonly #bundles: { readonly sinceMs: number; readonly pem: string }[] = [];
  readonly #stop = new AbortController();

  /** @param rate milliseconds of the wall clock in a millisecond */
  constructor(rate: number = 1) {
    const { clock } = this;
    const startMs = clock.now();
    this.wall = {
      now: () => startMs + rate * clock.monotonic(),
      monotonic: () => clock.monotonic(),
      after: (ms, callback) => clock.after(ms, callback),
      sleep: (ms, signal) => clock.sleep(ms, signal),
    };
  }

  clientOver(handler: HttpHandler, clock: Clock = this.clock): HttpClient {
    return new HttpClient({ handler, server: 'https://test', clock, requestTimeoutMs: 5000 });
  }

  /** Creates the configuration and records its CA bundles. */
  async configure(name: string = CONFIGURATION): Promise<void> {
    await this.client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, {
      ...CONFIGURATION_TYPE,
      metadata: { name },
      webhooks: [webhookOf('a'), webhookOf('b')],
    });
    if (name === CONFIGURATION) void this.#record();
  }

  async start(options: ReplicaOptions = {}): Promise<Replica> {
    const replica = new Replica(this, options);
    this.replicas.push(replica);
    await settle();
    return replica;
  }

  async secret(): Promise<Secret> {
    return this.client.get(SECRETS, AT);
  }

  /** Returns the decoded text of a key of the Secret. */
  async text(key: string): Promise<string> {
    const { data = {} } = await this.secret();
    return Buffer.from(data[key] ?? '', 'base64').toString();
  }

  async patchSecret(data: Readonly<Record<string, string | null>>): Promise<void> {
    await this.client.patch(SECRETS, AT, { type: 'merge', body: { data } });
    await settle();
  }

  /** Returns the distinct CA bundles of the configuration. */
  async bundles(name: string = CONFIGURATION): Promise<string[]> {
    const { webhooks = [] } = await this.client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, { name });
    return [...new Set(webhooks.map(({ clientConfig }) => decoded(clientConfig.caBundle)))];
  }

  /** Advances time and checks the certificates of all replicas in steps. */
  async pass(ms: number, stepMs: number = MINUTE_MS): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      await this.clock.advance(Math.min(stepMs, left));
      this.check('time passed');
    }
  }

  /** Records each replica whose certificate an API server would reject now. */
  check(moment: string): void {
    const nowMs = this.wall.now();
    const observedMs = this.clock.monotonic() - API_SERVER_LAG_MS;
    const current = this.#bundles.findLastIndex(({ sinceMs }) => sinceMs <= observedMs);
    for (const { sinceMs, pem } of this.#bundles.slice(Math.max(0, current))) {
      for (const { name, served, isTrusted } of this.replicas) {
        if (!served || !isTrusted || accepts(pem, served, nowMs)) continue;
        const at = `${this.clock.monotonic() / 1000} s`;
        this.rejections.push(`${name} at ${at}: ${moment}; bundle of ${sinceMs / 1000} s`);
      }
    }
  }

  async end(): Promise<void> {
    this.#stop.abort();
    for (const replica of this.replicas.slice()) await replica.stop();
  }

  async #record(): Promise<void> {
    const selection = { fieldSelector: `metadata.name=${CONFIGURATION}`, timeoutSeconds: 1e7 };
    const options = { ...selection, signal: this.#stop.signal };
    const stream = await this.client.watch(VALIDATING_WEBHOOK_CONFIGURATIONS, options);
    for await (const event of stream) {
      if (event.type !== 'added' && event.type !== 'modified') continue;
      const pem = decoded(event.object.webhooks?.[0]?.clientConfig.caBundle);
      if (pem === '' || pem === this.#bundles.at(-1)?.pem) continue;
      this.#bundles.push({ sinceMs: this.clock.monotonic(), pem });
      this.check('the bundle changed');
    }
  }
}

export interface ReplicaOptions {
  readonly name?: string;
  /** @default that of the replicas */
  readonly clock?: Clock;
  /** Offset of its wall clock, in milliseconds. */
  readonly offsetMs?: number;
  /** @default true */
  readonly leads?: boolean;
  readonly options?: Partial<ManagedCertificateOptions>;
  readonly targets?: CaBundleTargets;
  readonly handler?: HttpHandler;
}

/** One replica with a client of its own, which can lose its connection. */
export class Replica {
  readonly name: string;
  readonly certificate: ManagedCertificate;
  readonly lines = recordingLogger();
  /** `VERB resource` of its writes. */
  readonly writes: string[] = [];
  served: Certificate | undefined;
  isOnline = true;
  readonly #replicas: CertificateReplicas;
  readonly #client: HttpClient;
  readonly #clock: Clock;
  readonly #targets: CaBundleTargets;
  readonly #stop = new AbortController();
  readonly #running: Promise<unknown>;
  #keeper: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined;

  constructor(
    replicas: CertificateReplicas,
    { name, clock, offsetMs = 0, leads = true, options, targets, handler }: ReplicaOptions,
  ) {
    this.name = name ?? `replica ${replicas.replicas.length}`;
    this.#replicas = replicas;
    this.#clock = new LocalClock(clock ?? replicas.wall, { offsetMs });
    this.#targets = targets ?? { validatingWebhookConfigurations: [CONFIGURATION] };
    this.#client = replicas.clientOver(this.#around(handler ?? replicas.server.handler));
    const { log } = this.lines;
    const deps = { client: this.#client, clock: this.#clock, log, random: () => 0 };
    this.certificate = new ManagedCertificate(deps, { ...OPTIONS, ...options });
    const { signal } = this.#stop;
    const watching = this.certificate.watch(signal, (pair) => {
      this.served = pair;
      replicas.check('another certificate is served');
    });
    this.#running = Promise.all([this.certificate.run(signal), watching]);
    if (leads) this.lead();
  }

  /** The replica is ready, so that API servers call it. */
  get isTrusted(): boolean {
    return this.certificate.readiness.check() === undefined;
  }

  /** Starts the keeper, as a new leader does. */
  lead(): void {
    const stop = new AbortController();
    const deps = {
      client: this.#client,
      clock: this.#clock,
      log: this.lines.log,
      random: () => 0,
      certificate: this.certificate,
    };
    const keeper = new CaBundleKeeper(deps, this.#targets);
    this.#keeper = { stop, ended: keeper.run(stop.signal) };
  }

  /** Stops the keeper, as a lost lease does. */
  async resign(): Promise<void> {
    this.#keeper?.stop.abort();
    await this.#keeper?.ended;
    this.#keeper = undefined;
  }

  get leads(): boolean {
    return this.#keeper !== undefined;
  }

  async stop(): Promise<void> {
    const { replicas } = this.#replicas;
    const at = replicas.indexOf(this);
    if (at >= 0) replicas.splice(at, 1);
    this.#stop.abort();
    await this.resign();
    await this.#running;
  }

  /** Messages of errors in the log. */
  errors(): string[] {
    return this.lines.lines
      .filter(({ level }) => level === 'error')
      .map(({ message, error }) => `${message}: ${error instanceof Error ? error.message : ''}`);
  }

  #around(handler: HttpHandler): HttpHandler {
    const requireOnline = () => {
      if (!this.isOnline) throw new Error('connection refused');
    };
    return async (request) => {
      requireOnline();
      if (request.method !== 'GET') {
        this.writes.push(
          `${request.method} ${
            request.path
              .split('/')
              .at(request.method === 'POST' ? -1 : -2)
              ?.split('?')[0]
          }`,
        );
      }
      const response = await handler(request);
      const body = async function* () {
        for await (const chunk of response.body) {
          requireOnline();
          yield chunk;
        }
      };
      return { ...response, body: body() };
    };
  }
}

/** Reports whether a client that trusts `bundle` accepts the certificate. */
export function accepts(
  bundle: string,
  { certificatePem, privateKeyPem }: Certificate,
  nowMs: number,
): boolean {
  const leaf = new X509Certificate(certificatePem);
  const isCurrent = (x509: X509Certificate) =>
    Date.parse(x509.validFrom) <= nowMs && nowMs <= Date.parse(x509.validTo);
  return (
    isCurrent(leaf) &&
    leaf.checkPrivateKey(createPrivateKey(privateKeyPem)) &&
    leaf.checkHost(DNS_NAME) !== undefined &&
    authoritiesIn(bundle).some(
      (one) => isCurrent(one) && leaf.checkIssued(one) && leaf.verify(one.publicKey),
    )
  );
}

export function authoritiesIn(pem: string): X509Certificate[] {
  return (pem.match(/-----BEGIN[^-]*-----[^-]*-----END[^-]*-----/g) ?? []).map(
    (block) => new X509Certificate(block),
  );
}

function decoded(base64: string = ''): string {
  return Buffer.from(base64, 'base64').toString();
}

/** Returns a webhook of the Service `webhook`. */
export function webhookOf(name: string): ValidatingWebhook {
  return {
    name: `${name}.example.com`,
    clientConfig: { service: { namespace: 'default', name: 'webhook', path: `/${name}` } },
    rules: [
      {
        apiGroups: ['example.com'],
        apiVersions: ['v1'],
        operations: ['CREATE'],
        resources: ['things'],
      },
    ],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
  };
}
