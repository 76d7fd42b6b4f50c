import { MUTATING_WEBHOOK_CONFIGURATIONS } from '../api/builtin.ts';
import type { WebhookFunction } from '../apiserver/objects/webhook-call.ts';
import type { RequestInfo } from '../apiserver/request/request-info.ts';
import type { Client } from '../client/client.ts';
import { isRecord } from '../util/values.ts';

export const ADMISSION_URL = 'https://admission.explored/';

/** Registry of the images that admission writes. */
const REGISTRY = 'registry.local/';

const MARK = 'admission.explored';

/** Lets a webhook change all objects of a resource that are written from now on, as policies of clusters do. */
export async function startAdmission(client: Client, info: RequestInfo): Promise<void> {
  const { group, version, resource } = info;
  const name = `${resource}.${MARK}`;
  const { items } = await client.list(MUTATING_WEBHOOK_CONFIGURATIONS);
  if (items.some(({ metadata }) => metadata.name === name)) return;
  await client.create(MUTATING_WEBHOOK_CONFIGURATIONS, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name },
    webhooks: [
      {
        name,
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        clientConfig: { url: ADMISSION_URL },
        rules: [
          {
            apiGroups: [group],
            apiVersions: [version],
            operations: ['CREATE', 'UPDATE'],
            resources: [resource],
          },
        ],
      },
    ],
  });
}

/** Adds a label and an annotation, and takes images from another registry. */
export const admit: WebhookFunction = ({ object }) => {
  const patch = [...imagePatches(object, ''), ...markPatches(object)];
  return { allowed: true, patchType: 'JSONPatch', patch };
};

interface PatchOperation {
  readonly op: 'add' | 'replace';
  readonly path: string;
  readonly value: string | object;
}

function imagePatches(value: unknown, path: string): PatchOperation[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, field]): PatchOperation[] => {
    const at = `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (name !== 'image' || typeof field !== 'string') return imagePatches(field, at);
    return field.startsWith(REGISTRY) ? [] : [{ op: 'replace', path: at, value: REGISTRY + field }];
  });
}

function markPatches(object: unknown): PatchOperation[] {
  const metadata = isRecord(object) && isRecord(object['metadata']) ? object['metadata'] : {};
  return ['labels', 'annotations'].map((name): PatchOperation => {
    const path = `/metadata/${name}`;
    return isRecord(metadata[name])
      ? { op: 'add', path: `${path}/${MARK}`, value: 'true' }
      : { op: 'add', path, value: { [MARK]: 'true' } };
  });
}
