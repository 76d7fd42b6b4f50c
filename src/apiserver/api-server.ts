import { randomBytes, randomUUID } from 'node:crypto';
import type { Clock } from '../util/clock.ts';
import { systemClock } from '../util/clock.ts';
import type { HttpHandler } from '../util/http.ts';
import type { Logger } from '../util/logger.ts';
import { silentLogger } from '../util/logger.ts';
import type { Certificate, CertificateAuthority } from '../util/x509.ts';
import { createCertificateAuthority, loadCertificateAuthority } from '../util/x509.ts';
import type { ApiUser } from './access.ts';
import { Access } from './access.ts';
import { ADMIN } from './user.ts';
import { BUILTIN_KINDS } from './builtin/kinds.ts';
import type { Backend, Kubelets, WatchLimits } from './call.ts';
import { CrdLifecycle, withCrdRules } from './crd-lifecycle.ts';
import { ConnectionReset, Faults } from './faults.ts';
import { listenHttps } from './https-listener.ts';
import { kubeconfigOf } from './kubeconfig.ts';
import { LineCache } from './line-cache.ts';
import { ObjectStore } from './object-store.ts';
import { OpenStreams } from './open-streams.ts';
import { storeNew } from './operations/write.ts';
import { Registry } from './registry.ts';
import { RequestHandler } from './request-handler.ts';
import { RequestLog } from './request-log.ts';
import type { ResourceDefinition } from './resource-definition.ts';
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
  kinds: true,
  kubelets: true,
  users: true,
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
  /** @default the machine's clock */
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
  /** @default says nothing */
  readonly log?: Logger;
  /**
   * Whether requests through `handler` need the token; those that come over the network always do.
   * @default false
   */
  readonly authenticate?: boolean;
  /**
   * Changes of each resource that a watch can resume from.
   * @default 10_000
   */
  readonly historySize?: number;
  /**
   * Memory for the changes of all resources, in bytes, about. Beyond it, watches can resume from fewer
   * of them, and lists and watches whose clients read so slowly that they need more are ended.
   * @default 64 MiB
   */
  readonly historyBytes?: number;
  /**
   * Kinds that are served besides those that CRDs define.
   * @default the built-in ones
   */
  readonly kinds?: readonly ResourceDefinition[];
  /**
   * The way to a node's kubelet, which has the logs of its Pods: `(node) => cluster.kubelet(node)`.
   * @default there is none, and `kubectl logs` is told so
   */
  readonly kubelets?: Kubelets;
  /**
   * Who may enter besides the administrator, with which rights: what is not allowed is answered
   * with 403, as by a cluster with RBAC.
   * @default nobody
   */
  readonly users?: readonly ApiUser[];
  /**
   * The administrator's bearer token.
   * @default a random one
   */
  readonly token?: string;
  /**
   * The authority that signs the certificates of listeners, as `createServerAuthority` returned it:
   * clients that trust it trust the next server that is given the same one.
   * @default a new one, whose key is kept in memory
   */
  readonly authority?: Certificate;
}

const AUTHORITY = 'crd-controller-ca';

/** Creates an authority for `ApiServerOptions.authority`. */
export function createServerAuthority(
  clock: Pick<Clock, 'now'> = systemClock,
): Promise<CertificateAuthority> {
  return createCertificateAuthority({ commonName: AUTHORITY, clock });
}

/** Options of `ApiServer.listen`. */
export interface ListenOptions {
  /**
   * 0: any that is free.
   * @default 0
   */
  readonly port?: number;
  /**
   * Address to listen on; the certificate is valid for it and for localhost.
   * @default '127.0.0.1'
   */
  readonly host?: string;
}

/** The server's door to the network, as long as it is open. */
export interface Listening {
  /** `https://127.0.0.1:36443` */
  readonly url: string;
  readonly port: number;
  /** What clients shall trust. */
  readonly caPem: string;
  /** What clients shall send as bearer. */
  readonly token: string;
  /** A kubeconfig document for this server. */
  kubeconfig(): object;
  /** Drops watches and connections and gives the port back. What is stored stays. */
  close(): Promise<void>;
}

const INITIAL_NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

/**
 * A Kubernetes API server in this process, without etcd, binaries or containers: kubectl and
 * clients in any language can use it.
 *
 *   listener ─┐
 *             ├► request handler ► operation ► object store ► watch history ► watchers
 *   handler ──┘   (who, what)      (registry)   (revision)
 *
 * Everything is in memory and belongs to this object: closing a listener and opening another one
 * keeps it.
 */
export class ApiServer {
  /** The door for clients in this process. It rejects where a connection would break. */
  readonly handler: HttpHandler;
  /** What goes wrong, on order. */
  readonly faults: Faults;
  /** What was asked. */
  readonly requests: RequestLog = new RequestLog();
  /** The bearer token that is let in. */
  readonly token: string;
  readonly #store: ObjectStore;
  readonly #streams = new OpenStreams();
  readonly #requestHandler: RequestHandler;
  readonly #clock: Clock;
  readonly #listeners = new Set<Listening>();
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
      kinds = BUILTIN_KINDS,
      kubelets = () => undefined,
      users = [],
      bookmarkIntervalMs = 60_000,
      watchTimeoutMs = 1_800_000,
      watchBufferLimit = 10_000,
      token = randomBytes(32).toString('hex'),
      authority,
    } = options;
    this.#clock = clock;
    this.token = token;
    if (authority) {
      const loaded = loadCertificateAuthority(authority, { commonName: AUTHORITY, clock });
      this.#authority = Promise.resolve(loaded);
    }
    this.#store = new ObjectStore({ historySize, historyBytes });
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
        if (!snapshot) begin();
      },
    });
    const registry = new Registry();
    for (const kind of kinds) registry.add(withCrdRules(kind, () => clock.now()));
    const parts = {
      store: this.#store,
      registry,
      clock,
      uid,
      random,
      kubelets,
      access: new Access(this.token, users),
      lines: new LineCache(),
      limits: { bookmarkIntervalMs, watchTimeoutMs, watchBufferLimit },
    };
    const crds = new CrdLifecycle(parts);
    const backend: Backend = { ...parts, observer: crds };
    const begin = () => {
      createInitialNamespaces(backend);
      // What was before the first request is no history that a client could have seen.
      this.#store.compact();
    };
    this.#requestHandler = new RequestHandler({
      backend,
      faults: this.faults,
      requests: this.requests,
      streams: this.#streams,
      log: log.named('apiserver'),
    });
    this.handler = (request) => this.#requestHandler.handle(request, authenticate);
    begin();
  }

  /** Revision of the last write: stands still when nobody writes. */
  get revision(): number {
    return this.#store.revision;
  }

  /** Number of watches that are open. */
  get watches(): number {
    return this.#streams.size;
  }

  /** Opens a door to the network: HTTPS with a certificate of this server's own authority. */
  async listen(options: ListenOptions = {}): Promise<Listening> {
    checkOptions(options, LISTEN_OPTIONS, 'listen');
    const { port = 0, host = '127.0.0.1' } = options;
    this.#authority ??= createServerAuthority(this.#clock);
    const authority = await this.#authority;
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
    });
    const url = `https://${host.includes(':') ? `[${host}]` : host}:${listener.port}`;
    const { token } = this;
    const caPem = authority.certificatePem;
    const listening: Listening = {
      url,
      port: listener.port,
      caPem,
      token,
      kubeconfig: () => kubeconfigOf({ url, caPem, token }),
      close: async () => {
        this.#listeners.delete(listening);
        await listener.close();
      },
    };
    this.#listeners.add(listening);
    return listening;
  }

  /** Ends every watch and closes every listener. What is stored stays. */
  async close(): Promise<void> {
    this.#streams.endAll();
    await Promise.all([...this.#listeners].map((listening) => listening.close()));
  }
}

/** A cluster has these from its first moment. */
function createInitialNamespaces(backend: Backend): void {
  const definition = backend.registry.find('', 'v1', 'namespaces');
  if (!definition) return;
  for (const name of INITIAL_NAMESPACES) {
    storeNew(
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
      },
      {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name, uid: '', resourceVersion: '', creationTimestamp: '' },
      },
    );
  }
}
