import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Json } from './api-client.ts';
import {
  APPLY,
  Api,
  CONFIG_MAPS,
  COUNTS,
  JSON_PATCH,
  MERGE,
  PODS,
  STRATEGIC,
  apiWithCounts,
  configMap,
  count,
  pod,
} from './api-client.ts';

describe('create', () => {
  test('sets metadata and defaults, and drops the status', async () => {
    const api = await apiWithCounts();
    const reply = await api.post(COUNTS, {
      ...count('web', { name: 'nginx' }),
      status: { healthy: true },
    });
    assert.equal(reply.status, 201);
    const { metadata, spec, status } = reply.body;
    assert.equal(metadata.namespace, 'default');
    assert.match(metadata.uid, /^[0-9a-f-]{36}$/);
    assert.equal(metadata.creationTimestamp, '2026-01-01T00:00:00Z');
    assert.equal(metadata.generation, 1);
    assert.equal(metadata.resourceVersion, String(api.server.revision));
    assert.equal(metadata.managedFields[0].manager, 'tester');
    assert.deepEqual(spec, { name: 'nginx', count: 1 });
    assert.equal(status, undefined);
  });

  test('a status that the server sets has no owner', async () => {
    const api = new Api();
    const { status, metadata } = (await api.post(PODS, pod('web'))).body;
    assert.equal(status.phase, 'Pending');
    assert.equal(metadata.managedFields.length, 1);
    assert.deepEqual(Object.keys(metadata.managedFields[0].fieldsV1), ['f:spec']);
  });

  test('a generated name is the base and five characters, and is generated again if it exists', async () => {
    const randoms = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.99, 0.99, 0.99, 0.99, 0.99];
    const api = new Api({ random: () => randoms.shift() ?? 0 });
    const draft = { ...configMap(''), metadata: { generateName: 'job-' } };
    assert.equal((await api.post(CONFIG_MAPS, draft)).body.metadata.name, 'job-bbbbb');
    assert.equal((await api.post(CONFIG_MAPS, draft)).body.metadata.name, 'job-99999');
  });

  test('a name that exists answers AlreadyExists', async () => {
    const api = await apiWithCounts();
    await api.post(COUNTS, count('web'));
    const { status, body } = await api.post(COUNTS, count('web'));
    assert.equal(status, 409);
    assert.deepEqual(body, {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'counts.demo.mark8s.io "web" already exists',
      reason: 'AlreadyExists',
      details: { name: 'web', group: 'demo.mark8s.io', kind: 'counts' },
      code: 409,
    });
  });

  test('invalid objects are rejected with the reason', async () => {
    const api = await apiWithCounts();
    const refusals: [path: string, body: unknown, code: number, message: RegExp][] = [
      [
        COUNTS,
        count('Web'),
        422,
        /^Count.demo.mark8s.io "Web" is invalid: metadata.name: Invalid value: "Web": a lowercase RFC 1123 subdomain/,
      ],
      [COUNTS, { ...count(''), metadata: {} }, 422, /name or generateName is required/],
      [
        COUNTS,
        count('web', { name: 'x', count: -1 }),
        422,
        /spec.count: Invalid value: -1: spec.count in body should be greater than or equal to 0/,
      ],
      [COUNTS, count('web', { count: 1 }), 422, /spec.name: Required value/],
      [COUNTS, { ...count('web'), kind: undefined }, 400, /Object 'Kind' is missing/],
      [
        COUNTS,
        { ...count('web'), kind: 'Pod' },
        422,
        /^Pod.demo.mark8s.io "web" is invalid: kind: Invalid value: "Pod": must be Count$/,
      ],
      [
        COUNTS,
        { ...count('web'), apiVersion: 'v1' },
        400,
        /the API version in the data \(v1\) does not match/,
      ],
      [
        COUNTS,
        { ...count('web'), metadata: { name: 'web', namespace: 'other' } },
        400,
        /the namespace of the provided object does not match the namespace sent on the request/,
      ],
      [
        COUNTS,
        { ...count('web'), metadata: { name: 'web', labels: { a: 1 } } },
        400,
        /cannot unmarshal number into Go struct field ObjectMeta.labels of type string$/,
      ],
      [
        COUNTS,
        { ...count('web'), metadata: { name: 'web', resourceVersion: '7' } },
        500,
        /resourceVersion should not be set on objects to be created/,
      ],
      [COUNTS.replace('default', 'nowhere'), count('web'), 404, /^namespaces "nowhere" not found$/],
      ['/api/v1/pods', pod('web'), 405, /does not allow this method/],
      [
        PODS,
        { ...pod('web'), spec: { containers: 'x' } },
        400,
        /^Pod in version "v1" cannot be handled as a Pod: /,
      ],
      [COUNTS, '{"a":', 400, /json parse error/],
      [COUNTS, '[]', 400, /cannot unmarshal array into Go value/],
      [COUNTS, `${'{"a":'.repeat(500)}1${'}'.repeat(500)}`, 400, /exceeded max depth/],
      [
        COUNTS,
        `{"a":"${'x'.repeat(3 * 1024 * 1024)}"}`,
        413,
        /Request entity too large: limit is 3145728/,
      ],
    ];
    const before = api.server.revision;
    for (const [path, body, code, message] of refusals) {
      const reply = await api.post(path, body);
      assert.match(reply.body.message, message);
      assert.equal(reply.status, code, reply.body.message);
      assert.equal(reply.body.code, code);
    }
    assert.equal(api.server.revision, before, 'nothing was written');
  });

  test('a field with the name __proto__ is ordinary data', async () => {
    const api = new Api();
    const body = `{"metadata":{"name":"a"},"data":{"__proto__":"x"}}`;
    const { status, text } = await api.post(CONFIG_MAPS, body);
    assert.equal(status, 201);
    assert.match(text, /"__proto__":"x"/);
    assert.equal(Object.hasOwn(Object.prototype, 'x'), false);
  });

  test('accepts YAML and JSON only', async () => {
    const api = await apiWithCounts();
    const yaml = await api.send('POST', CONFIG_MAPS, 'metadata:\n  name: a\ndata: {x: "1"}\n', {
      'content-type': 'application/yaml',
    });
    assert.deepEqual(yaml.body.data, { x: '1' });
    const bomb = await api.send('POST', CONFIG_MAPS, 'a: &a [x]\nb: *a\n', {
      'content-type': 'application/yaml',
    });
    assert.equal(bomb.status, 400);
    const protobuf = await api.send('POST', COUNTS, 'k8s', {
      'content-type': 'application/vnd.kubernetes.protobuf',
    });
    assert.equal(protobuf.status, 415);
    assert.match(protobuf.body.message, /accepted media types include: application\/json/);
  });

  test('a dry run validates and stores nothing', async () => {
    const api = new Api();
    const reply = await api.post(`${CONFIG_MAPS}?dryRun=All`, configMap('a'));
    assert.equal(reply.status, 201);
    assert.equal('resourceVersion' in reply.body.metadata, false);
    assert.equal((await api.get(`${CONFIG_MAPS}/a`)).status, 404);
  });
});

describe('unknown fields', () => {
  const draft = count('web', { name: 'nginx', cuont: 3 });

  test('are dropped with a warning by default', async () => {
    const api = await apiWithCounts();
    const { status, headers, body } = await api.post(COUNTS, draft);
    assert.equal(status, 201);
    assert.equal(headers['warning'], String.raw`299 - "unknown field \"spec.cuont\""`);
    assert.deepEqual(body.spec, { name: 'nginx', count: 1 });
  });

  test('are an error under Strict and nothing under Ignore', async () => {
    const api = await apiWithCounts();
    const strict = await api.post(`${COUNTS}?fieldValidation=Strict`, draft);
    assert.equal(strict.status, 400);
    assert.equal(
      strict.body.message,
      'Count in version "v1" cannot be handled as a Count: strict decoding error: unknown field "spec.cuont"',
    );
    const ignored = await api.post(`${COUNTS}?fieldValidation=Ignore`, draft);
    assert.equal(ignored.status, 201);
    assert.equal(ignored.headers['warning'], undefined);
    const odd = await api.post(`${COUNTS}?fieldValidation=Maybe`, draft);
    assert.equal(odd.status, 422);
  });

  test('in a patch are an error of the patch under Strict', async () => {
    const api = await apiWithCounts();
    await api.post(COUNTS, count('web'));
    const path = `${COUNTS}/web?fieldValidation=Strict`;
    const { status, body } = await api.patch(path, { spec: { cuont: 1 } });
    assert.equal(status, 422);
    assert.match(
      body.message,
      /patch: Invalid value: .*strict decoding error: unknown field "spec.cuont"$/,
    );
  });
});

describe('update', () => {
  async function stored(): Promise<{ api: Api; object: Json }> {
    const api = await apiWithCounts();
    return { api, object: (await api.post(COUNTS, count('web'))).body };
  }

  test('with an outdated resourceVersion is a conflict', async () => {
    const { api, object } = await stored();
    await api.patch(`${COUNTS}/web`, { spec: { count: 4 } });
    const { status, body } = await api.put(`${COUNTS}/web`, object);
    assert.equal(status, 409);
    assert.equal(body.reason, 'Conflict');
    assert.equal(
      body.message,
      'Operation cannot be fulfilled on counts.demo.mark8s.io "web": the object has been modified; please apply your changes to the latest version and try again',
    );
  });

  test('without a resourceVersion overwrites a built-in kind and is rejected for a custom one', async () => {
    const { api } = await stored();
    const custom = await api.put(`${COUNTS}/web`, count('web'));
    assert.equal(custom.status, 422);
    assert.match(
      custom.body.message,
      /metadata.resourceVersion: Invalid value: 0: must be specified for an update/,
    );
    await api.post(CONFIG_MAPS, configMap('a'));
    const builtin = await api.put(`${CONFIG_MAPS}/a`, configMap('a', { b: '2' }));
    assert.deepEqual(builtin.body.data, { b: '2' });
  });

  test('of another object of that name is a conflict', async () => {
    const { api, object } = await stored();
    const other = { ...object, metadata: { ...object.metadata, uid: 'other' } };
    const { status, body } = await api.put(`${COUNTS}/web`, other);
    assert.equal(status, 409);
    assert.match(
      body.message,
      /Precondition failed: UID in precondition: other, UID in object meta: /,
    );
  });

  test('with another name than in the path is rejected, of a missing object is NotFound', async () => {
    const { api, object } = await stored();
    const renamed = { ...object, metadata: { ...object.metadata, name: 'b' } };
    assert.match(
      (await api.put(`${COUNTS}/web`, renamed)).body.message,
      /the name of the object \(b\) does not match the name on the URL \(web\)/,
    );
    assert.equal((await api.put(`${COUNTS}/b`, renamed)).status, 404);
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'l' } };
    const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases/l';
    assert.equal((await api.put(path, lease)).status, 201, 'a Lease may be created by PUT');
  });

  test('increments the generation unless only metadata or status changed', async () => {
    const { api } = await stored();
    const generation = async (path: string, change: object) =>
      (await api.patch(path, change)).body.metadata.generation;
    assert.equal(await generation(`${COUNTS}/web`, { metadata: { labels: { a: 'b' } } }), 1);
    assert.equal(await generation(`${COUNTS}/web/status`, { status: { healthy: true } }), 1);
    assert.equal(await generation(`${COUNTS}/web`, { spec: { count: 5 } }), 2);
    assert.equal(await generation(`${COUNTS}/web`, { metadata: { generation: 9 } }), 2);
  });

  test('without a change writes nothing and sends no event', async () => {
    const { api, object } = await stored();
    const watch = await api.watch(`${COUNTS}?resourceVersion=${object.metadata.resourceVersion}`);
    const revision = api.server.revision;
    await api.clock.advance(60_000);
    const reply = await api.put(`${COUNTS}/web`, object);
    assert.equal(reply.body.metadata.resourceVersion, object.metadata.resourceVersion);
    await api.patch(`${COUNTS}/web`, { spec: { count: 3 } });
    assert.equal(api.server.revision, revision);
    assert.deepEqual(await watch.said(), []);
    await watch.stop();
  });

  test('ignores the status, and an update of the status everything else', async () => {
    const { api, object } = await stored();
    const withStatus = { ...object, status: { healthy: true } };
    const main = await api.put(`${COUNTS}/web`, withStatus);
    assert.equal(main.body.status, undefined);
    const status = await api.put(`${COUNTS}/web/status`, {
      ...withStatus,
      metadata: { ...object.metadata, labels: { a: 'b' } },
      spec: { name: 'other', count: 9 },
    });
    assert.deepEqual(status.body.status, { healthy: true });
    assert.deepEqual(status.body.spec, object.spec);
    assert.equal(status.body.metadata.labels, undefined);
    const kept = await api.patch(`${COUNTS}/web`, { spec: { count: 4 }, status: null });
    assert.deepEqual(kept.body.status, { healthy: true });
  });

  test('cannot change uid, creation time or deletion time', async () => {
    const { api, object } = await stored();
    const { metadata } = (
      await api.patch(`${COUNTS}/web`, {
        metadata: {
          creationTimestamp: '2020-01-01T00:00:00Z',
          labels: { a: 'b' },
        },
      })
    ).body;
    assert.equal(metadata.creationTimestamp, object.metadata.creationTimestamp);
    const deleted = await api.patch(`${COUNTS}/web`, {
      metadata: { deletionTimestamp: '2020-01-01T00:00:00Z' },
    });
    assert.equal(deleted.status, 422);
    assert.match(deleted.body.message, /metadata.deletionTimestamp: .*: field is immutable$/);
    const uid = await api.patch(`${COUNTS}/web`, { metadata: { uid: 'x' } });
    assert.equal(uid.status, 422);
    assert.match(uid.body.message, /metadata.uid: Invalid value: "x": field is immutable/);
  });
});

describe('patch', () => {
  async function stored(): Promise<Api> {
    const api = await apiWithCounts();
    await api.post(COUNTS, count('web'));
    await api.post(PODS, pod('web'));
    return api;
  }

  test('each patch type changes an object', async () => {
    const api = await stored();
    const merged = await api.patch(`${COUNTS}/web`, { spec: { count: 5 } }, MERGE);
    assert.deepEqual(merged.body.spec, { name: 'nginx', count: 5 });
    const json = await api.patch(
      `${COUNTS}/web`,
      [{ op: 'replace', path: '/spec/count', value: 6 }],
      JSON_PATCH,
    );
    assert.equal(json.body.spec.count, 6);
    const strategic = await api.patch(
      `${PODS}/web`,
      { spec: { containers: [{ name: 'web', image: 'nginx:2' }] } },
      STRATEGIC,
    );
    assert.equal(strategic.body.spec.containers.length, 1);
    assert.equal(strategic.body.spec.containers[0].image, 'nginx:2');
    assert.equal(strategic.body.spec.containers[0].terminationMessagePath, '/dev/termination-log');
  });

  test('a strategic merge of a custom kind and an unknown type are 415', async () => {
    const api = await stored();
    const strategic = await api.patch(`${COUNTS}/web`, {}, STRATEGIC);
    assert.equal(strategic.status, 415);
    assert.doesNotMatch(strategic.body.message, /strategic/);
    assert.equal((await api.patch(`${COUNTS}/web`, {}, 'text/plain')).status, 415);
  });

  test('a patch that cannot be applied is rejected', async () => {
    const api = await stored();
    const test = [{ op: 'test', path: '/spec/count', value: 99 }];
    assert.equal((await api.patch(`${COUNTS}/web`, test, JSON_PATCH)).status, 422);
    assert.equal((await api.patch(`${COUNTS}/web`, { a: 1 }, JSON_PATCH)).status, 400);
    assert.equal((await api.patch(`${COUNTS}/web`, '[]')).status, 400);
    assert.equal((await api.patch(`${COUNTS}/web`, { metadata: { name: 'x' } })).status, 400);
    assert.equal((await api.patch(`${COUNTS}/none`, {})).status, 404);
    const stale = { metadata: { resourceVersion: '1' }, spec: { count: 1 } };
    assert.equal((await api.patch(`${COUNTS}/web`, stale)).status, 409);
  });

  test('an apply creates the object and owns the applied fields', async () => {
    const api = await apiWithCounts();
    const path = `${COUNTS}/web?fieldManager=me`;
    const created = await api.patch(path, count('web'), APPLY);
    assert.equal(created.status, 201);
    assert.equal(created.body.metadata.managedFields[0].operation, 'Apply');
    assert.equal(created.body.metadata.generation, 1);
    const { resourceVersion } = created.body.metadata;
    const again = await api.patch(path, count('web'), APPLY);
    assert.equal(again.status, 200);
    assert.equal(again.body.metadata.resourceVersion, resourceVersion);
    const dropped = await api.patch(path, count('web', { name: 'nginx' }), APPLY);
    assert.deepEqual(dropped.body.spec, { name: 'nginx', count: 1 });
  });

  test('an apply to fields of another manager is a conflict unless forced', async () => {
    const api = await stored();
    const path = `${COUNTS}/web?fieldManager=me`;
    const { status, body } = await api.patch(
      path,
      count('web', { name: 'nginx', count: 9 }),
      APPLY,
    );
    assert.equal(status, 409);
    assert.equal(
      body.message,
      'Apply failed with 1 conflict: conflict with "tester" using demo.mark8s.io/v1: .spec.count',
    );
    assert.equal(body.details.causes[0].reason, 'FieldManagerConflict');
    const forced = await api.patch(
      `${path}&force=true`,
      count('web', { name: 'nginx', count: 9 }),
      APPLY,
    );
    assert.equal(forced.body.spec.count, 9);
  });

  test('an apply needs a field manager, and with a uid the object must exist', async () => {
    const api = await stored();
    const anonymous = await api.patch(`${COUNTS}/web`, count('web'), APPLY);
    assert.equal(anonymous.status, 422);
    assert.match(
      anonymous.body.message,
      /fieldManager: Required value: is required for apply patch/,
    );
    const withUid = (name: string) => ({ ...count(name), metadata: { name, uid: 'gone' } });
    const missing = await api.patch(`${COUNTS}/none?fieldManager=me`, withUid('none'), APPLY);
    assert.equal(missing.status, 409);
    assert.match(missing.body.message, /uid mismatch: the provided object specified uid gone/);
    const other = await api.patch(
      `${COUNTS}/web?fieldManager=me&force=true`,
      withUid('web'),
      APPLY,
    );
    assert.equal(other.status, 422);
  });

  test('an apply of YAML to the status changes nothing else', async () => {
    const api = await stored();
    const yaml = 'apiVersion: demo.mark8s.io/v1\nkind: Count\nstatus:\n  healthy: true\n';
    const { body } = await api.patch(`${COUNTS}/web/status?fieldManager=me`, yaml, APPLY);
    assert.deepEqual(body.status, { healthy: true });
    assert.deepEqual(body.spec, { name: 'nginx', count: 3 });
    const entry = body.metadata.managedFields.find(({ manager }: Json) => manager === 'me');
    assert.equal(entry.subresource, 'status');
    assert.deepEqual(entry.fieldsV1, { 'f:status': { 'f:healthy': {} } });
  });
});
