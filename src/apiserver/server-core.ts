import { systemClock } from '../util/clock.ts';
import { toHex } from '../util/bytes.ts';
import type { HttpHandler } from '../util/http.ts';
import type { User } from '../api/user.ts';
import { silentLogger } from '../util/logger.ts';
import type { ApiServerOptions } from './api-server-options.ts';
import { Access } from './auth/access.ts';
import { Admission } from './admission/admission.ts';
import type { ExpressionWarning } from './admission/type-check.ts';
import { typeWarnings } from './admission/type-check.ts';
import { createBootstrapObjects } from './controllers/bootstrap.ts';
import type { Backend } from './operations/call.ts';
import { CrdConverter } from './crd/crd-conversion.ts';
import { CrdLifecycle, withCrdRules } from './controllers/crd-lifecycle.ts';
import { Auditor } from './audit/audit.ts';
import type {
  ResourceDefinition,
  StoredObject,
  WriteObserver,
} from './objects/resource-definition.ts';
import { ConnectionReset, Faults } from './http/faults.ts';
import { WriteTurns } from './request/write-turns.ts';
import { LineCache } from './operations/line-cache.ts';
import type { ObjectStore } from './storage/object-store.ts';
import type { ObservedRbac, ObservedRole } from './auth/observed-rbac.ts';
import { OpenStreams } from './http/open-streams.ts';
import { Rbac } from './auth/rbac.ts';
import { Registry } from './objects/registry.ts';
import type { WebhookCaller } from './objects/webhook-call.ts';
import type { RequestHandler } from './http/request-handler.ts';
import { requestHandler } from './http/request-handler.ts';
import type { Compression } from './http/response.ts';
import { RequestLog } from './audit/request-log.ts';
import type { TokenKey } from './auth/service-account-tokens.ts';
import { ServiceAccountTokens } from './auth/service-account-tokens.ts';

/** Options of `ServerCore`: those of `ApiServer` without I/O. */
export interface CoreOptions extends Omit<
  ApiServerOptions,
  'authority' | 'dataDir' | 'historySize' | 'historyBytes' | 'kinds' | 'webhooks'
> {
  /** Served kinds in addition to those of CRDs. */
  readonly kinds: readonly ResourceDefinition[];
}

/** What the core of the server needs from its platform. */
export interface ServerPlatform {
  readonly store: ObjectStore;
  /** @default none: responses are not compressed */
  readonly compression?: Compression;
  readonly webhooks: WebhookCaller;
  /** Returns the key that signs the tokens of ServiceAccounts. Called when the first token is issued or validated. */
  readonly newTokenKey: () => TokenKey;
  /**
   * Resolves after about the time of a write to etcd, for requests that write twice.
   * @default the writes are one step
   */
  readonly betweenWrites?: (() => Promise<void>) | undefined;
}

/**
 * The API server without its listeners and without I/O. It runs on every platform that has the globals of the web.
 *
 *   request ─► filters ─► operation ─► object store ─► watch history ─► watchers
 *              (user, verb) (registry)   (revision)
 */
export class ServerCore {
  /** Handles requests of clients in this process. Rejects where a connection would break. */
  readonly handler: HttpHandler;
  /** Fault injection. */
  readonly faults: Faults;
  /** Log of the requests. */
  readonly requests: RequestLog = new RequestLog();
  /** Bearer token of the administrator. */
  readonly token: string;
  /** Handles requests of all clients. */
  protected readonly handle: RequestHandler;
  readonly #store: ObjectStore;
  readonly #observed: ObservedRbac;
  readonly #streams = new OpenStreams();
  readonly #registry = new Registry();

  constructor(options: CoreOptions, platform: ServerPlatform) {
    const {
      clock = systemClock,
      random = Math.random,
      uid = () => crypto.randomUUID(),
      log = silentLogger,
      authenticate = false,
      kubernetesVersion = '1.37',
      kinds,
      kubelets = () => undefined,
      users = [],
      audit,
      serviceAccounts = false,
      storageProtection = false,
      metrics,
      bookmarkIntervalMs = 60_000,
      watchTimeoutMs = 1_800_000,
      watchBufferLimit = 10_000,
      token = toHex(crypto.getRandomValues(new Uint8Array(32))),
    } = options;
    this.token = token;
    const { store, webhooks, compression, newTokenKey, betweenWrites } = platform;
    this.#store = store;
    const dropWatches = () => this.#streams.cutAll(new ConnectionReset());
    this.faults = new Faults({
      clock,
      dropWatches,
      expireHistory: () => this.#store.compact(),
      snapshot: () => this.#store.snapshot(),
      restore: (snapshot) => {
        dropWatches();
        const changed = this.#store.restore(snapshot ?? { revision: 1, objects: new Map() });
        if (crds.dependsOn(changed)) crds.restored();
        if (!snapshot) createMissingObjects();
        else if (rbac.dependsOn(changed)) rbac.restored();
      },
    });
    const registry = this.#registry;
    const rbac = new Rbac(this.#store);
    const now = () => clock.now();
    const tokens = new ServiceAccountTokens(this.#store, now, newTokenKey);
    for (const kind of kinds) registry.add(withCrdRules(kind, () => clock.now()));
    const access = new Access(this.token, users, rbac, tokens);
    this.#observed = access.observed;
    const converter = new CrdConverter(webhooks, uid);
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
      betweenWrites,
      admission: new Admission({
        store: this.#store,
        registry,
        uid,
        clock,
        random,
        serviceAccounts,
        storageProtection,
        client: webhooks,
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
    this.handle = requestHandler({
      backend,
      faults: this.faults,
      requests: this.requests,
      observed: this.#observed,
      streams: this.#streams,
      compression,
      auditor: audit && new Auditor(audit, now, uid),
      log: log.named('apiserver'),
      kubernetesVersion,
    });
    this.handler = (request) => this.handle(request, authenticate);
    try {
      if (this.#store.load()) crds.restored();
      createMissingObjects();
    } catch (error) {
      store.close();
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

  /** Returns a handler whose requests are those of a user, who needs no credentials. */
  handlerFor(user: User): HttpHandler {
    return (request) => this.handle({ ...request, certifiedUser: () => user }, true);
  }

  /**
   * Returns the smallest ClusterRole that permits all requests of a user so far, without names of objects and
   * without the permissions of all authenticated users.
   */
  observedRole(user: string): ObservedRole {
    return this.#observed.roleOf(user);
  }

  /** Ends all watches. Objects stay in the store. */
  close(): Promise<void> {
    this.#streams.endAll();
    return Promise.resolve();
  }
}
