import { HttpClient, keyOf, objectController, OwnedObjects, runControllers } from 'crd-controller';
import { CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, ROLE_BINDINGS } from 'crd-controller/kinds';
import { SECRETS } from 'crd-controller/kinds';
import * as s from 'crd-controller/schema';
import { ApiServer, Cluster, FakeClock } from 'crd-controller/testing';
import { silentLogger } from 'crd-controller';
import type { Controller, ControllerKit } from 'crd-controller';

const TENANTS = s.customResource({
  group: 'example.com',
  version: 'v1',
  kind: 'Tenant',
  plural: 'tenants',
  scope: 'Cluster',
  spec: s.object({ admins: s.list(s.string()), pullSecret: s.string() }),
  status: s.status({}),
});

const RBAC = 'rbac.authorization.k8s.io';

/** Keeps a Namespace for each Tenant, a RoleBinding for each of its administrators, and a copy of a Secret. */
function tenantController(kit: ControllerKit): Controller {
  const tenants = kit.informers.for(TENANTS);
  const secrets = kit.informers.for(SECRETS);
  const owned = new OwnedObjects(TENANTS, 'tenant-controller')
    .add(kit.informers.for(NAMESPACES))
    .add(kit.informers.for(ROLE_BINDINGS), { prune: true })
    .add(secrets, { prune: true, exact: ['data'] });
  return objectController(kit, tenants, {
    name: 'tenant',
    reconcile: async (tenant, context) => {
      const { admins, pullSecret: name } = tenant.spec;
      const namespace = tenant.metadata.name;
      const source = secrets.lister.get(keyOf({ metadata: { namespace: 'default', name } }));
      await owned.ensure(context, tenant, [
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
        ...admins.map((admin) => ({
          apiVersion: `${RBAC}/v1`,
          kind: 'RoleBinding',
          metadata: { namespace, name: `admin-${admin}` },
          roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'admin' },
          subjects: [{ apiGroup: RBAC, kind: 'User', name: admin }],
        })),
        ...(source
          ? [{ ...source, metadata: { namespace, name } }] // The type and the data.
          : []),
      ]);
      return source
        ? { kind: 'ready', reason: 'Provisioned', message: `The namespace is ${namespace}` }
        : { kind: 'reconciling', reason: 'SecretMissing', message: `There is no Secret ${name}` };
    },
  })
    .owns(owned)
    .watches(secrets, ({ metadata }) =>
      tenants.lister
        .list()
        .filter(({ spec }) => spec.pullSecret === metadata.name)
        .map(keyOf),
    );
}

const clock = new FakeClock();
const handler = new ApiServer({ clock }).handler;
const client = new HttpClient({ handler, server: 'https://test', clock });
await client.create(CUSTOM_RESOURCE_DEFINITIONS, TENANTS.definition);
const stop = new AbortController();
const ended = Promise.all([
  new Cluster({ client, clock, log: silentLogger }).run(stop.signal),
  runControllers({ client, clock, controllers: [tenantController] }, stop.signal),
]);
const [apiVersion, kind] = ['example.com/v1', 'Tenant'];
const spec = { admins: ['ann', 'bob'], pullSecret: 'pull' };
await client.create(TENANTS, { apiVersion, kind, metadata: { name: 'acme' }, spec });
await clock.advance(10_000);
const at = { namespace: 'default', name: 'pull' };
const data = { token: 'c2VjcmV0' };
await client.create(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata: at, data });
await client.patch(
  TENANTS,
  { name: 'acme' },
  { type: 'merge', body: { spec: { admins: ['ann'] } } },
);
await clock.advance(10_000);
const { items } = await client.list(ROLE_BINDINGS, { namespace: 'acme' });
console.log(items.map(({ metadata }) => metadata.name).join()); // prints: admin-ann
const copy = await client.get(SECRETS, { namespace: 'acme', name: 'pull' });
console.log(copy.data?.['token']); // prints: c2VjcmV0
await client.delete(TENANTS, { name: 'acme' });
await clock.advance(60_000);
const namespaces = await client.list(NAMESPACES);
console.log(namespaces.items.some(({ metadata }) => metadata.name === 'acme')); // prints: false
stop.abort();
await clock.advance(30_000);
await ended;
