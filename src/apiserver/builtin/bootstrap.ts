import { timestamp } from '../../api/conditions.ts';
import type { ObjectMeta } from '../../api/object.ts';
import type { Backend } from '../call.ts';
import { BOOTSTRAP } from '../generated/bootstrap.ts';
import type { ApiObject } from '../resource-definition.ts';

/**
 * Stores the objects that kube-apiserver creates when it starts: the Service `kubernetes`, the system
 * PriorityClasses, the default roles and bindings, and the objects of flow control. They are complete, so nothing
 * is defaulted or validated. Existing objects are kept.
 */
export function createBootstrapObjects({ store, registry, clock, uid }: Backend): void {
  const creationTimestamp = timestamp(clock.now());
  for (const line of BOOTSTRAP.trim().split('\n')) {
    const end = line.indexOf(' ');
    const { metadata, ...rest } = JSON.parse(line.slice(end + 1)) as Omit<ApiObject, 'metadata'> & {
      readonly apiVersion: string;
      readonly kind: string;
      readonly metadata: Pick<ObjectMeta, 'name'> & Partial<ObjectMeta>;
    };
    const [version = '', group = ''] = rest.apiVersion.split('/').reverse();
    const definition = registry.find(group, version, line.slice(0, end));
    if (!definition) continue;
    const collection = store.collection(definition);
    if (collection.get(metadata.namespace, metadata.name)) continue;
    const system = { uid: uid(), resourceVersion: '', creationTimestamp };
    collection.put({ ...rest, metadata: { ...metadata, ...system } });
  }
}
