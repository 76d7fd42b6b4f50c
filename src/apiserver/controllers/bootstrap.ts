import { timestamp } from '../../api/conditions.ts';
import type { ObjectMeta } from '../../api/object.ts';
import type { Backend } from '../operations/call.ts';
import { BOOTSTRAP } from '../generated/bootstrap.ts';
import type { ApiObject } from '../objects/resource-definition.ts';

/** Objects of its controllers: the range of Service addresses, and the health of other components. */
const OF_CONTROLLERS: readonly string[] = [
  'servicecidrs {"apiVersion":"networking.k8s.io/v1","kind":"ServiceCIDR","metadata":{"name":"kubernetes"},"spec":{"cidrs":["10.0.0.0/12"]}}',
  ...['controller-manager', 'etcd-0', 'scheduler'].map(
    (name) =>
      `componentstatuses {"apiVersion":"v1","kind":"ComponentStatus","metadata":{"name":"${name}"},"conditions":[{"type":"Healthy","status":"True","message":"ok"}]}`,
  ),
];

interface BootstrapObject {
  readonly plural: string;
  readonly group: string;
  readonly version: string;
  readonly object: Omit<ApiObject, 'metadata'> & {
    readonly apiVersion: string;
    readonly kind: string;
    readonly metadata: Pick<ObjectMeta, 'name'> & Partial<ObjectMeta>;
  };
}

/** The namespaces of every cluster. */
const NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'].map(
  (name): BootstrapObject => {
    const fieldsV1 = {
      'f:metadata': { 'f:labels': { '.': {}, 'f:kubernetes.io/metadata.name': {} } },
    };
    const written = { manager: 'kube-apiserver', operation: 'Update', apiVersion: 'v1' } as const;
    return {
      plural: 'namespaces',
      group: '',
      version: 'v1',
      object: {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: {
          name,
          labels: { 'kubernetes.io/metadata.name': name },
          managedFields: [{ ...written, fieldsType: 'FieldsV1', fieldsV1 } as const],
        },
        spec: { finalizers: ['kubernetes'] },
        status: { phase: 'Active' },
      },
    };
  },
);

let bootstrapObjects: readonly BootstrapObject[] | undefined;

/** Parsed once: tests create hundreds of servers. */
function parseLine(line: string): BootstrapObject {
  const end = line.indexOf(' ');
  const object = JSON.parse(line.slice(end + 1)) as BootstrapObject['object'];
  const [version = '', group = ''] = object.apiVersion.split('/').reverse();
  return { plural: line.slice(0, end), group, version, object };
}

/**
 * Stores the objects that kube-apiserver creates when it starts: namespaces, the Service `kubernetes`, the system
 * PriorityClasses, the default roles and bindings, and the objects of flow control. They are complete, so nothing
 * is defaulted or validated. Existing objects are kept.
 */
export function createBootstrapObjects({ store, registry, clock, uid }: Backend): void {
  const creationTimestamp = timestamp(clock.now());
  bootstrapObjects ??= [...BOOTSTRAP.trim().split('\n'), ...OF_CONTROLLERS].map(parseLine);
  for (const { group, version, plural, object } of [...NAMESPACES, ...bootstrapObjects]) {
    const definition = registry.find(group, version, plural);
    if (!definition) continue;
    const collection = store.collection(definition);
    const { metadata } = object;
    if (collection.get(metadata.namespace, metadata.name)) continue;
    const managedFields = metadata.managedFields?.map((entry) => ({
      ...entry,
      time: creationTimestamp,
    }));
    const system = { uid: uid(), resourceVersion: '', creationTimestamp };
    collection.put({
      ...object,
      metadata: { ...metadata, ...system, ...(managedFields && { managedFields }) },
    });
  }
}
