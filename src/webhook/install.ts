import { CUSTOM_RESOURCE_DEFINITIONS } from '../api/builtin.ts';
import type { CustomResourceDefinition } from '../api/builtin.ts';
import type { Draft, KubernetesObject } from '../api/object.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Client } from '../client/client.ts';
import { RestMapper } from '../client/rest-mapper.ts';
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

/**
 * Installs webhooks and rules on the server of a test, which calls the functions in this process. It creates the webhook
 * configurations and policies, and adds conversions and rules to the CRDs, which must exist.
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
  const mapper = new RestMapper(client);
  for (const object of webhookObjects(entries, names)) {
    if (object.kind === 'Service') continue;
    await client.create(await mapper.get(object.apiVersion, object.kind), object);
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
