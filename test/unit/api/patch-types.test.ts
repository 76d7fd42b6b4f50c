import { test } from 'node:test';
import type { ClusterRole, ConfigMap, Deployment, Pod } from '../../../src/api/builtin.ts';
import type {
  ApplyConfiguration,
  ChangedObject,
  KubernetesObject,
  NewObject,
} from '../../../src/api/object.ts';
import type {
  MergePatch,
  StrategicMergePatch,
  UnstructuredObject,
} from '../../../src/api/object.ts';

/** `tsc` checks the tests: each `@ts-expect-error` fails if the line below compiles. */
test('the compiler rejects fields of patches that a kind does not have', () => {
  const identity = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } };
  const applied: ApplyConfiguration<Deployment> = {
    ...identity,
    spec: { template: { spec: { containers: [{ name: 'app', image: 'nginx' }] } } },
  };
  // @ts-expect-error a misspelt field
  const contaners: ApplyConfiguration<Pod> = { ...identity, spec: { contaners: [] } };
  // @ts-expect-error a container without its name
  const nameless: ApplyConfiguration<Pod> = { ...identity, spec: { containers: [{ image: 'a' }] } };
  // @ts-expect-error no apiVersion and kind
  const anonymous: ApplyConfiguration<Pod> = { metadata: { name: 'web' } };
  // @ts-expect-error a kind whose fields are all optional
  const dato: ApplyConfiguration<ConfigMap> = { ...identity, dato: {} };

  const removed: MergePatch<Deployment> = { spec: { paused: null, replicas: 2 } };
  // @ts-expect-error a value of another type
  const text: MergePatch<Deployment> = { spec: { replicas: '2' } };
  // @ts-expect-error a merge patch replaces lists, so their items are complete
  const partial: MergePatch<Pod> = { spec: { containers: [{ image: 'nginx' }] } };

  const retained: StrategicMergePatch<Deployment> = {
    spec: { strategy: { $retainKeys: ['type'], type: 'Recreate', rollingUpdate: null } },
  };
  const item: StrategicMergePatch<Pod> = {
    spec: { tolerations: [{ $patch: 'delete', key: 'a' }] },
  };
  const ordered: StrategicMergePatch<Pod> = {
    metadata: { '$deleteFromPrimitiveList/finalizers': ['example.com/backup'] },
    spec: { '$setElementOrder/containers': [{ name: 'a' }] },
  };
  // @ts-expect-error a misspelt field
  const misspelt: StrategicMergePatch<Pod> = { spec: { contaners: [] } };

  const untyped: MergePatch<KubernetesObject> = { spec: { anything: 1 } };
  const unstructured: MergePatch<UnstructuredObject> = { spec: { anything: 1 } };
  void [applied, contaners, nameless, anonymous, dato, removed, text, partial];
  void [retained, item, ordered, misspelt, untyped, unstructured];
});

test('a request to create or update an object accepts constants, and only the metadata that a client sets', () => {
  const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] }] as const;
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', rules };
  const created: NewObject<ClusterRole> = { ...role, metadata: { name: 'a' } };
  const metadata = { name: 'a', resourceVersion: '1' };
  const updated: ChangedObject<ClusterRole> = { ...role, metadata };
  // @ts-expect-error an update without a resourceVersion, which would overwrite other changes
  const blind: ChangedObject<ClusterRole> = { ...role, metadata: { name: 'a' } };
  // @ts-expect-error a misspelt field
  const misspelt: NewObject<ClusterRole> = { ...role, metadata: { name: 'a' }, rulez: [] };
  const wrong = { ...role, metadata: { name: 'a' }, rules: ['get'] as const };
  // @ts-expect-error a value of another type in a constant
  const text: NewObject<ClusterRole> = wrong;
  void [created, updated, blind, misspelt, text];
});
