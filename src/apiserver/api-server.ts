import type { WebhookFunction } from './objects/webhook-call.ts';
import { randomBytes, randomUUID } from 'node:crypto';
import type { Clock } from '../util/clock.ts';
import { systemClock } from '../util/clock.ts';
import type { HttpHandler } from '../util/http.ts';
import { silentLogger } from '../util/logger.ts';
import type { Certificate, CertificateAuthority } from '../util/x509.ts';
import { createCertificateAuthority, loadCertificateAuthority } from '../util/x509.ts';
import type { ApiServerOptions, Listening, ListenOptions } from './api-server-options.ts';
import { LISTEN_OPTIONS, SERVER_OPTIONS } from './api-server-options.ts';
import { Access } from './auth/access.ts';
import { Admission } from './admission/admission.ts';
import type { ExpressionWarning } from './admission/type-check.ts';
import { typeWarnings } from './admission/type-check.ts';
import { WebhookClient } from './http/webhook-client.ts';
import { ADMIN, MASTERS } from '../api/user.ts';
import { createBootstrapObjects } from './controllers/bootstrap.ts';
import { BUILTIN_KINDS } from './builtin/kinds.ts';
import type { Backend } from './operations/call.ts';
import { CrdConverter } from './crd/crd-conversion.ts';
import { CrdLifecycle, withCrdRules } from './controllers/crd-lifecycle.ts';
import { Auditor } from './audit/audit.ts';
import { ClientCertificates } from './auth/client-certificates.ts';
import type { StoredObject, WriteObserver } from './objects/resource-definition.ts';
import { ConnectionReset, Faults } from './http/faults.ts';
import { listenHttps } from './http/https-listener.ts';
import { kubeconfigOf } from './kubeconfig.ts';
import { WriteTurns } from './request/write-turns.ts';
import { LineCache } from './operations/line-cache.ts';
import { ObjectStore } from './storage/object-store.ts';
import type { ObservedRbac, ObservedRole } from './auth/observed-rbac.ts';
import { OpenStreams } from './http/open-streams.ts';
import { StoreLog } from './storage/store-log.ts';
import { Rbac } from './auth/rbac.ts';
import { Registry } from './objects/registry.ts';
import type { RequestHandler } from './http/request-handler.ts';
import { requestHandler } from './http/request-handler.ts';
import { RequestLog } from './audit/request-log.ts';
import { ServiceAccountTokens } from './auth/service-account-tokens.ts';
import { checkOptions } from '../util/check-options.ts';

const AUTHORITY = 'crd-controller-ca';

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
 */
export class ApiServer {
  /** Handles requests of clients in this process. Rejects where a connection would break. */
  readonly handler: HttpHandler;
  /** Fault injection. */
  readonly faults: Faults;
  /** Log of the requests. */
  readonly requests: RequestLog = new RequestLog();
  /** Bearer token of the administrator. */
  readonly token: string;
  readonly #store: ObjectStore;
  readonly #observed: ObservedRbac;
  readonly #storeLog: StoreLog | undefined;
  readonly #streams = new OpenStreams();
  readonly #registry = new Registry();
  readonly #handle: RequestHandler;
  readonly #clock: Clock;
  readonly #listeners = new Set<Listening>();
  readonly #webhooks: WebhookClient;
  readonly #certificates: ClientCertificates;
  #authority: Promise<CertificateAuthority> | undefined;

  constructor(options: ApiServerOptions = {}) {
    checkOptions(options, SERVER_OPTIONS, 'ApiServer');
    const {
      clock = systemClock,
      random = Math.random,
      uid = randomUUID,
      log = silentLogger,
      authenticate = false,
      historySize = 10_000,
      historyBytes = 64 * 1024 ** 2,
      dataDir,
      kubernetesVersion = '1.37',
      kinds = BUILTIN_KINDS,
      kubelets = () => undefined,
      users = [],
      webhooks = {},
      audit,
      serviceAccounts = false,
      storageProtection = false,
      metrics,
      bookmarkIntervalMs = 60_000,
      watchTimeoutMs = 1_800_000,
      watchBufferLimit = 10_000,
      token = randomBytes(32).toString('hex'),
      authority,
    } = options;
    this.#clock = clock;
    this.#certificates = new ClientCertificates(() => clock.now());
    this.token = token;
    if (authority) {
      const loaded = loadCertificateAuthority(authority, { commonName: AUTHORITY, clock });
      this.#authority = Promise.resolve(loaded);
    }
    const storeLog =
      dataDir === undefined
        ? undefined
        : new StoreLog(dataDir, { clock, log: log.named('apiserver') });
    this.#storeLog = storeLog;
    this.#store = new ObjectStore({ historySize, historyBytes, log: storeLog });
    const dropWatches = () => this.#streams.cutAll(new ConnectionReset());
    this.faults = new Faults({
      clock,
      dropWatches,
      expireHistory: () => this.#store.compact(),
      snapshot: () => this.#store.snapshot(),
      restore: (snapshot) => {
        dropWatches();
        this.#store.restore(snapshot ?? { revision: 1, objects: new Map() });
        crds.restored();
        if (snapshot) rbac.restored();
        else createMissingObjects();
      },
    });
    const registry = this.#registry;
    this.#webhooks = new WebhookClient({ store: this.#store, clock, functions: webhooks });
    const rbac = new Rbac(this.#store);
    const now = () => clock.now();
    const tokens = new ServiceAccountTokens(this.#store, now, authority?.privateKeyPem);
    for (const kind of kinds) registry.add(withCrdRules(kind, () => clock.now()));
    const access = new Access(this.token, users, rbac, tokens);
    this.#observed = access.observed;
    const converter = new CrdConverter(this.#webhooks, uid);
    metrics?.countObjects(() => this.#store.counts());
    const parts = {
      metrics,
      store: this.#store,
      registry,
      clock,
      uid,
      random,
      kubelets,
      access,
      tokens,
      lines: new LineCache(),
      converter,
      turns: new WriteTurns(),
      admission: new Admission({
        store: this.#store,
        registry,
        uid,
        clock,
        random,
        serviceAccounts,
        storageProtection,
        client: this.#webhooks,
        access,
        converter,
      }),
      limits: { bookmarkIntervalMs, watchTimeoutMs, watchBufferLimit },
    };
    const crds = new CrdLifecycle(parts);
    const observer: WriteObserver = {
      written: (definition, object) => {
        crds.written(definition, object);
        rbac.written(definition, object);
      },
      removed: (definition, object) => {
        crds.removed(definition, object);
        rbac.removed(definition, object);
      },
    };
    const backend: Backend = { ...parts, observer };
    // As in a kube-apiserver, each start creates the missing ones of the objects that every cluster has.
    const createMissingObjects = () => {
      createBootstrapObjects(backend);
      rbac.restored();
    };
    this.#handle = requestHandler({
      backend,
      faults: this.faults,
      requests: this.requests,
      observed: this.#observed,
      certificates: this.#certificates,
      streams: this.#streams,
      auditor: audit && new Auditor(audit, now, uid),
      log: log.named('apiserver'),
      kubernetesVersion,
    });
    this.handler = (request) => this.#handle(request, authenticate);
    try {
      if (this.#store.load()) crds.restored();
      createMissingObjects();
    } catch (error) {
      storeLog?.close();
      throw error;
    }
  }

  /** Revision of the last write. */
  get revision(): number {
    return this.#store.revision;
  }

  /** Number of objects of each resource that has any. */
  get counts(): readonly {
    readonly group: string;
    readonly resource: string;
    readonly number: number;
  }[] {
    return this.#store.counts();
  }

  /** Returns the stored objects of a resource, without a request. */
  objects(group: string, plural: string): readonly StoredObject[] {
    return this.#store.collection({ group, plural }).list();
  }

  /**
   * Checks the expressions of a ValidatingAdmissionPolicy with the types of the kinds that its rules name. Returns the warnings
   * for its `status.typeChecking`.
   */
  checkPolicyTypes({ spec }: { readonly spec?: object }): readonly ExpressionWarning[] {
    return typeWarnings({ ...spec }, this.#registry);
  }

  /** Number of open watches. */
  get watches(): number {
    return this.#streams.size;
  }

  /**
   * Returns the smallest ClusterRole that permits all requests of a user so far, without names of objects and
   * without the permissions of all authenticated users.
   */
  observedRole(user: string): ObservedRole {
    return this.#observed.roleOf(user);
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
    checkOptions(options, LISTEN_OPTIONS, 'listen');
    const { port = 0, host = '127.0.0.1' } = options;
    const authority = await this.authority();
    this.#certificates.trust(authority.certificatePem);
    const named = /^[\d.]+$|:/.test(host) ? [] : [host];
    const certificate = await authority.issue({
      commonName: 'kube-apiserver',
      dnsNames: [...new Set(['localhost', 'kubernetes', 'kubernetes.default', ...named])],
      ipAddresses: [...new Set(['127.0.0.1', '::1', ...(named.length > 0 ? [] : [host])])],
      usages: 'server',
    });
    const listener = await listenHttps((request) => this.#handle(request, true), {
      host,
      port,
      ...certificate,
      authorityPem: authority.certificatePem,
    });
    const url = `https://${host.includes(':') ? `[${host}]` : host}:${listener.port}`;
    const { token } = this;
    const caPem = authority.certificatePem;
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
  async close(): Promise<void> {
    this.#streams.endAll();
    this.#webhooks.close();
    await Promise.all([...this.#listeners].map((listening) => listening.close()));
    this.#storeLog?.close();
  }
}
