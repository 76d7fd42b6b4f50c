import { isApiError } from '../api/api-error.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from '../api/builtin.ts';
import type { PolicyRule, WebhookClientConfig } from '../api/builtin.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { Client, JsonPatchOperation } from '../client/client.ts';
import { systemClock } from '../util/clock.ts';
import { silentLogger } from '../util/logger.ts';
import type { Logger } from '../util/logger.ts';
import { RateLimitedLog } from '../util/rate-limited-log.ts';
import { runAll } from '../util/runnable.ts';
import type { Runnable } from '../util/runnable.ts';
import type { CaBundle, ManagedCertificate, ManagedCertificateDeps } from './certificates.ts';
import { ObjectSync } from './object-sync.ts';
import { certificatesIn } from '../util/server-trust.ts';
import { includes } from './stored-certificates.ts';

/** Names of the objects with CA bundles. */
export interface CaBundleTargets {
  /** @default none */
  readonly mutatingWebhookConfigurations?: readonly string[];
  /** @default none */
  readonly validatingWebhookConfigurations?: readonly string[];
  /**
   * CustomResourceDefinitions whose conversion is a webhook.
   * @default none
   */
  readonly customResourceDefinitions?: readonly string[];
}

/** Dependencies of `CaBundleKeeper`. */
export interface CaBundleKeeperDeps extends Omit<ManagedCertificateDeps, 'client'> {
  readonly client: Pick<Client, 'list' | 'watch' | 'patch'>;
  readonly certificate: Pick<
    ManagedCertificate,
    'assertCurrent' | 'bundle' | 'confirm' | 'dnsNames' | 'onChange'
  >;
}

/** Name of the field manager of the CA bundles. */
const FIELD_MANAGER = 'webhook-ca-bundle';

/** Number of writes in a row after which the keeper reports that another writer reverts them. */
const SUSPICIOUS_WRITES = 5;

/**
 * Keeps `caBundle` of webhook configurations and of conversion webhooks equal to the bundle of a
 * `ManagedCertificate`. It watches only the named objects, which may be created later, and changes only webhooks whose
 * host is one of the certificate's DNS names.
 *
 * Run it in the leader, or in several replicas: a keeper reads the Secret before it removes an authority, because another
 * replica may have added a newer one.
 *
 * It writes a JSON patch, not a server-side apply: an apply would own the entries of the list `webhooks`, and another
 * manager could not remove its webhooks any more.
 */
export class CaBundleKeeper implements Runnable {
  readonly name = 'webhook-ca-bundle';
  readonly #deps: CaBundleKeeperDeps;
  readonly #targets: readonly CaBundleTarget[];

  constructor(deps: CaBundleKeeperDeps, targets: CaBundleTargets) {
    this.#deps = deps;
    this.#targets = OPTION_NAMES.flatMap((option) =>
      (targets[option] ?? []).map(
        (name) => new CaBundleTarget(deps, RESOURCES[option], name, () => this.#confirm()),
      ),
    );
  }

  async run(signal: AbortSignal): Promise<void> {
    const { certificate } = this.#deps;
    let pem = certificate.bundle?.pem;
    const remove = certificate.onChange(() => {
      if (certificate.bundle?.pem === pem) return;
      pem = certificate.bundle?.pem;
      this.#confirm();
      for (const target of this.#targets) target.bundleChanged();
    });
    try {
      this.#confirm();
      await runAll(
        this.#targets.map((target) => (signal: AbortSignal) => target.run(signal)),
        signal,
      );
    } finally {
      remove();
    }
  }

  /** Confirms the bundle when all objects have it. */
  #confirm(): void {
    const { bundle } = this.#deps.certificate;
    if (!bundle || !this.#targets.every(({ current }) => current === bundle.pem)) return;
    this.#deps.certificate.confirm(bundle);
  }
}

const RESOURCES: Readonly<Record<keyof CaBundleTargets, Resource>> = {
  mutatingWebhookConfigurations: MUTATING_WEBHOOK_CONFIGURATIONS,
  validatingWebhookConfigurations: VALIDATING_WEBHOOK_CONFIGURATIONS,
  customResourceDefinitions: CUSTOM_RESOURCE_DEFINITIONS,
};

const OPTION_NAMES = Object.keys(RESOURCES) as (keyof CaBundleTargets)[];

/** One object with CA bundles. */
class CaBundleTarget {
  /** The bundle that all webhooks of the object have; undefined until then. */
  current: string | undefined;
  /** Why the API server does not call the server because of the object. */
  #uncalled: string | undefined;
  readonly #deps: CaBundleKeeperDeps;
  readonly #resource: Resource;
  readonly #name: string;
  readonly #done: () => void;
  readonly #log: Logger;
  readonly #errors: RateLimitedLog;
  readonly #object: ObjectSync<KubernetesObject>;

  /** @param done called when `current` has changed */
  constructor(deps: CaBundleKeeperDeps, resource: Resource, name: string, done: () => void) {
    const { client, clock = systemClock, log = silentLogger, random = Math.random } = deps;
    this.#deps = deps;
    this.#resource = resource;
    this.#name = name;
    this.#done = done;
    this.#log = log.with({ object: `${resource.kind} ${name}` });
    this.#errors = new RateLimitedLog(clock);
    this.#object = new ObjectSync({ client, clock, log, random }, resource, { name });
  }

  /** Writes the bundle of the certificate, which has changed. */
  bundleChanged(): void {
    this.#object.resetBackoff();
    this.#object.changed();
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#object.run((signal) => this.#sync(signal), signal);
    } finally {
      this.#errors.flush();
    }
  }

  /** Writes the bundle if the object has another one. Returns the milliseconds until the next attempt. */
  async #sync(signal: AbortSignal): Promise<number> {
    const { certificate, client } = this.#deps;
    const { bundle, dnsNames } = certificate;
    if (!bundle) return Infinity;
    const object = this.#object.current;
    const own = object ? ownConfigs(object, dnsNames) : [];
    const outdated = own.filter(({ config }) => config.caBundle !== base64(bundle.pem));
    this.#logCalls(own);
    if (!object || outdated.length === 0) {
      this.#errors.end('write');
      if (this.current !== bundle.pem) {
        this.current = bundle.pem;
        this.#done();
      }
      return Infinity;
    }
    this.current = undefined;
    if (this.#object.holdMs > 0) return this.#object.holdMs;
    try {
      const options = { fieldManager: FIELD_MANAGER, signal };
      const at = { name: this.#name };
      const body = { type: 'json', body: bundlePatch(object, outdated, bundle) } as const;
      await this.#object.write(async () => {
        if (hasOtherAuthority(outdated, bundle)) await certificate.assertCurrent(signal);
        return client.patch(this.#resource, at, body, options);
      });
      this.#logWrite();
      return 0;
    } catch (error) {
      if (signal.aborted) return Infinity;
      if (!isApiError(error, 'conflict', 'notFound')) {
        this.#errors.report('write', '', () =>
          this.#log.error(error, 'Unable to update the CA bundle; retrying'),
        );
      }
      return this.#object.holdMs;
    }
  }

  #logCalls(own: readonly ClientConfigAt[]): void {
    const isMissing = this.#object.current === undefined;
    const problem = isMissing
      ? 'the object does not exist'
      : 'the object has no webhook with these host names';
    const reason = own.length > 0 ? undefined : problem;
    if (this.#uncalled === reason) return;
    this.#uncalled = reason;
    if (reason === undefined) return;
    const { dnsNames } = this.#deps.certificate;
    this.#log.info('The API server does not call the webhooks of this program', {
      reason,
      dnsNames,
    });
  }

  #logWrite(): void {
    const { writes } = this.#object;
    this.#log.info('Updated the CA bundle');
    if (writes % SUSPICIOUS_WRITES !== 0) return;
    this.#log.info('Another writer replaces the CA bundle; let only one of them write it', {
      writes,
      see: `kubectl get ${groupResourceOf(this.#resource)} ${this.#name} -o yaml --show-managed-fields`,
    });
  }
}

/** Returns the webhooks of the server. */
function ownConfigs(
  object: DeepReadonly<KubernetesObject>,
  dnsNames: readonly string[],
): readonly ClientConfigAt[] {
  return clientConfigs(object).filter(({ config }) => dnsNames.includes(hostOf(config)));
}

/** Whether the new bundle removes an authority. */
function hasOtherAuthority(
  outdated: readonly ClientConfigAt[],
  { authorities }: CaBundle,
): boolean {
  return outdated.some(({ config: { caBundle = '' } }) =>
    certificatesIn(Buffer.from(caBundle, 'base64').toString()).some(
      (one) => !includes(authorities, one),
    ),
  );
}

/** Returns the operations that set the bundle, for the version of `object` only. */
function bundlePatch(
  object: DeepReadonly<KubernetesObject>,
  outdated: readonly ClientConfigAt[],
  { pem }: CaBundle,
): JsonPatchOperation[] {
  const { resourceVersion } = object.metadata;
  return [
    // With another version, the server answers with a conflict.
    { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
    ...outdated.map(({ path }) => ({
      op: 'add' as const,
      path: `${path}/caBundle`,
      value: base64(pem),
    })),
  ];
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** An object with the fields that webhook configurations and CustomResourceDefinitions have. */
interface WithClientConfigs extends DeepReadonly<KubernetesObject> {
  readonly webhooks?: readonly { readonly clientConfig?: WebhookClientConfig }[];
  readonly spec?: {
    readonly conversion?: {
      readonly webhook?: { readonly clientConfig?: WebhookClientConfig };
    };
  };
}

interface ClientConfigAt {
  /** JSON pointer. */
  readonly path: string;
  readonly config: WebhookClientConfig;
}

function clientConfigs({ webhooks = [], spec }: WithClientConfigs): readonly ClientConfigAt[] {
  const conversion = spec?.conversion?.webhook?.clientConfig;
  return [
    ...webhooks.flatMap(({ clientConfig: config }, at) =>
      config ? [{ path: `/webhooks/${at}/clientConfig`, config }] : [],
    ),
    ...(conversion ? [{ path: '/spec/conversion/webhook/clientConfig', config: conversion }] : []),
  ];
}

/** Returns the host that API servers expect in the certificate. */
function hostOf({ service, url = '' }: WebhookClientConfig): string {
  if (service) return `${service.name}.${service.namespace}.svc`;
  return URL.parse(url)?.hostname ?? '';
}

/** Returns the rules for a ClusterRole: exactly the named objects. */
export function caBundleRules(targets: CaBundleTargets): readonly PolicyRule[] {
  return OPTION_NAMES.flatMap((option) => {
    const names = targets[option] ?? [];
    const { group, plural } = RESOURCES[option];
    if (names.length === 0) return [];
    return [
      {
        apiGroups: [group],
        resources: [plural],
        resourceNames: [...names],
        verbs: ['list', 'watch', 'patch'],
      },
    ];
  });
}
