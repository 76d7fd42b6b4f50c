import { randomBytes, randomUUID } from 'node:crypto';
import type { ApiServerMetrics } from '../metrics/api-server-metrics.ts';
import type { Clock } from '../util/clock.ts';
import { systemClock } from '../util/clock.ts';
import type { HttpHandler } from '../util/http.ts';
import type { Logger } from '../util/logger.ts';
import { silentLogger } from '../util/logger.ts';
import type { Certificate, CertificateAuthority } from '../util/x509.ts';
import { createCertificateAuthority, loadCertificateAuthority } from '../util/x509.ts';
import type { ApiUser } from './access.ts';
import { Access } from './access.ts';
import { Admission } from './admission/admission.ts';
import type { ExpressionWarning } from './admission/type-check.ts';
import { typeWarnings } from './admission/type-check.ts';
import type { WebhookFunction } from './admission/webhook-client.ts';
import { WebhookClient } from './admission/webhook-client.ts';
import { ADMIN, MASTERS } from './user.ts';
import { createBootstrapObjects } from './builtin/bootstrap.ts';
import { BUILTIN_KINDS } from './builtin/kinds.ts';
import type { Backend, Kubelets, WatchLimits, WriteObserver } from './call.ts';
import { CrdConverter } from './crd-conversion.ts';
import { CrdLifecycle, withCrdRules } from './crd-lifecycle.ts';
import type { AuditOptions } from './audit.ts';
import { Auditor } from './audit.ts';
import { ClientCertificates } from './client-certificates.ts';
import type { StoredObject } from './resource-definition.ts';
import { ConnectionReset, Faults } from './faults.ts';
import { listenHttps } from './https-listener.ts';
import { kubeconfigOf } from './kubeconfig.ts';
import { LineCache } from './line-cache.ts';
import { ObjectStore } from './object-store.ts';
import type { ObservedRole } from './observed-rbac.ts';
import { ObservedRbac } from './observed-rbac.ts';
import { OpenStreams } from './open-streams.ts';
import { StoreLog } from './store-log.ts';
import { insertNew, prepareNew } from './operations/write.ts';
import { Rbac } from './rbac.ts';
import { Registry } from './registry.ts';
import { RequestHandler } from './request-handler.ts';
import { RequestLog } from './request-log.ts';
import { ServiceAccountTokens } from './service-account-tokens.ts';
import type { ResourceDefinition } from './resource-definition.ts';
import type { KubernetesVersion } from './version.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const SERVER_OPTIONS: OptionNames<ApiServerOptions> = {
  clock: true,
  random: true,
  uid: true,
  log: true,
  authenticate: true,
  historySize: true,
  historyBytes: true,
  dataDir: true,
  kubernetesVersion: true,
  kinds: true,
  kubelets: true,
  users: true,
  webhooks: true,
  audit: true,
  metrics: true,
  serviceAccounts: true,
  storageProtection: true,
  token: true,
  authority: true,
  bookmarkIntervalMs: true,
  watchTimeoutMs: true,
  watchBufferLimit: true,
};

const LISTEN_OPTIONS: OptionNames<ListenOptions> = {
  port: true,
  host: true,
};

/** Options of `ApiServer`. */
export interface ApiServerOptions extends Partial<WatchLimits> {
  /** @default the system clock */
  readonly clock?: Clock;
  /**
   * Numbers in [0, 1), for generated names.
   * @default Math.random
   */
  readonly random?: () => number;
  /**
   * Source of uids.
   * @default random UUIDs
   */
  readonly uid?: () => string;
  /** @default no logs */
  readonly log?: Logger;
  /**
   * Whether requests through `handler` require authentication. Network requests always do.
   * @default false
   */
  readonly authenticate?: boolean;
  /**
   * Maximum number of changes of each resource that a watch can resume from.
   * @default 10_000
   */
  readonly historySize?: number;
  /**
   * Approximate memory for the changes of all resources, in bytes. Beyond it, old changes are dropped:
   * watches cannot resume from them, and lists and watches of slow clients that need them end.
   * @default 64 MiB
   */
  readonly historyBytes?: number;
  /**
   * Folder for the objects and their history, created if it does not exist. A new server with the same folder
   * continues with the objects, the resourceVersions and the watches, also after a crash. `close` releases it.
   * @default none: the objects are in memory only
   */
  readonly dataDir?: string | undefined;
  /**
   * Version of Kubernetes that `/version` shows. Nothing else depends on it.
   * @default '1.37'
   */
  readonly kubernetesVersion?: KubernetesVersion;
  /**
   * Served kinds in addition to those of CRDs.
   * @default the built-in kinds
   */
  readonly kinds?: readonly ResourceDefinition[];
  /**
   * Returns the kubelet of a node, which serves the logs of its Pods: `(node) => cluster.kubelet(node)`.
   * @default no kubelets; `kubectl logs` gets an error
   */
  readonly kubelets?: Kubelets;
  /**
   * Users in addition to the administrator, with their permissions. Roles and bindings grant further ones.
   * Other requests get 403.
   * @default none
   */
  readonly users?: readonly ApiUser[];
  /**
   * Functions that the server calls instead of webhooks, by the URL of the webhook. The URL of a Service is
   * `https://NAME.NAMESPACE.svc/PATH`.
   * @default none; webhooks are called over HTTPS
   */
  readonly webhooks?: Readonly<Record<string, WebhookFunction>>;
  /**
   * Policy of the audit events of requests, and their receiver.
   * @default no events
   */
  readonly audit?: AuditOptions | undefined;
  /**
   * Records metrics, which `/metrics` shows: `apiServerMetrics(registry)` of `crd-controller/metrics`.
   * @default none; `/metrics` does not exist
   */
  readonly metrics?: ApiServerMetrics | undefined;
  /**
   * Whether new Pods need an existing ServiceAccount, and get its token volume and image pull secrets, as by the
   * admission plugin ServiceAccount of kube-apiserver. Enable it only if cluster controllers create the
   * ServiceAccounts of namespaces.
   * @default false, as in envtest
   */
  readonly serviceAccounts?: boolean;
  /**
   * Whether new PersistentVolumeClaims and PersistentVolumes get the finalizer that keeps them while they are in use,
   * as by the admission plugin StorageObjectInUseProtection of kube-apiserver. Enable it
   * only if cluster controllers remove the finalizers; otherwise deleted objects remain, as with envtest.
   * @default false
   */
  readonly storageProtection?: boolean;
  /**
   * The administrator's bearer token.
   * @default a random token
   */
  readonly token?: string;
  /**
   * The authority that signs the certificates of listeners, from `createServerAuthority`. Clients that
   * trust it trust every server with the same authority.
   * @default a new authority with its key in memory
   */
  readonly authority?: Certificate;
}

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

/** Options of `ApiServer.listen`. */
export interface ListenOptions {
  /**
   * Port; 0 selects a free port.
   * @default 0
   */
  readonly port?: number;
  /**
   * Address to listen on; the certificate is valid for it and for localhost.
   * @default '127.0.0.1'
   */
  readonly host?: string;
}

/** An open network listener of the server. */
export interface Listening {
  /** `https://127.0.0.1:36443` */
  readonly url: string;
  readonly port: number;
  /** CA certificate that clients must trust. */
  readonly caPem: string;
  /** Bearer token for clients. */
  readonly token: string;
  /**
   * Returns a kubeconfig document for this server.
   *
   * @param client certificate of the administrator, in addition to the token
   */
  kubeconfig(client?: Certificate): object;
  /** Closes watches and connections and releases the port. Objects stay in the store. */
  close(): Promise<void>;
}

const INITIAL_NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

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
  readonly #requestHandler: RequestHandler;
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
    this.#observed = new ObservedRbac(access);
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
      createInitialNamespaces(backend);
      createBootstrapObjects(backend);
      rbac.restored();
    };
    this.#requestHandler = new RequestHandler({
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
    this.handler = (request) => this.#requestHandler.handle(request, authenticate);
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
    const listener = await listenHttps((request) => this.#requestHandler.handle(request, true), {
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

/** Creates the namespaces that every cluster has. */
function createInitialNamespaces(backend: Backend): void {
  const definition = backend.registry.find('', 'v1', 'namespaces');
  if (!definition) return;
  const namespaces = backend.store.collection(definition);
  for (const name of INITIAL_NAMESPACES) {
    if (namespaces.get(undefined, name)) continue;
    const prepared = prepareNew(
      {
        backend,
        definition,
        user: ADMIN,
        request: { method: 'POST', path: '', headers: { 'user-agent': 'kube-apiserver' } },
        info: {
          verb: 'create',
          group: '',
          version: 'v1',
          resource: 'namespaces',
          namespace: undefined,
          name: undefined,
          subresource: undefined,
          query: new URLSearchParams(),
        },
        representation: { form: 'object' },
        warnings: [],
        annotations: new Map(),
      },
      {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name, uid: '', resourceVersion: '', creationTimestamp: '' },
      },
    );
    insertNew(prepared);
  }
}
