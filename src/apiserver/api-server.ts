import { randomBytes } from 'node:crypto';
import type { Clock } from '../util/clock.ts';
import { systemClock } from '../util/clock.ts';
import { Es256Key } from '../util/es256-key.ts';
import { silentLogger } from '../util/logger.ts';
import type { Certificate, CertificateAuthority } from '../util/x509.ts';
import { createCertificateAuthority, loadCertificateAuthority } from '../util/x509.ts';
import { checkOptions } from '../util/check-options.ts';
import { ADMIN, MASTERS } from '../api/user.ts';
import type { ApiServerOptions, Listening, ListenOptions } from './api-server-options.ts';
import { SERVER_OPTIONS } from './api-server-options.ts';
import { ClientCertificates } from './auth/client-certificates.ts';
import { BUILTIN_KINDS } from './builtin/kinds.ts';
import { GZIP } from './http/compression.ts';
import type { IncomingHandler } from './http/https-listener.ts';
import { listenHttps } from './http/https-listener.ts';
import { kubeconfigOf } from './http/kubeconfig.ts';
import { WebhookClient } from './http/webhook-client.ts';
import type { WebhookFunction } from './objects/webhook-call.ts';
import { ServerCore } from './server-core.ts';
import { ObjectStore } from './storage/object-store.ts';
import { StoreLog } from './storage/store-log.ts';

const AUTHORITY = 'crd-controller-ca';

/**
 * Time between the two writes of one request, in milliseconds, as with etcd. A client of a Go operator sees the first state for
 * long enough to read it from its cache.
 */
const WRITE_MS = 5;

/** Creates a certificate authority for `ApiServerOptions.authority`. */
export function createServerAuthority(
  clock: Pick<Clock, 'now'> = systemClock,
): Promise<CertificateAuthority> {
  return createCertificateAuthority({ commonName: AUTHORITY, clock });
}

/**
 * Issues a certificate of the administrator. The key is RSA, because clients for Java need a further library for
 * EC keys.
 */
export function issueAdminCertificate(authority: Certificate): Promise<Certificate> {
  return loadCertificateAuthority(authority, { commonName: AUTHORITY }).issue({
    commonName: ADMIN.name,
    organizations: [MASTERS],
    usages: 'client',
    keyType: 'rsa',
  });
}

/** Issues a certificate for a listener on `host`, which is also valid for localhost. */
export function issueServingCertificate(
  authority: CertificateAuthority,
  host: string,
): Promise<Certificate> {
  const named = /^[\d.]+$|:/.test(host) ? [] : [host];
  return authority.issue({
    commonName: 'kube-apiserver',
    dnsNames: [...new Set(['localhost', 'kubernetes', 'kubernetes.default', ...named])],
    ipAddresses: [...new Set(['127.0.0.1', '::1', ...(named.length > 0 ? [] : [host])])],
    usages: 'server',
  });
}

/**
 * A Kubernetes API server in this process, without etcd, binaries or containers. kubectl and clients in
 * any language can use it.
 *
 *   listener ─┐
 *             ├► request handler ► operation ► object store ► watch history ► watchers
 *   handler ──┘   (user, verb)     (registry)   (revision)
 *
 * All state is in the memory of this object and outlives its listeners. With `dataDir`, it also outlives the
 * process.
 *
 * @example
 * ```ts
 * import { HttpClient } from 'crd-controller';
 * import { NAMESPACES } from 'crd-controller/kinds';
 * import { ApiServer } from 'crd-controller/testing';
 *
 * const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
 * const { status } = await client.get(NAMESPACES, { name: 'default' });
 * console.log(status?.phase); // prints: Active
 * ```
 */
export class ApiServer extends ServerCore {
  readonly #store: ObjectStore;
  readonly #clock: Clock;
  readonly #listeners = new Set<Listening>();
  readonly #webhooks: WebhookClient;
  #authority: Promise<CertificateAuthority> | undefined;

  constructor(options: ApiServerOptions = {}) {
    checkOptions(options, SERVER_OPTIONS, 'ApiServer');
    const {
      clock = systemClock,
      log = silentLogger,
      historySize = 10_000,
      historyBytes = 64 * 1024 ** 2,
      dataDir,
      kinds = BUILTIN_KINDS,
      webhooks: functions = {},
      authority,
      ...others
    } = options;
    const loaded =
      authority && loadCertificateAuthority(authority, { commonName: AUTHORITY, clock });
    const store = new ObjectStore({
      historySize,
      historyBytes,
      log:
        dataDir === undefined
          ? undefined
          : new StoreLog(dataDir, { clock, log: log.named('apiserver') }),
    });
    const webhooks = new WebhookClient({ store, clock, functions });
    // A server with the same authority accepts the tokens of its predecessor.
    const newTokenKey = () =>
      new Es256Key(authority?.privateKeyPem ?? randomBytes(32), 'service account tokens');
    const betweenWrites = clock === systemClock ? () => clock.sleep(WRITE_MS) : undefined;
    const platform = { store, webhooks, compression: GZIP, newTokenKey, betweenWrites };
    super({ ...others, clock, log, kinds }, platform);
    this.#clock = clock;
    this.#store = store;
    this.#webhooks = webhooks;
    this.#authority = loaded && Promise.resolve(loaded);
  }

  /**
   * Adds functions that the server calls instead of webhooks, as the option `webhooks`, or replaces them. For functions
   * that need a client of this server.
   */
  registerWebhooks(functions: Readonly<Record<string, WebhookFunction>>): void {
    this.#webhooks.register(functions);
  }

  /**
   * Returns the authority that signs the certificates of listeners. Clients can authenticate with certificates
   * of it.
   */
  authority(): Promise<CertificateAuthority> {
    this.#authority ??= createServerAuthority(this.#clock);
    return this.#authority;
  }

  /** Starts an HTTPS listener with a certificate of this server's authority. */
  async listen(options: ListenOptions = {}): Promise<Listening> {
    const { port = 0, host = '127.0.0.1', clientAuthoritiesPem = '' } = options;
    const authority = await this.authority();
    const authoritiesPem = authority.certificatePem + clientAuthoritiesPem;
    const certificates = new ClientCertificates(authoritiesPem, () => this.#clock.now());
    const certificate = options.certificate ?? (await issueServingCertificate(authority, host));
    const handler: IncomingHandler = (request, client) => {
      const certifiedUser = client && (() => certificates.userOf(client));
      return this.handle({ ...request, certifiedUser }, true);
    };
    const listener = await listenHttps(handler, {
      host,
      port,
      ...certificate,
      authoritiesPem,
    });
    const url = `https://${host.includes(':') ? `[${host}]` : host}:${listener.port}`;
    const { token } = this;
    const caPem = (options.certificate ?? authority).certificatePem;
    const listening: Listening = {
      url,
      port: listener.port,
      caPem,
      token,
      kubeconfig: (client) => kubeconfigOf({ url, caPem, token, client }),
      close: async () => {
        this.#listeners.delete(listening);
        await listener.close();
      },
    };
    this.#listeners.add(listening);
    return listening;
  }

  /**
   * Ends all watches and closes all listeners. Objects stay in the store. With `dataDir`, no write is possible
   * afterwards.
   */
  override async close(): Promise<void> {
    await super.close();
    this.#webhooks.close();
    await Promise.all([...this.#listeners].map((listening) => listening.close()));
    this.#store.close();
  }
}
