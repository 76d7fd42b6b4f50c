import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, PODS } from '../../../src/api/builtin.ts';
import { objectKey } from '../../../src/api/object-key.ts';
import { InformerSet } from '../../../src/cache/informer-set.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { NoMatchError, RestMapper } from '../../../src/client/rest-mapper.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

const API_VERSION = 'example.com/v1';

describe('RestMapper', () => {
  let clock: FakeClock;
  let client: HttpClient;
  let mapper: RestMapper;
  let requests: string[];

  beforeEach(() => {
    clock = new FakeClock();
    requests = [];
    const server = new ApiServer({ clock });
    const handler: typeof server.handler = (request) => {
      requests.push(`${request.method} ${request.path}`);
      return server.handler(request);
    };
    client = new HttpClient({ handler, server: 'https://test', clock });
    mapper = new RestMapper(client, { clock });
  });

  const install = (plural: string, kind: string) =>
    client.create(CUSTOM_RESOURCE_DEFINITIONS, {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.example.com` },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural, kind, shortNames: ['bk'] },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
          },
        ],
      },
    });
  const discoveries = () => requests.filter((request) => request === 'GET /apis').length;

  it('maps a kind to its resource with one discovery', async () => {
    const { plural, namespaced } = await mapper.get('apps/v1', 'Deployment');
    assert.deepEqual([plural, namespaced], ['deployments', true]);
    assert.equal((await mapper.get('v1', 'Pod')).plural, PODS.plural);
    assert.equal(discoveries(), 1);
  });

  it('maps names as kubectl accepts them', async () => {
    for (const name of ['deploy', 'Deployment', 'deployments.apps', 'deployments.v1.apps']) {
      assert.equal((await mapper.resolve(name)).plural, 'deployments');
    }
    await assert.rejects(mapper.resolve('backups'), NoMatchError);
  });

  it('rejects a kind that the server does not have, with a suggestion', async () => {
    await assert.rejects(mapper.get('apps/v1', 'Deploymnt'), {
      name: 'NoMatchError',
      message: /no kind Deploymnt in apps\/v1; did you mean apps\/v1 Deployment\?/,
    });
  });

  it('finds a kind that was installed after the discovery', async () => {
    await mapper.get('v1', 'Pod');
    await install('backups', 'Backup');
    assert.equal((await mapper.get(API_VERSION, 'Backup')).plural, 'backups');
    assert.equal((await mapper.resolve('bk')).plural, 'backups');
    assert.equal(discoveries(), 2);
  });

  it('requests discovery for a missing kind again after 10 s, and not before', async () => {
    await assert.rejects(mapper.get(API_VERSION, 'Backup'), NoMatchError);
    await install('backups', 'Backup');
    await clock.advance(9_999);
    await assert.rejects(mapper.get(API_VERSION, 'Backup'), NoMatchError);
    assert.equal(discoveries(), 1);
    await clock.advance(1);
    assert.equal((await mapper.get(API_VERSION, 'Backup')).plural, 'backups');
  });

  it('requests discovery for a missing kind again after a refresh', async () => {
    await mapper.get('v1', 'Pod');
    await assert.rejects(mapper.get(API_VERSION, 'Backup'), NoMatchError);
    await mapper.refresh();
    await install('backups', 'Backup');
    assert.equal((await mapper.get(API_VERSION, 'Backup')).plural, 'backups');
  });

  it('limits the discoveries for missing kinds', async () => {
    await mapper.get('v1', 'Pod');
    for (let n = 0; n < 60; n++) {
      await assert.rejects(mapper.get(API_VERSION, `Missing${n}`), NoMatchError);
    }
    assert.equal(discoveries(), 51);
  });

  it('gives clients and informers objects whose fields are unknown', async () => {
    await install('backups', 'Backup');
    const backups = await mapper.get(API_VERSION, 'Backup');
    const metadata = { namespace: 'default', name: 'nightly', labels: { app: 'db' } };
    const spec = { schedule: '@daily' };
    await client.create(backups, { apiVersion: API_VERSION, kind: 'Backup', metadata, spec });
    const informers = new InformerSet(client, { clock });
    const informer = informers.for(backups, { labelSelector: { matchLabels: { app: 'db' } } });
    const stop = new AbortController();
    const running = informers.run(stop.signal);
    await informer.addHandler({}).synced;
    const found: unknown = informer.lister.get(objectKey('default', 'nightly'))?.['spec'];
    assert.deepEqual(found, spec);
    stop.abort();
    await running;
  });
});
