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
    for (const { resource, body } of changes) {
      const options = { fieldManager: MANAGER };
      const patch = { type: 'apply', body, force: true } as const;
      await client.patch(resource, { name: nameOf(body) }, patch, options);
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
    const former =
      annotations[FORMER_CONVERSION] ?? JSON.stringify(present.spec.conversion ?? NO_CONVERSION);
    const isConverted = definition.spec?.conversion?.strategy === 'Webhook';
    const metadata = {
      ...definition.metadata,
      annotations: {
        ...definition.metadata.annotations,
        ...(isConverted && { [FORMER_CONVERSION]: former }),
      },
    };
    const line = `update ${title}: it exists, and stays with the schemas of deploy/crds`;
    return { resource, body: { ...definition, metadata }, line };
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
      const restored = await this.#restoreConversion(present);
      const isUsed = await hasObjects(client, present);
      if (isOwn(present) && !isUsed) await this.#remove(CUSTOM_RESOURCE_DEFINITIONS, present);
      else {
        const reason = isOwn(present) ? 'it has objects' : 'it existed before';
        print(`  ${titleOf(definition)} stays: ${[reason, ...restored].join('; ')}`);
      }
    }
  }

  /** Gives a CRD the conversion that it had before, because the program no longer serves that of the session. */
  async #restoreConversion(crd: CustomResourceDefinition): Promise<string[]> {
    const url = crd.spec.conversion?.webhook?.clientConfig?.url;
    const { endpoint, client } = this.#options;
    if (!endpoint || !url?.startsWith(`${endpoint.url}/`)) return [];
    const { [FORMER_CONVERSION]: former, ...annotations } = crd.metadata.annotations ?? {};
    const conversion: CustomResourceConversion = former ? JSON.parse(former) : NO_CONVERSION;
    await client.update(CUSTOM_RESOURCE_DEFINITIONS, {
      ...crd,
      metadata: { ...crd.metadata, annotations },
      spec: { ...crd.spec, conversion },
    });
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
