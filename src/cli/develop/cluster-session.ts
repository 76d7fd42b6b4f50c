import {
  CUSTOM_RESOURCE_DEFINITIONS,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  VALIDATING_ADMISSION_POLICIES,
  VALIDATING_ADMISSION_POLICY_BINDINGS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from '../../api/builtin.ts';
import type {
  CustomResourceConversion,
  CustomResourceDefinition,
  WebhookClientConfig,
} from '../../api/builtin.ts';
import { isApiError } from '../../api/api-error.ts';
import type { Draft, KubernetesObject } from '../../api/object.ts';
import { objectPath } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import { isRecord } from '../../util/values.ts';
import type { WebhookEntries } from '../../webhook/declaration.ts';
import { completeDefinition, needsServer, webhookObjects } from '../../webhook/install.ts';
import { webhookNames } from '../../webhook/manifests.ts';

/** Field manager, and value of the label of objects that the session created. */
const MANAGER = 'npm-start';
const LABEL = 'app.kubernetes.io/managed-by';
/** Annotation with the conversion that a CRD had before the session. */
const FORMER_CONVERSION = `${MANAGER}/former-conversion`;

const WEBHOOK_KINDS: readonly Resource[] = [
  MUTATING_WEBHOOK_CONFIGURATIONS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
  VALIDATING_ADMISSION_POLICIES,
  VALIDATING_ADMISSION_POLICY_BINDINGS,
];

/** Those that call a server. */
const WEBHOOK_CONFIGURATIONS = WEBHOOK_KINDS.slice(0, 2);

/** Where an API server calls the webhooks. */
export interface WebhookEndpoint {
  /** `https://172.18.0.1:9443` */
  readonly url: string;
  /** Authority of the certificate, in PEM. */
  readonly authority: string;
}

/** Options of {@link ClusterSession}. */
export interface ClusterSessionOptions {
  readonly client: Client;
  /** Name of the program. */
  readonly program: string;
  readonly definitions: readonly Draft<CustomResourceDefinition>[];
  /** What the program declares; undefined if it has no webhooks. */
  readonly webhooks: WebhookEntries | undefined;
  /** @default none: the program declares nothing that a server calls */
  readonly endpoint: WebhookEndpoint | undefined;
  readonly print: (line: string) => void;
}

interface Change {
  readonly resource: Resource;
  readonly body: Draft<KubernetesObject>;
  readonly line: string;
  /** A merge patch before the apply, which removes no field of another manager. */
  readonly first?: object | undefined;
}

/** The objects that a program needs in a cluster while it runs on the machine of its author. */
export class ClusterSession {
  readonly #options: ClusterSessionOptions;
  readonly #definitions: readonly Draft<CustomResourceDefinition>[];
  readonly #others: readonly Draft<KubernetesObject>[];

  constructor(options: ClusterSessionOptions) {
    const { program, definitions, webhooks, endpoint } = options;
    this.#options = options;
    // Other names than those of an installation.
    const names = webhookNames(`${program}-${MANAGER}`, 'default');
    const reached = <T>(value: T): T => (endpoint ? withEndpoint(value, endpoint) : value);
    this.#definitions = webhooks
      ? definitions.map((crd) => reached(completeDefinition(crd, webhooks, names)))
      : definitions;
    this.#others = (webhooks ? webhookObjects(webhooks, names) : [])
      .filter(({ kind }) => WEBHOOK_KINDS.some((resource) => resource.kind === kind))
      .map(reached);
  }

  /** Whether an API server must reach the program. */
  static needsEndpoint(webhooks: WebhookEntries | undefined): boolean {
    return webhooks !== undefined && needsServer(webhooks);
  }

  /** Prints what it changes, and then changes it. An object of another owner is not changed, except a CRD. */
  async start(): Promise<void> {
    const { client, print } = this.#options;
    const changes: Change[] = [];
    for (const definition of this.#definitions) changes.push(await this.#changeOf(definition));
    for (const object of this.#others) {
      const resource = resourceOf(object);
      const present = await existing(client, resource, nameOf(object));
      if (!present || isOwn(present)) {
        const line = `${present ? 'keep' : 'create'} ${titleOf(object)}; removed at the end`;
        changes.push({ resource, body: labelled(object), line });
      } else print(`  leave ${titleOf(object)}: it has another owner`);
    }
    for (const { line } of changes) print(`  ${line}`);
    await this.#warnOfInstallation();
    for (const { resource, body, first } of changes) {
      const options = { fieldManager: MANAGER };
      const at = { name: nameOf(body) };
      if (first) await client.patch(resource, at, { type: 'merge', body: first }, options);
      const patch = { type: 'apply', body, force: true } as const;
      await client.patch(resource, at, patch, options);
    }
  }

  /** Prints which webhooks of an installation the API server calls, too. */
  async #warnOfInstallation(): Promise<void> {
    const { client, program, print } = this.#options;
    for (const { kind } of this.#others) {
      const resource = WEBHOOK_CONFIGURATIONS.find((each) => each.kind === kind);
      if (!resource || !(await existing(client, resource, program))) continue;
      print(
        `  ${kind} ${program} is that of the installation, and stays: without its Pods, requests fail. To delete it: kubectl delete ${kind.toLowerCase()} ${program}`,
      );
    }
  }

  async #changeOf(definition: Draft<CustomResourceDefinition>): Promise<Change> {
    const { client } = this.#options;
    const resource: Resource = CUSTOM_RESOURCE_DEFINITIONS;
    const title = titleOf(definition);
    const present = await existing(client, CUSTOM_RESOURCE_DEFINITIONS, nameOf(definition));
    if (!present || isOwn(present)) {
      const what = present ? 'update' : 'create';
      const line = `${what} ${title}; removed at the end, unless it has objects`;
      return { resource, body: labelled(definition), line };
    }
    const { annotations = {} } = present.metadata;
    const { conversion = NO_CONVERSION } = present.spec;
    const former = annotations[FORMER_CONVERSION] ?? JSON.stringify(conversion);
    const isConverted = definition.spec?.conversion?.strategy === 'Webhook';
    const added = isConverted ? { [FORMER_CONVERSION]: former } : {};
    const metadata = {
      ...definition.metadata,
      annotations: { ...definition.metadata.annotations, ...added },
    };
    // A Service, as an installation has it, would stay beside the URL.
    const first = isConverted &&
      conversion.webhook?.clientConfig?.service && {
        metadata: { annotations: added },
        spec: { conversion: { strategy: 'None', webhook: null } },
      };
    const line = `update ${title}: it exists, and stays with the schemas of deploy/crds`;
    return { resource, body: { ...definition, metadata }, line, first: first || undefined };
  }

  /** Removes what the session added, and prints what stays and why. */
  async end(): Promise<void> {
    const { client, print } = this.#options;
    for (const object of this.#others) {
      const resource = resourceOf(object);
      const present = await existing(client, resource, nameOf(object));
      if (present && isOwn(present)) await this.#remove(resource, present);
    }
    for (const definition of this.#definitions) {
      const name = nameOf(definition);
      const present = await existing(client, CUSTOM_RESOURCE_DEFINITIONS, name);
      if (!present) continue;
      // First, because a list can need the conversion, and the program no longer serves it.
      const restored = await this.#restore(present);
      const isUsed = await hasObjects(client, present);
      if (isOwn(present) && !isUsed) await this.#remove(CUSTOM_RESOURCE_DEFINITIONS, present);
      else {
        const reason = isOwn(present) ? 'it has objects' : 'it existed before';
        print(`  ${titleOf(definition)} stays: ${[reason, ...restored].join('; ')}`);
      }
    }
  }

  /**
   * Gives a CRD the conversion that it had before, because the program no longer serves that of the session, and leaves its
   * fields to other managers, whose next apply would be a conflict.
   */
  async #restore({ metadata }: CustomResourceDefinition): Promise<string[]> {
    const { endpoint, client } = this.#options;
    // Typed reads omit managedFields.
    const path = objectPath(CUSTOM_RESOURCE_DEFINITIONS, metadata);
    const crd = (await client.raw({ path })) as CustomResourceDefinition;
    const url = crd.spec.conversion?.webhook?.clientConfig?.url;
    const isReached = endpoint !== undefined && url?.startsWith(`${endpoint.url}/`) === true;
    const { [FORMER_CONVERSION]: former, ...annotations } = crd.metadata.annotations ?? {};
    const conversion: CustomResourceConversion = former ? JSON.parse(former) : NO_CONVERSION;
    const managedFields = crd.metadata.managedFields?.filter(({ manager }) => manager !== MANAGER);
    await client.update(CUSTOM_RESOURCE_DEFINITIONS, {
      ...crd,
      metadata: {
        ...crd.metadata,
        managedFields,
        ...(isReached && { annotations }),
      },
      ...(isReached && { spec: { ...crd.spec, conversion } }),
    });
    if (!isReached) return [];
    return [former ? 'it has its former conversion again' : 'it has no conversion'];
  }

  async #remove(resource: Resource, object: KubernetesObject): Promise<void> {
    const { client, print } = this.#options;
    await client.delete(resource, object.metadata, { uid: object.metadata.uid });
    print(`  removed ${resource.kind} ${object.metadata.name}`);
  }
}

const NO_CONVERSION: CustomResourceConversion = { strategy: 'None' };

function resourceOf({ kind }: Draft<KubernetesObject>): Resource {
  const resource = WEBHOOK_KINDS.find((each) => each.kind === kind);
  if (!resource) throw new Error(`a program declares no ${kind}`);
  return resource;
}

function nameOf({ metadata }: Draft<KubernetesObject>): string {
  return metadata.name ?? '';
}

function titleOf(object: Draft<KubernetesObject>): string {
  return `${object.kind} ${nameOf(object)}`;
}

function isOwn({ metadata }: KubernetesObject): boolean {
  return metadata.labels?.[LABEL] === MANAGER;
}

function labelled(object: Draft<KubernetesObject>): Draft<KubernetesObject> {
  const { metadata } = object;
  return { ...object, metadata: { ...metadata, labels: { ...metadata.labels, [LABEL]: MANAGER } } };
}

async function existing<T extends KubernetesObject>(
  client: Client,
  resource: Resource<T>,
  name: string,
): Promise<T | undefined> {
  try {
    return await client.get(resource, { name });
  } catch (error) {
    if (isApiError(error, 'notFound')) return undefined;
    throw error;
  }
}

/** True if it is not known, because no version is served. */
async function hasObjects(client: Client, { spec }: CustomResourceDefinition): Promise<boolean> {
  const served = spec.versions.filter((version) => version.served);
  const version = served.find(({ storage }) => storage) ?? served[0];
  if (!version) return true;
  const { group, names, scope } = spec;
  const { items } = await client.list(
    {
      group,
      version: version.name,
      plural: names.plural,
      kind: names.kind,
      namespaced: scope === 'Namespaced',
    },
    { limit: 1 },
  );
  return items.length > 0;
}

/** Replaces references to the Service of the program by URLs. */
function withEndpoint<T>(value: T, endpoint: WebhookEndpoint): T {
  const replace = (each: unknown): unknown => {
    if (Array.isArray(each)) return each.map(replace);
    if (!isRecord(each)) return each;
    return Object.fromEntries(
      Object.entries(each).map(([key, field]) =>
        key === 'clientConfig' && isRecord(field)
          ? [key, urlConfig(field, endpoint)]
          : [key, replace(field)],
      ),
    );
  };
  return replace(value) as T;
}

function urlConfig(
  { service }: WebhookClientConfig,
  { url, authority }: WebhookEndpoint,
): WebhookClientConfig {
  const caBundle = Buffer.from(authority).toString('base64');
  return { url: `${url}${service?.path ?? ''}`, caBundle };
}
