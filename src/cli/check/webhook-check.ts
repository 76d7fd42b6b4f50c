import type { X509Certificate } from 'node:crypto';
import { isApiError } from '../../api/api-error.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  ENDPOINT_SLICES,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  SECRETS,
  SERVICES,
  VALIDATING_ADMISSION_POLICIES,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from '../../api/builtin.ts';
import type { ValidatingWebhook, WebhookClientConfig } from '../../api/builtin.ts';
import { equalJson } from '../../api/equal.ts';
import type { Draft, KubernetesObject } from '../../api/object.ts';
import { objectKey } from '../../api/object-key.ts';
import { groupResourceOf } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import type { WebhookEntries } from '../../webhook/declaration.ts';
import { needsServer } from '../../webhook/install.ts';
import {
  conversionOf,
  isBuiltin,
  NAMESPACE_LABEL,
  webhookConfigurations,
} from '../../webhook/manifests.ts';
import type { WebhookNames } from '../../webhook/manifests.ts';
import { admissionPolicies } from '../../webhook/policies.ts';
import { anchorOf, certificatesIn, endOf } from '../../util/server-trust.ts';
import { errorText } from '../common/errors.ts';
import { failed, ok, skipped, warning } from './check-result.ts';
import type { CheckResult } from './check-result.ts';

/** What `checkWebhooks` compares the cluster with. */
export interface WebhookPlan {
  readonly entries: WebhookEntries;
  readonly names: WebhookNames;
  /** Whether the program manages the certificate in its Secret. */
  readonly managesCertificate: boolean;
}

interface WebhookCheckDeps {
  readonly client: Pick<Client, 'get' | 'list'>;
  /** Returns the time of the server's clock, in milliseconds since the Unix epoch. */
  readonly now: () => number;
  /** How to install the manifests. */
  readonly install: string;
  readonly signal: AbortSignal;
}

/** Fields of a webhook that decide when it is called. */
const COMPARED = ['rules', 'failurePolicy', 'matchConditions'] as const;

/**
 * Checks what the API server needs to call the webhooks of the program: the Service with endpoints, webhook
 * configurations, conversions and policies as declared, and CA bundles that match the certificate. Warns of
 * webhooks that could prevent the start of the program or of the cluster.
 */
export async function checkWebhooks(
  deps: WebhookCheckDeps,
  plan: WebhookPlan,
): Promise<CheckResult[]> {
  const { entries, names } = plan;
  const served = needsServer(entries) ? await servingCertificate(deps, plan) : undefined;
  const [mutating, validating] = webhookConfigurations(entries, names);
  const results: Promise<CheckResult | readonly CheckResult[]>[] = [];
  if (needsServer(entries)) results.push(checkService(deps, names));
  const configurations = [
    [MUTATING_WEBHOOK_CONFIGURATIONS, mutating],
    [VALIDATING_WEBHOOK_CONFIGURATIONS, validating],
  ] as const;
  for (const [resource, wanted] of configurations) {
    if (wanted) results.push(checkConfiguration(deps, resource, wanted, names, served));
  }
  for (const { hub } of entries.conversions) {
    results.push(checkConversion(deps, groupResourceOf(hub), plan, served));
  }
  for (const { kind, metadata } of admissionPolicies(entries, names)) {
    if (kind === VALIDATING_ADMISSION_POLICIES.kind)
      results.push(checkPolicy(deps, metadata.name ?? ''));
  }
  return (await Promise.all(results)).flat();
}

/** Runs `check` on an object; an object that is missing or cannot be read is a result. */
async function onObject<T extends KubernetesObject>(
  { client, install, signal }: WebhookCheckDeps,
  name: string,
  resource: Resource<T>,
  at: { readonly namespace?: string; readonly name: string },
  check: (object: T) => CheckResult | readonly CheckResult[] | Promise<CheckResult>,
): Promise<CheckResult | readonly CheckResult[]> {
  try {
    return await check(await client.get(resource, at, { signal }));
  } catch (error) {
    signal.throwIfAborted();
    if (isApiError(error, 'notFound')) return failed(name, 'not installed', install);
    if (isApiError(error, 'forbidden')) return skipped(name, 'no permission to read it');
    return failed(name, errorText(error));
  }
}

function checkService(deps: WebhookCheckDeps, { namespace, service, program }: WebhookNames) {
  const name = `webhook Service ${objectKey(namespace, service)}`;
  return onObject(deps, name, SERVICES, { namespace, name: service }, async () => {
    const { items } = await deps.client.list(ENDPOINT_SLICES, {
      namespace,
      labelSelector: { matchLabels: { 'kubernetes.io/service-name': service } },
      signal: deps.signal,
    });
    const ready = items.flatMap(({ endpoints }) =>
      (endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false),
    );
    if (ready.length > 0) return ok(name, `${ready.length} ready endpoints`);
    return warning(
      name,
      'no ready endpoints: the failure policies of the webhooks apply',
      `Start the program, or see why it is not ready: kubectl -n ${namespace} get pods -l app.kubernetes.io/name=${program}`,
    );
  });
}

function checkConfiguration(
  deps: WebhookCheckDeps,
  resource: Resource<KubernetesObject & { webhooks?: ValidatingWebhook[] }>,
  wanted: Draft<KubernetesObject> & { readonly webhooks?: readonly ValidatingWebhook[] },
  names: WebhookNames,
  served: Served | undefined,
) {
  const check = `${resource.kind} ${names.configuration}`;
  return onObject(deps, check, resource, { name: names.configuration }, ({ webhooks = [] }) => {
    const risks = webhooks.flatMap((webhook) => {
      const risk = lockOut(webhook, names);
      return risk === undefined ? [] : [warning(`webhook ${webhook.name}`, ...risk)];
    });
    const { install } = deps;
    for (const expected of wanted.webhooks ?? []) {
      const { name } = expected;
      const present = webhooks.find((webhook) => webhook.name === name);
      if (!present) return [failed(check, `does not have ${name}`, install), ...risks];
      const differing = COMPARED.find((field) => !equalJson(present[field], expected[field]));
      if (differing !== undefined) {
        const detail = `${differing} of ${name} is not that of this release`;
        return [warning(check, detail, install), ...risks];
      }
      const problem = bundleProblem(present.clientConfig, served, deps.now());
      if (problem) return [problem(check, name), ...risks];
    }
    return [ok(check, 'has the webhooks of this release'), ...risks];
  });
}

function checkConversion(
  deps: WebhookCheckDeps,
  name: string,
  { entries, names }: WebhookPlan,
  served: Served | undefined,
) {
  const check = `conversion of ${name}`;
  return onObject(deps, check, CUSTOM_RESOURCE_DEFINITIONS, { name }, ({ spec }) => {
    const wanted = conversionOf(entries, name, names)?.webhook?.clientConfig?.service;
    const { webhook } = spec.conversion ?? {};
    if (!equalJson(webhook?.clientConfig?.service, wanted)) {
      const detail = webhook ? 'is done by another webhook' : 'has no webhook';
      return failed(check, `${detail}: other versions of stored objects are wrong`, deps.install);
    }
    const problem = bundleProblem(webhook?.clientConfig ?? {}, served, deps.now());
    return problem ? problem(check, 'the webhook') : ok(check, 'is done by this program');
  });
}

function checkPolicy(deps: WebhookCheckDeps, name: string) {
  const check = `ValidatingAdmissionPolicy ${name}`;
  return onObject(deps, check, VALIDATING_ADMISSION_POLICIES, { name }, ({ status }) => {
    const [first] = status?.typeChecking?.expressionWarnings ?? [];
    return first ? warning(check, first.warning) : ok(check, 'installed');
  });
}

/** Kinds that clusters need to start Pods and to elect leaders. */
const ESSENTIAL: ReadonlySet<string> = new Set([
  'pods',
  'nodes',
  'leases',
  'secrets',
  'configmaps',
  'serviceaccounts',
  'endpointslices',
  'services',
]);

/**
 * Returns why a webhook can prevent the start of its own program or of the cluster, with the next step; undefined if it
 * cannot.
 */
function lockOut(
  { rules = [], failurePolicy, namespaceSelector, objectSelector }: ValidatingWebhook,
  { namespace }: WebhookNames,
): [detail: string, next: string] | undefined {
  if (failurePolicy === 'Ignore' || objectSelector?.matchLabels) return undefined;
  const isExcluded = (name: string) =>
    namespaceSelector?.matchExpressions?.some(
      ({ key, operator, values = [] }) =>
        key === NAMESPACE_LABEL && (operator === 'NotIn') === values.includes(name),
    ) ?? false;
  const all = rules.flatMap(({ apiGroups = [], resources = [] }) =>
    apiGroups.flatMap((group) => resources.map((plural) => ({ group, plural }))),
  );
  const wildcard = all.find(
    ({ group, plural }) => group === '*' || (isBuiltin({ group }) && plural.startsWith('*')),
  );
  const essential =
    wildcard ?? all.find(({ group, plural }) => isBuiltin({ group }) && ESSENTIAL.has(plural));
  if (!essential) return undefined;
  const exposed = [namespace, 'kube-system'].filter((name) => !isExcluded(name));
  const isClusterScoped = essential.plural === 'nodes';
  if (exposed.length === 0 && !isClusterScoped) return undefined;
  const where = isClusterScoped ? '' : ` in ${exposed.join(' and ')}`;
  return [
    `rejects ${wildcard ? 'all kinds' : essential.plural}${where} while the program does not run, also what it needs to start`,
    'Exclude these namespaces by a namespaceSelector, or set failurePolicy to Ignore',
  ];
}

/** The certificates that the replicas send, their own first. */
interface Served {
  /** Empty if they cannot be read. */
  readonly chain: readonly X509Certificate[];
}

/** Reads the certificates in the Secret. Its private key is not used. */
async function servingCertificate(
  { client, signal }: WebhookCheckDeps,
  { names: { namespace, secret }, managesCertificate }: WebhookPlan,
): Promise<Served> {
  if (!managesCertificate) return { chain: [] };
  try {
    // The program may list exactly this Secret.
    const { items } = await client.list(SECRETS, {
      namespace,
      fieldSelector: `metadata.name=${secret}`,
      signal,
    });
    const pem = Buffer.from(items[0]?.data?.['tls.crt'] ?? '', 'base64').toString();
    return { chain: certificatesIn(pem) };
  } catch (error) {
    signal.throwIfAborted();
    if (!isApiError(error)) throw error;
    return { chain: [] };
  }
}

/** Returns what is wrong with the CA bundle of a webhook; undefined if it is valid. */
function bundleProblem(
  { caBundle = '' }: WebhookClientConfig,
  served: Served | undefined,
  nowMs: number,
): ((check: string, what: string) => CheckResult) | undefined {
  if (caBundle === '') {
    return (check, what) =>
      warning(
        check,
        `${what} has no CA bundle yet`,
        'The leader of the program writes it. With certificates of your own, set it, or let cert-manager inject it',
      );
  }
  const authorities = certificatesIn(Buffer.from(caBundle, 'base64').toString());
  const valid = authorities.filter((one) => endOf(one) > nowMs);
  if (valid.length === 0) {
    return (check, what) => failed(check, `the CA bundle of ${what} has no valid certificate`);
  }
  const chain = served?.chain ?? [];
  if (chain.length === 0 || anchorOf(chain, valid, nowMs)) return undefined;
  return (check, what) =>
    failed(
      check,
      `the CA bundle of ${what} does not match the certificate that the program serves`,
      'The leader of the program updates it. See its log for "Unable to update the CA bundle"',
    );
}
