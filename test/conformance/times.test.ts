import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json, Reply } from './api.ts';
import { Api, JSON_PATCH, MERGE, STRATEGIC } from './api.ts';
import { configMap, configMaps, deployment, deployments, pod, pods } from './objects.ts';

let api: Api;
let space: string;

before(async () => {
  api = await Api.start();
  space = await api.namespace();
});

after(() => api.close());

const LAYOUT = '2006-01-02T15:04:05Z07:00';

/** A time that is sent, and the time that is stored or the end of the error. */
const TIMES: readonly (readonly [sent: string, stored: string | null, problem?: string])[] = [
  ['2024-02-29T12:34:56Z', '2024-02-29T12:34:56Z'],
  ['2024-01-01T00:00:00.999Z', '2024-01-01T00:00:00Z'],
  ['2024-01-01T00:00:00.12345678901234567890Z', '2024-01-01T00:00:00Z'],
  ['2024-01-01T09:00:00+09:00', '2024-01-01T00:00:00Z'],
  ['2023-12-31T23:59:59.5-00:01', '2024-01-01T00:00:59Z'],
  ['2024-01-01T00:00:00+24:60', '2023-12-30T23:00:00Z'],
  ['2024-01-01T00:00:00,5Z', '2024-01-01T00:00:00Z'],
  ['2024-01-01T0:00:00Z', '2024-01-01T00:00:00Z'],
  ['1969-12-31T23:59:59.9Z', '1969-12-31T23:59:59Z'],
  ['0000-01-01T00:00:00Z', '0000-01-01T00:00:00Z'],
  ['0001-01-01T00:00:00Z', null],
  ['0001-01-01T01:00:00+01:00', null],
  ['2024-01-01t00:00:00z', '', ` as "${LAYOUT}": cannot parse "t00:00:00z" as "T"`],
  ['2024-01-01T00:00:00z', '', ` as "${LAYOUT}": cannot parse "z" as "Z07:00"`],
  ['2024-01-01T00:00:00', '', ` as "${LAYOUT}": cannot parse "" as "Z07:00"`],
  ['2024-1-01T00:00:00Z', '', ` as "${LAYOUT}": cannot parse "1-01T00:00:00Z" as "01"`],
  ['2024-01-01T00:00:00Zx', '', ': extra text: "x"'],
  ['2024-13-01T00:00:00Z', '', ': month out of range'],
  ['2024-01-01T24:00:00Z', '', ': hour out of range'],
  ['2024-01-01T00:00:60Z', '', ': second out of range'],
  ['2023-02-29T00:00:00Z', '', ': day out of range'],
  ['2024-01-01T00:00:00+25:00', '', ': time zone offset hour out of range'],
];

/** Ways to write the status of a Pod. */
const WRITES: Readonly<Record<string, (path: string, made: Json, status: Json) => Promise<Reply>>> =
  {
    'an update': (path, made, status) => api.put(path, { ...made, status }),
    'a merge patch': (path, _, status) => api.patch(path, { status }, MERGE),
    'a strategic merge patch': (path, _, status) => api.patch(path, { status }, STRATEGIC),
    'a JSON patch': (path, _, status) =>
      api.patch(
        path,
        Object.entries(status).map(([name, value]) => ({
          op: 'add',
          path: `/status/${name}`,
          value,
        })),
        JSON_PATCH,
      ),
    'an apply': (path, { metadata: { name } }, status) =>
      api.apply(path, 'times', { ...pod(name), spec: undefined, status }, '&force=true'),
  };

for (const [how, write] of Object.entries(WRITES)) {
  test(`${how} stores times in UTC without fractions, and rejects what Go does not parse`, async () => {
    const made = await api.made(
      api.post(pods(space), pod(how.replaceAll(/[^a-z]/gi, '-').toLowerCase())),
    );
    const path = `${pods(space)}/${made.metadata.name}`;
    for (const [sent, stored, problem] of TIMES) {
      const condition = { type: 'Sampled', status: 'True', lastTransitionTime: sent };
      const { metadata, ...rest } = made;
      const current = { metadata: { ...metadata, resourceVersion: undefined }, ...rest };
      const reply = await write(`${path}/status`, current, {
        startTime: sent,
        conditions: [condition],
      });
      if (problem !== undefined) {
        assert.ok(reply.status >= 400, sent);
        const { message } = reply.body;
        assert.ok(message.endsWith(`parsing time "${sent}"${problem}`), message);
        continue;
      }
      const { status } = await api.made(Promise.resolve(reply));
      assert.equal(status.startTime, stored, sent);
      assert.equal(status.conditions[0].lastTransitionTime, stored, sent);
    }
  });
}

test('a time in microseconds keeps six digits, which it requires', async () => {
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${space}/leases`;
  const send = (acquireTime: string) =>
    api.patch(
      `${leases}/micro?fieldManager=times&force=true`,
      {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: 'micro' },
        spec: { acquireTime },
      },
      'application/apply-patch+yaml',
    );
  for (const [sent, stored] of [
    ['2024-01-01T00:00:00.123456Z', '2024-01-01T00:00:00.123456Z'],
    ['2024-01-01T00:00:00,000000Z', '2024-01-01T00:00:00.000000Z'],
    ['2024-01-01T9:00:00.500000+09:00', '2024-01-01T00:00:00.500000Z'],
    ['0001-01-01T00:00:00.000000Z', null],
    ['0001-01-01T00:00:00.000001Z', '0001-01-01T00:00:00.000001Z'],
  ] as const) {
    const { spec } = await api.made(send(sent));
    assert.equal(spec.acquireTime, stored, sent);
  }
  for (const [sent, rest] of [
    ['2024-01-01T00:00:00Z', '"Z" as ".000000"'],
    ['2024-01-01T00:00:00.12345Z', '".12345Z" as ".000000"'],
    ['2024-01-01T00:00:00.1234567Z', '"7Z" as "Z07:00"'],
  ] as const) {
    const { status, body } = await send(sent);
    assert.equal(status, 500, sent);
    assert.ok(body.message.endsWith(`: cannot parse ${rest}`), body.message);
  }
});

test('times in metadata are parsed and stored like other times', async () => {
  const path = `${configMaps(space)}/managed`;
  const { metadata } = await api.made(api.post(configMaps(space), configMap('managed')));
  const [entry] = metadata.managedFields;
  const send = (time: string | null) =>
    api.patch(path, { metadata: { managedFields: [{ ...entry, manager: String(time), time }] } });
  for (const [sent, stored] of [
    ['2024-01-01T09:00:00.5+09:00', '2024-01-01T00:00:00Z'],
    ['0001-01-01T00:00:00Z', undefined],
    [null, undefined],
  ] as const) {
    const { metadata } = await api.made(send(sent));
    assert.equal(metadata.managedFields[0].time ?? undefined, stored, String(sent));
  }
  const { status, body } = await send('2024-01-01t00:00:00Z');
  assert.equal(status, 422);
  assert.match(body.message, /parsing time "2024-01-01t00:00:00Z" as .* cannot parse "t00:00:00Z"/);
  const odd = configMap('odd');
  odd.metadata.deletionTimestamp = '2024-01-01 00:00:00Z';
  assert.equal((await api.post(configMaps(space), odd)).status, 400);
});

test('the zero time of a template is absent', async () => {
  const draft = deployment('zero');
  draft.spec.template.metadata.creationTimestamp = '0001-01-01T00:00:00Z';
  const { spec } = await api.made(api.post(deployments(space), draft));
  assert.equal('creationTimestamp' in spec.template.metadata, false);
});

test('a body of a subresource has times of Go', async () => {
  const accounts = `/api/v1/namespaces/${space}/serviceaccounts`;
  await api.made(api.post(accounts, { metadata: { name: 'timed' } }));
  for (const [expirationTimestamp, problem] of [
    ['2024-01-01t00:00:00Z', 'cannot parse "t00:00:00Z" as "T"'],
    ['2024-02-30T00:00:00Z', 'day out of range'],
  ] as const) {
    const sent = { spec: {}, status: { token: '', expirationTimestamp } };
    const { status, body } = await api.post(`${accounts}/timed/token`, sent);
    assert.equal(status, 400, expirationTimestamp);
    assert.ok(body.message.endsWith(problem), body.message);
  }
});

test('the zero time of a Job is set: it is required, immutable and shown like another time', async () => {
  const jobs = `/apis/batch/v1/namespaces/${space}/jobs`;
  const spec = { ...pod('x').spec, restartPolicy: 'Never' };
  const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: {}, spec: { template: { spec } } };
  for (const name of ['a', 'b']) await api.made(api.post(jobs, { ...job, metadata: { name } }));
  const write = async (name: string, status: Json) => {
    const reply = await api.patch(`${jobs}/${name}/status`, { status });
    return reply.body.message?.replace(/^.*is invalid: /, '') ?? reply.body.status.startTime;
  };
  const started = { startTime: '0001-01-01T00:00:00Z' };
  assert.equal(await write('a', started), null);
  assert.equal(
    await write('a', started),
    'status.startTime: Invalid value: null: field is immutable for unsuspended job once set',
  );
  assert.equal(
    await write('a', { startTime: '2024-01-01T00:00:00Z' }),
    'status.startTime: Invalid value: "2024-01-01T00:00:00Z": field is immutable for unsuspended job once set',
  );
  assert.equal(
    await write('b', { completionTime: started.startTime }),
    'status.completionTime: Invalid value: null: cannot set completionTime when there is no Complete=True condition',
  );
  const table = await api.get(`${jobs}/a`, 'application/json;as=Table;v=v1;g=meta.k8s.io');
  assert.equal(table.body.rows[0].cells[3], '292y');
  const conditions = ['FailureTarget', 'Failed'].map((type) => ({ type, status: 'True' }));
  assert.equal(await write('b', { ...started, conditions }), null);
});

test('a taint of a device has the time of its first write', async () => {
  const slice = {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceSlice',
    metadata: { name: `times-${space}` },
    spec: {
      driver: 'd.example',
      nodeName: 'n',
      pool: { name: 'p', generation: 1, resourceSliceCount: 1 },
      devices: [{ name: 'a', taints: [{ key: 'k', effect: 'NoSchedule' }] }],
    },
  };
  const { spec } = await api.made(api.post('/apis/resource.k8s.io/v1/resourceslices', slice));
  assert.match(spec.devices[0].taints[0].timeAdded, /^20\d\d-.*Z$/);
});
