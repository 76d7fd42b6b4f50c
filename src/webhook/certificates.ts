import type { X509Certificate } from 'node:crypto';
import { ApiError, isApiError } from '../api/api-error.ts';
import { SECRETS } from '../api/builtin.ts';
import type { PolicyRule, Secret } from '../api/builtin.ts';
import { equalJson } from '../api/equal.ts';
import type { DeepReadonly } from '../api/object.ts';
import { objectKey } from '../api/object-key.ts';
import { apiVersionOf } from '../api/resource.ts';
import { withoutValues } from '../client/apply/apply-result.ts';
import type { Client } from '../client/client.ts';
import type { HealthCheck } from '../serving/health-checks.ts';
import type { CertificateSource } from '../serving/serving-certificate.ts';
import { untilAborted } from '../util/abort.ts';
import { systemClock } from '../util/clock.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import { silentLogger } from '../util/logger.ts';
import type { Logger } from '../util/logger.ts';
import { RateLimitedLog } from '../util/rate-limited-log.ts';
import type { Runnable } from '../util/runnable.ts';
import { messageOf } from '../util/values.ts';
import { endOf, isSame, pemOf } from '../util/server-trust.ts';
import type { Certificate } from '../util/x509.ts';
import {
  fingerprintOf,
  includes,
  MANAGED,
  nextRenewalMs,
  parseCertificates,
  renewCertificates,
  withCertificates,
} from './stored-certificates.ts';
import type {
  CertificateContent,
  CertificateSecret,
  RenewalRules,
  ServingCertificate,
  StoredCertificates,
} from './stored-certificates.ts';
import { ObjectSync } from './object-sync.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/** Options of `ManagedCertificate`. */
export interface ManagedCertificateOptions {
  /** Namespace of the Secret. */
  readonly namespace: string;
  /** Name of the Secret, which all replicas share. */
  readonly secretName: string;
  /** Host names of the server: `webhook.system.svc` for the Service `webhook` in the namespace `system`. */
  readonly dnsNames: readonly string[];
  /**
   * Validity of serving certificates, in milliseconds. They are renewed at two thirds of it.
   * @default 90 days
   */
  readonly validityMs?: number | undefined;
  /**
   * Validity of the certificate authority, in milliseconds; at least four times `validityMs`.
   * @default 3650 days
   */
  readonly authorityValidityMs?: number | undefined;
  /**
   * Time between the update of the CA bundles and the first certificate of a new authority, in milliseconds. API
   * servers must observe the new bundles within this time.
   * @default 60_000
   */
  readonly propagationMs?: number | undefined;
}

/** Dependencies of `ManagedCertificate`. */
export interface ManagedCertificateDeps {
  /** Must also write on a standby, so its writes must not be fenced by leader election. */
  readonly client: Pick<Client, 'list' | 'watch' | 'create' | 'update'>;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
  /** @default silentLogger */
  readonly log?: Logger | undefined;
  /**
   * Returns numbers in [0, 1), for jitter.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
}

/** The authorities that clients of the server must trust. */
export interface CaBundle {
  /** PEM certificates, one after the other. */
  readonly pem: string;
  readonly authorities: readonly X509Certificate[];
}

/**
 * Serving certificate of a webhook server, signed by a certificate authority of its own. Both are in one Secret, which
 * all replicas read and renew; run it in each of them. It watches only this Secret.
 *
 * - A serving certificate is renewed at two thirds of its validity.
 * - A new authority is first added to `bundle`. A certificate of it is served when `confirm` reported that the CA bundles
 *   contain it, and `propagationMs` have passed. The old one stays in the bundle until its last certificate expires.
 * - A Secret that was deleted or has no valid content is written again, with the certificate that is being served and
 *   a new authority, which replaces the old one in the same way.
 * - A Secret of another program is not overwritten; that is an error in the log and in the readiness check.
 *
 * Clocks of replicas and API servers may differ by up to an hour.
 */
export class ManagedCertificate implements CertificateSource, Runnable {
  readonly name = 'webhook-certificate';
  readonly dnsNames: readonly string[];
  readonly #client: ManagedCertificateDeps['client'];
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #at: { readonly namespace: string; readonly name: string };
  readonly #rules: RenewalRules;
  readonly #propagationMs: number;
  readonly #secret: ObjectSync<Secret>;
  readonly #errors: RateLimitedLog;
  readonly #first = new Deferred<Certificate>();
  readonly #listeners = new Set<() => void>();
  /** The last valid state of the Secret. */
  #last: CertificateSecret | undefined;
  /** `resourceVersion` of the Secret that `bundle` is of. */
  #version: string | undefined;
  #stored: StoredCertificates | undefined;
  #served: ServingCertificate | undefined;
  /** Fingerprints of authorities that `confirm` reported. */
  #confirmed: ReadonlySet<string> = new Set();
  /** When this replica observed that an authority is in the CA bundles, by `Clock.monotonic`. */
  #injectedMs: ReadonlyMap<string, number> = new Map();
  #problem: string | undefined = 'The Secret has not been read yet';

  /** @throws {RangeError} if there is no DNS name, or `authorityValidityMs` is too short */
  constructor(deps: ManagedCertificateDeps, options: ManagedCertificateOptions) {
    const { clock = systemClock, log = silentLogger, random = Math.random, client } = deps;
    const { namespace, secretName: name, dnsNames, propagationMs = 60_000 } = options;
    const { validityMs = 90 * DAY_MS, authorityValidityMs = 3650 * DAY_MS } = options;
    if (dnsNames.length === 0) throw new RangeError('ManagedCertificate: dnsNames is empty');
    if (!(validityMs > 0 && authorityValidityMs >= 4 * validityMs)) {
      throw new RangeError(
        `ManagedCertificate: authorityValidityMs must be at least four times validityMs: got ${authorityValidityMs} and ${validityMs}`,
      );
    }
    this.dnsNames = dnsNames;
    this.#client = client;
    this.#clock = clock;
    this.#log = log.with({ secret: objectKey(namespace, name) });
    this.#at = { namespace, name };
    this.#rules = { clock, dnsNames, validityMs, authorityValidityMs };
    this.#propagationMs = propagationMs;
    this.#secret = new ObjectSync(
      { client, clock, log, random, stableMs: Math.min(10 * 60_000, validityMs / 6) },
      SECRETS,
      this.#at,
    );
    this.#errors = new RateLimitedLog(clock, { windowMs: 5 * 60_000 });
    // Prevents an unhandled rejection if no server awaits the certificate.
    this.#first.promise.catch(() => undefined);
  }

  /** The authorities to trust; undefined until there are any. `onChange` reports changes. */
  get bundle(): CaBundle | undefined {
    const { authorities } = this.#stored ?? { authorities: [] };
    const served = this.#served?.authority;
    const all = served && !includes(authorities, served) ? [...authorities, served] : authorities;
    return all.length === 0 ? undefined : { pem: pemOf(all), authorities: all };
  }

  /** Fails without a certificate, and while the CA bundles do not contain its authority. */
  get readiness(): HealthCheck {
    return {
      name: this.name,
      check: () => {
        if (!this.#served) return this.#problem;
        const fingerprint = fingerprintOf(this.#served.authority);
        return this.#injectedMs.has(fingerprint)
          ? undefined
          : 'The CA bundles of the webhook configurations do not contain the authority yet';
      },
    };
  }

  /** Calls `listener` after changes of `bundle` and of the served certificate. Returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Reports that all CA bundles contain the authorities of `bundle`. The Secret passes it to all replicas. */
  confirm({ authorities }: CaBundle): void {
    const confirmed = authorities.map(fingerprintOf);
    if (confirmed.every((one) => this.#confirmed.has(one))) return;
    this.#confirmed = new Set(confirmed);
    this.#secret.changed();
  }

  /**
   * Reads the Secret, because the watch may lag behind another replica.
   *
   * @throws {ApiError} of the kind `conflict` if `bundle` is not that of the Secret; it then changes soon
   */
  async assertCurrent(signal: AbortSignal): Promise<void> {
    const { namespace, name } = this.#at;
    const fieldSelector = `metadata.name=${name}`;
    const { items } = await this.#client.list(SECRETS, { namespace, fieldSelector, signal });
    const version = items[0]?.metadata.resourceVersion;
    if (version !== undefined && version === this.#version) return;
    this.#secret.relist();
    const message = `Secret ${objectKey(namespace, name)} has changed`;
    throw new ApiError({ kind: 'conflict', message });
  }

  /** Resolves to the certificate when there is one. Rejects if `run` ends first. */
  load(): Promise<Certificate> {
    return this.#served ? Promise.resolve(this.#served.pair) : this.#first.promise;
  }

  async watch(signal: AbortSignal, renew: (pair: Certificate) => void): Promise<void> {
    let current: Certificate | undefined;
    const update = () => {
      const pair = this.#served?.pair;
      if (pair && pair !== current) renew((current = pair));
    };
    update();
    const remove = this.onChange(update);
    await untilAborted(signal);
    remove();
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#secret.run((signal) => this.#sync(signal), signal);
    } finally {
      this.#errors.flush();
      if (!this.#served) {
        this.#first.reject(new Error('Stopped before there was a webhook certificate'));
      }
    }
  }

  /** Adopts the state of the Secret and renews it. Returns the milliseconds until something is due. */
  async #sync(signal: AbortSignal): Promise<number> {
    const secret = this.#secret.current;
    if (secret && !isManaged(secret)) return this.#refuse();
    this.#errors.end('refused');
    const nowMs = this.#clock.now();
    // All decisions are for one time: something that is due a little later must not be forgotten.
    const monotonicMs = this.#clock.monotonic();
    const served = this.#served && endOf(this.#served.x509) > nowMs ? this.#served : undefined;
    const found = parseCertificates(secret ?? EMPTY, nowMs, served);
    const isLost = !found.serving && !found.signing;
    if (secret && !isLost) this.#adopt(found, secret);
    const stored = isLost ? parseCertificates(this.#last ?? EMPTY, nowMs, served) : found;
    const renewed = await renewCertificates(stored, this.#rules, {
      served: served && this.#served,
      isTrusted: (authority) => this.#isTrusted(authority, monotonicMs),
      isLost,
    });
    const injected = new Set([...renewed.injected, ...this.#confirmed]);
    const wanted = withCertificates(secret ?? EMPTY, { ...renewed, injected });
    if (secret && isContent(secret, wanted)) {
      this.#errors.end('write');
      return this.#dueMs(renewed, nowMs, monotonicMs);
    }
    if (this.#secret.holdMs > 0) return this.#secret.holdMs;
    try {
      const written = await this.#secret.write(() => this.#write(wanted, secret, signal));
      this.#log.v(2).info('Stored webhook certificates', {
        authorities: renewed.authorities.length,
        validTo: renewed.serving?.x509.validTo,
      });
      this.#adopt(parseCertificates(written, nowMs, served), written);
      return 0;
    } catch (error) {
      if (!signal.aborted) this.#reportWrite(error, secret !== undefined);
      return this.#secret.holdMs;
    }
  }

  #write(
    { data, annotations }: CertificateContent,
    secret: DeepReadonly<Secret> | undefined,
    signal: AbortSignal,
  ): Promise<Secret> {
    const options = { fieldManager: this.name, signal };
    if (secret) {
      const current = structuredClone(secret) as Secret;
      const metadata = { ...current.metadata, annotations };
      return this.#client.update(SECRETS, { ...current, data, metadata }, options);
    }
    const metadata = { ...this.#at, annotations };
    const typed = { apiVersion: apiVersionOf(SECRETS), kind: SECRETS.kind };
    return this.#client.create(
      SECRETS,
      { ...typed, type: 'kubernetes.io/tls', data, metadata },
      options,
    );
  }

  /** Serves the stored certificate, if clients trust it or there is no other one. */
  #adopt(stored: StoredCertificates, secret: DeepReadonly<Secret>): void {
    const before = this.bundle?.pem;
    const nowMs = this.#clock.monotonic();
    const { serving, injected } = stored;
    this.#injectedMs = new Map(
      Array.from(injected, (one) => [one, this.#injectedMs.get(one) ?? nowMs]),
    );
    this.#stored = stored;
    this.#version = secret.metadata.resourceVersion;
    if (serving) this.#last = secret;
    const served = this.#served;
    const isValid = served && endOf(served.x509) > this.#clock.now();
    const isNew = serving && !(served && isSame(serving.x509, served.x509));
    const isTrusted =
      serving &&
      (!isValid ||
        isSame(serving.authority, served.authority) ||
        this.#isTrusted(serving.authority, nowMs));
    if (isNew && isTrusted) {
      this.#served = serving;
      const { validTo } = serving.x509;
      this.#log.info('Serving a new certificate', {
        validTo,
        fingerprint: fingerprintOf(serving.x509),
      });
      this.#first.resolve(serving.pair);
    }
    if ((isNew && isTrusted) || this.bundle?.pem !== before) {
      for (const listener of this.#listeners) listener();
    }
  }

  /** Whether the authority has been in the CA bundles for `propagationMs`. */
  #isTrusted(authority: X509Certificate, monotonicMs: number): boolean {
    const sinceMs = this.#injectedMs.get(fingerprintOf(authority));
    return sinceMs !== undefined && this.#waitMs(sinceMs, monotonicMs) <= 0;
  }

  /** Returns the time until API servers trust an authority that has been in the CA bundles since then. */
  #waitMs(sinceMs: number, monotonicMs: number): number {
    return sinceMs + this.#propagationMs - monotonicMs;
  }

  #dueMs(stored: StoredCertificates, nowMs: number, monotonicMs: number): number {
    const dueMs = nextRenewalMs(stored, this.#rules) - nowMs;
    const waits = Array.from(this.#injectedMs.values(), (sinceMs) =>
      this.#waitMs(sinceMs, monotonicMs),
    );
    const expiryMs = this.#served ? endOf(this.#served.x509) - nowMs : Infinity;
    return Math.min(...[dueMs, expiryMs, ...waits].filter((ms) => ms > 0));
  }

  #refuse(): number {
    this.#problem =
      'The Secret has content of another program. Choose another Secret for the webhook certificates, or delete this one';
    const error = new Error(this.#problem);
    this.#errors.report('refused', '', () =>
      this.#log.error(error, 'Unable to store webhook certificates'),
    );
    return Infinity;
  }

  #reportWrite(error: unknown, existed: boolean): void {
    if (
      isApiError(error, 'conflict', 'alreadyExists') ||
      (existed && isApiError(error, 'notFound'))
    ) {
      this.#log.v(2).info('The webhook certificates were changed meanwhile; reading them again');
      return;
    }
    const shown = isApiError(error) ? withoutValues(error) : error;
    this.#problem = `The Secret cannot be written: ${messageOf(shown)}`;
    this.#errors.report('write', '', () =>
      this.#log.error(shown, 'Unable to store webhook certificates; retrying'),
    );
  }
}

const EMPTY: CertificateSecret = { metadata: {} };

/** A Secret without data is free, such as one that a manifest creates. */
function isManaged({ data = {}, metadata: { annotations = {} } }: CertificateSecret): boolean {
  return MANAGED in annotations || Object.values(data).every((value) => value === '');
}

function isContent(secret: CertificateSecret, { data, annotations }: CertificateContent): boolean {
  return (
    equalJson(secret.data ?? {}, data) && equalJson(secret.metadata.annotations ?? {}, annotations)
  );
}

/** Returns the rules for a Role in the namespace of the Secret. `create` cannot be restricted to a name. */
export function certificateRules(secretName: string): readonly PolicyRule[] {
  const secrets = { apiGroups: [''], resources: ['secrets'] };
  return [
    { ...secrets, resourceNames: [secretName], verbs: ['list', 'watch', 'update'] },
    { ...secrets, verbs: ['create'] },
  ];
}
