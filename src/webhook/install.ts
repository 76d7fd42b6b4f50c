import {
  CUSTOM_RESOURCE_DEFINITIONS,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  VALIDATING_ADMISSION_POLICIES,
  VALIDATING_ADMISSION_POLICY_BINDINGS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from '../api/builtin.ts';
import type { CustomResourceDefinition } from '../api/builtin.ts';
import type { Draft, KubernetesObject } from '../api/object.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { Client } from '../client/client.ts';
import type { WebhookEntries } from './declaration.ts';
import type { Clock } from '../util/clock.ts';
import { conversionOf, webhookConfigurations, webhookNames, webhookService } from './manifests.ts';
import type { WebhookNames } from './manifests.ts';
import type { ReviewFunction } from './reviewer.ts';
import type { Webhooks } from './webhooks.ts';
import { admissionPolicies, withSchemaRules } from './policies.ts';

/** Returns whether a server is needed: rules in CEL need none. */
export function needsServer({ admission, conversions }: WebhookEntries): boolean {
  return admission.length > 0 || conversions.length > 0;
}

/**
 * Returns the objects that let an API server call the declared functions and evaluate the declared rules: the Service, the
 * webhook configurations, and the policies with their bindings. CRDs need `completeDefinition` in addition.
 */
export function webhookObjects(
  entries: WebhookEntries,
  names: WebhookNames,
): readonly Draft<KubernetesObject>[] {
  return [
    ...(needsServer(entries) ? [webhookService(names)] : []),
    ...webhookConfigurations(entries, names).filter((each) => each !== undefined),
    ...admissionPolicies(entries, names),
  ];
}

/** Returns a CRD with the conversion and the rules that are declared for its kind. */
export function completeDefinition(
  crd: Draft<CustomResourceDefinition>,
  entries: WebhookEntries,
  names: WebhookNames,
): Draft<CustomResourceDefinition> {
  const complete = withSchemaRules(crd, entries);
  const conversion = conversionOf(entries, crd.metadata.name ?? '', names);
  if (!conversion || !complete.spec) return complete;
  return { ...complete, spec: { ...complete.spec, conversion } };
}

/** A server that calls functions instead of webhooks: `ApiServer`. */
export interface WebhookRegistry {
  /** Adds functions by URL. */
  registerWebhooks(functions: Readonly<Record<string, ReviewFunction>>): void;
}

/** Options of {@link installWebhooks}. */
export interface InstallWebhooksOptions {
  /**
   * Clock of the timeouts; that of the server, if its time is virtual.
   * @default the machine's clock
   */
  readonly clock?: Clock | undefined;
  /**
   * The names in the manifests.
   * @default those of a program `webhooks` in the namespace `default`
   */
  readonly names?: WebhookNames | undefined;
}

const FIELD_MANAGER = 'install-webhooks';
/** Label of the configurations and policies that were installed. */
const LABEL = 'app.kubernetes.io/managed-by';

const CONFIGURATIONS: readonly Resource[] = [
  MUTATING_WEBHOOK_CONFIGURATIONS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
  VALIDATING_ADMISSION_POLICIES,
  VALIDATING_ADMISSION_POLICY_BINDINGS,
];

/**
 * Installs webhooks and rules on the server of a test, which calls the functions in this process. It applies the webhook
 * configurations and policies, and adds conversions and rules to the CRDs, which must exist. It deletes the configurations
 * and policies of an earlier call that are no longer declared, for a server that keeps its objects.
 *
 * @throws {ApiError} if the server rejects an object, such as a policy whose expressions do not compile
 *
 * @experimental
 */
export async function installWebhooks(
  server: WebhookRegistry,
  client: Client,
  webhooks: Pick<Webhooks, 'entries' | 'functions'>,
  options: InstallWebhooksOptions = {},
): Promise<void> {
  const { names = webhookNames('webhooks', 'default'), clock } = options;
  const entries = webhooks.entries();
  server.registerWebhooks(webhooks.functions(`https://${names.dnsName}`, { clock }));
  const objects = webhookObjects(entries, names);
  for (const resource of CONFIGURATIONS) {
    await applyAll(
      client,
      resource,
      objects.filter(({ kind }) => kind === resource.kind),
    );
  }
  const resources = [
    ...entries.conversions.map(({ hub }) => hub),
    ...entries.rules.filter(({ as }) => as === 'schema').map(({ resource }) => resource),
  ];
  for (const name of new Set(resources.map(groupResourceOf))) {
    const crd = await client.get(CUSTOM_RESOURCE_DEFINITIONS, { name });
    const { spec } = completeDefinition(crd, entries, names);
    await client.update(CUSTOM_RESOURCE_DEFINITIONS, { ...crd, ...(spec && { spec }) });
  }
}

/** Applies the objects of a kind, and deletes those of an earlier call. */
async function applyAll(
  client: Client,
  resource: Resource,
  objects: readonly Draft<KubernetesObject>[],
): Promise<void> {
  const wanted = new Set(objects.map(({ metadata }) => metadata.name));
  const { items } = await client.list(resource, { labelSelector: `${LABEL}=${FIELD_MANAGER}` });
  for (const { metadata } of items) {
    if (!wanted.has(metadata.name)) await client.delete(resource, metadata);
  }
  for (const object of objects) {
    const { name = '', labels } = object.metadata;
    const metadata = { ...object.metadata, labels: { ...labels, [LABEL]: FIELD_MANAGER } };
    const patch = { type: 'apply', body: { ...object, metadata }, force: true } as const;
    await client.patch(resource, { name }, patch, { fieldManager: FIELD_MANAGER });
  }
}
