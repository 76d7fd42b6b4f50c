import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json, Reply } from './api.ts';
import { Api, assertRejected, MERGE } from './api.ts';
import {
  configMap,
  configMaps,
  CRDS,
  deployment,
  deployments,
  GROUP,
  pod,
  pods,
  widget,
  widgetCrd,
  widgets,
} from './objects.ts';

let api: Api;

before(async () => {
  api = await Api.start();
  await api.install(widgetCrd());
});

after(() => api.close());

const path = widgets('default');

function invalid(reply: Reply, ...causes: [field: string, message: string][]): void {
  const whole = causes.map(([field, message]) => `${field}: ${message}`);
  const errors = whole.length === 1 ? whole[0] : `[${whole.join(', ')}]`;
  assertRejected(reply, {
    code: 422,
    reason: 'Invalid',
    message: `Widget.${GROUP} "x" is invalid: ${errors}`,
    causes,
  });
  const { name, group, kind } = reply.body.details;
  assert.deepEqual([name, group, kind], ['x', GROUP, 'Widget']);
}

test('schema violations are rejected with the field and the value', async () => {
  const refusals: [Record<string, unknown>, string, string][] = [
    [
      { color: '' },
      'spec.color',
      'Invalid value: "": spec.color in body should be at least 1 chars long',
    ],
    [{ color: 'toolongacolor' }, 'spec.color', 'Too long: may not be more than 10 bytes'],
    [
      { color: 'RED' },
      'spec.color',
      'Invalid value: "RED": spec.color in body should match \'^[a-z]*$\'',
    ],
    [
      { color: 5 },
      'spec.color',
      'Invalid value: "integer": spec.color in body must be of type string: "integer"',
    ],
    [{}, 'spec.color', 'Required value'],
    [
      { color: 'red', size: 11 },
      'spec.size',
      'Invalid value: 11: spec.size in body should be less than or equal to 10',
    ],
    [
      { color: 'red', mode: 'Mid' },
      'spec.mode',
      'Unsupported value: "Mid": supported values: "Fast", "Slow"',
    ],
    [
      { color: 'red', on: 'yes' },
      'spec.on',
      'Invalid value: "string": spec.on in body must be of type boolean: "string"',
    ],
    [
      { color: 'red', tags: ['a', 'b', 'c', 'd'] },
      'spec.tags',
      'Too many: 4: must have at most 3 items',
    ],
    [{ color: 'red', tags: ['a', 'a'] }, 'spec.tags[1]', 'Duplicate value: "a"'],
    [
      { color: 'red', parts: [{ name: 'a' }, { name: 'a' }] },
      'spec.parts[1]',
      'Duplicate value: {"name":"a"}',
    ],
    [{ color: 'red', parts: [{ count: 1 }] }, 'spec.parts[0].name', 'Required value'],
    [
      { color: 'red', labels: { a: 1 } },
      'spec.labels.a',
      'Invalid value: "integer": spec.labels.a in body must be of type string: "integer"',
    ],
  ];
  for (const [spec, field, message] of refusals) {
    invalid(await api.post(path, widget('x', spec)), [field, message]);
  }
});

test('the replicas of a scale are validated by the schema and as a scale', async () => {
  invalid(
    await api.post(path, widget('x', { color: 'red', size: -1 })),
    ['spec.size', 'Invalid value: -1: spec.size in body should be greater than or equal to 0'],
    ['.spec.size', 'Invalid value: -1: should be a non-negative integer'],
  );
  invalid(
    await api.post(path, widget('x', { color: 'red', size: '3' })),
    ['spec.size', 'Invalid value: "string": spec.size in body must be of type integer: "string"'],
    [
      '.spec.size',
      'Invalid value: 0: .spec.size accessor error: 3 is of the type string, expected int64',
    ],
  );
});

test('an embedded resource has a kind, and metadata with known fields only', async () => {
  const group = 'embedded.example.com';
  const embedded = {
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    'x-kubernetes-preserve-unknown-fields': true,
  };
  const metadata = { type: 'object', default: { name: 'a', unknown: 'b' } };
  await api.install(
    widgetCrd(group, (crd) => {
      const { properties } = crd.spec.versions[0].schema.openAPIV3Schema.properties.spec;
      properties.embedded = { ...embedded, properties: { metadata } };
    }),
  );
  const at = widgets('default', group);
  const ofEmbedded = (name: string, fields: object) => ({
    apiVersion: `${group}/v1`,
    kind: 'Widget',
    metadata: { name },
    spec: { color: 'red', embedded: { apiVersion: 'v1', kind: 'Pod', ...fields } },
  });
  const { spec } = await api.made(api.post(at, ofEmbedded('a', { limit: 2 ** 53 })));
  assert.deepEqual(spec.embedded, {
    apiVersion: 'v1',
    kind: 'Pod',
    limit: 2 ** 53,
    metadata: { name: 'a' },
  });
  // Go decodes the metadata, and its lists have the keys of ObjectMeta.
  const owner = { apiVersion: 'v1', kind: 'A', name: 'a', uid: '1' };
  const creationTimestamp = '2024-01-01T01:00:00.5+01:00';
  const decoded = await api.made(
    api.post(
      at,
      ofEmbedded('d', {
        metadata: { annotations: { a: null }, creationTimestamp, ownerReferences: [owner] },
      }),
    ),
  );
  assert.deepEqual(decoded.spec.embedded.metadata, {
    annotations: { a: '' },
    creationTimestamp: '2024-01-01T00:00:00Z',
    ownerReferences: [owner],
  });
  const { fieldsV1 } = decoded.metadata.managedFields[0];
  const fields = fieldsV1['f:spec']['f:embedded']['f:metadata']['f:ownerReferences'];
  assert.ok(fields['k:{"uid":"1"}'], JSON.stringify(fields));
  const nulls = await api.post(at, ofEmbedded('e', { metadata: { finalizers: [null] } }));
  assert.equal(nulls.status, 422, nulls.text);
  const { status, body } = await api.post(
    at,
    ofEmbedded('b', { kind: '%', metadata: { name: '..' } }),
  );
  assert.equal(status, 422);
  assert.match(body.message, /spec\.embedded\.kind: Invalid value: "%": may have mixed case/);
  assert.match(body.message, /spec\.embedded\.metadata\.name: Invalid value: "\.\.": /);
  for (const [fields, problem] of [
    [
      { metadata: { name: 1 } },
      'metadata: Invalid value: {"name":1}: json: cannot unmarshal number',
    ],
    [
      { metadata: { creationTimestamp: 'x' } },
      'metadata: Invalid value: {"creationTimestamp":"x"}: parsing time "x" as',
    ],
    [{ kind: 1 }, 'kind: Invalid value: 1: must be a string'],
  ] as const) {
    const message = `Widget in version "v1" cannot be handled as a Widget: spec.embedded.${problem}`;
    const reply = await api.post(at, ofEmbedded('c', fields));
    assert.equal(reply.status, 400);
    assert.ok(reply.body.message.startsWith(message), reply.body.message);
  }
  const text = JSON.stringify({ limit: 'MAX' }).replace('"MAX"', '9223372036854775807');
  const patched = await api.send('PATCH', `${at}/a`, `{"spec":{"embedded":${text}}}`, {
    'content-type': MERGE,
  });
  assert.ok(patched.text.includes('"limit":9223372036854775807'), patched.text);
  assert.ok((await api.get(at)).text.includes('"limit":9223372036854775807'));
});

test('required fields must be set', async () => {
  const { spec: _spec, ...bare } = widget('x');
  invalid(await api.post(path, bare), ['spec', 'Required value']);
});

test('defaults apply to missing fields of existing parents at any depth', async () => {
  const spec = async (given: object) =>
    (await api.made(api.post(`${path}?dryRun=All`, widget('x', given)))).spec;
  assert.deepEqual(await spec({ color: 'red' }), { color: 'red', size: 1 });
  assert.deepEqual(await spec({ color: 'red', size: 5 }), { color: 'red', size: 5 });
  assert.deepEqual(await spec({ color: 'red', nested: {} }), {
    color: 'red',
    size: 1,
    nested: { a: 'x' },
  });
});

test('null is replaced by a default, and kept in nullable fields', async () => {
  const spec = async (given: object) =>
    (await api.made(api.post(`${path}?dryRun=All`, widget('x', given)))).spec;
  assert.deepEqual(await spec({ color: 'red', size: null }), { color: 'red', size: 1 });
  assert.deepEqual(await spec({ color: 'red', note: null }), { color: 'red', size: 1, note: null });
  const reply = await api.post(path, widget('x', { color: null }));
  invalid(reply, ['spec.color', 'Required value']);
});

const odd = {
  ...widget('x', { color: 'red', odd: 1, nested: { odd: 2 }, free: { any: 1 } }),
  odd: 3,
};

test('unknown fields are dropped with a warning each', async () => {
  for (const query of ['', '&fieldValidation=Warn']) {
    const { status, headers, body } = await api.post(`${path}?dryRun=All${query}`, odd);
    assert.equal(status, 201);
    assert.deepEqual(body.spec, { color: 'red', size: 1, nested: { a: 'x' }, free: { any: 1 } });
    assert.equal(body.odd, undefined);
    assert.deepEqual(headers['warning']?.split(', ').sort(), [
      '299 - "unknown field \\"odd\\""',
      '299 - "unknown field \\"spec.nested.odd\\""',
      '299 - "unknown field \\"spec.odd\\""',
    ]);
  }
});

test('unknown fields are dropped without a warning with fieldValidation=Ignore', async () => {
  const { status, headers } = await api.post(`${path}?dryRun=All&fieldValidation=Ignore`, odd);
  assert.deepEqual([status, headers['warning']], [201, undefined]);
});

test('unknown fields are rejected together with fieldValidation=Strict', async () => {
  const { status, body } = await api.post(`${path}?fieldValidation=Strict`, odd);
  assert.deepEqual([status, body.reason], [400, 'BadRequest']);
  const [, start, list] =
    /^(Widget in version "v1" cannot be handled as a Widget: strict decoding error: )(.*)$/.exec(
      body.message,
    ) ?? [];
  assert.ok(start, body.message);
  assert.deepEqual(list?.split(', ').sort(), [
    'unknown field "odd"',
    'unknown field "spec.nested.odd"',
    'unknown field "spec.odd"',
  ]);
});

test('unknown fields of a patch are handled in the same way', async () => {
  await api.made(api.post(path, widget('patched')));
  const patch = { spec: { odd: 1 } };
  const warned = await api.patch(`${path}/patched`, patch);
  assert.deepEqual(warned.body.spec, { color: 'red', size: 1 });
  assert.equal(warned.headers['warning'], '299 - "unknown field \\"spec.odd\\""');
  assertRejected(await api.patch(`${path}/patched?fieldValidation=Strict`, patch), {
    code: 422,
    reason: 'Invalid',
    message:
      /^ "" is invalid: patch: Invalid value: .*: strict decoding error: unknown field "spec\.odd"$/,
  });
});

test('unknown fields of built-in kinds are handled in the same way', async () => {
  const draft = { ...configMap('x'), odd: 1 };
  const { status, headers } = await api.post(`${configMaps('default')}?dryRun=All`, draft);
  assert.deepEqual([status, headers['warning']], [201, '299 - "unknown field \\"odd\\""']);
  assertRejected(await api.post(`${configMaps('default')}?fieldValidation=Strict`, draft), {
    code: 400,
    reason: 'BadRequest',
    message:
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "odd"',
  });
  const nested = deployment('x');
  nested.spec.template.spec.containers[0].odd = 1;
  const warned = await api.post(`${deployments('default')}?dryRun=All`, nested);
  assert.equal(
    warned.headers['warning'],
    '299 - "unknown field \\"spec.template.spec.containers[0].odd\\""',
  );
});

test('duplicate fields are reported', async () => {
  const text = `{"apiVersion":"${GROUP}/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"color":"red","color":"blue"}}`;
  const { status, headers, body } = await api.post(`${path}?dryRun=All`, text);
  assert.deepEqual([status, body.spec.color], [201, 'blue']);
  assert.equal(headers['warning'], '299 - "duplicate field \\"spec.color\\""');
  assertRejected(await api.post(`${path}?fieldValidation=Strict`, text), {
    code: 400,
    reason: 'BadRequest',
    message:
      'Widget in version "v1" cannot be handled as a Widget: strict decoding error: duplicate field "spec.color"',
  });
});

test('unknown and duplicate fields of a built-in kind are reported in the order of the body', async () => {
  const text =
    '{"apiVersion":"v1","kind":"ConfigMap","odd":1,"data":{"a":"1","a":"2"},"metadata":{"name":"x","rare":1}}';
  assertRejected(await api.post(`${configMaps('default')}?fieldValidation=Strict`, text), {
    code: 400,
    reason: 'BadRequest',
    message:
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "odd", duplicate field "data.a", unknown field "metadata.rare"',
  });
});

test('fieldValidation has three values', async () => {
  assertRejected(await api.post(`${path}?fieldValidation=Loose`, widget('x')), {
    code: 422,
    reason: 'Invalid',
    message:
      'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Loose": supported values: "", "Ignore", "Strict", "Warn"',
  });
});

test('handlers of probes and hooks are validated', async () => {
  const named = pod('probes');
  const http = {
    path: '',
    scheme: 'FTP',
    port: 'far-too-long-a-name',
    httpHeaders: [{ name: 'a b', value: '' }],
  };
  named.spec.containers[0] = {
    ...named.spec.containers[0],
    ports: [{ name: 'far-too-long-a-name', containerPort: 80 }],
    livenessProbe: { httpGet: http, successThreshold: 2, terminationGracePeriodSeconds: 0 },
    readinessProbe: { tcpSocket: { port: 70_000 }, terminationGracePeriodSeconds: 5 },
    startupProbe: { grpc: { port: 0 } },
    lifecycle: { preStop: { exec: {} }, postStart: {} },
  };
  const { status, body } = await api.post(pods('default'), named);
  assert.equal(status, 422);
  const at = 'spec.containers[0]';
  const fields = body.details.causes.map(({ field }: Json) => field.replace(`${at}.`, ''));
  assert.deepEqual(fields.toSorted(), [
    'lifecycle.postStart',
    'lifecycle.preStop.exec.command',
    'livenessProbe.httpGet.httpHeaders',
    'livenessProbe.httpGet.port',
    'livenessProbe.httpGet.scheme',
    'livenessProbe.successThreshold',
    'livenessProbe.terminationGracePeriodSeconds',
    'ports[0].name',
    'readinessProbe.tcpSocket.port',
    'readinessProbe.terminationGracePeriodSeconds',
    'startupProbe.grpc.port',
  ]);
  const { message } = body.details.causes.find(
    ({ field }: Json) => field === `${at}.livenessProbe.httpGet.port`,
  );
  assert.equal(message, 'Invalid value: "far-too-long-a-name": must be no more than 15 characters');
});

test('a volume with several sources has the first one in upstream order', async () => {
  const space = await api.namespace();
  const draft = pod('a');
  draft.spec.volumes = [
    { name: 'a', secret: {}, emptyDir: {} },
    { name: 'b', configMap: {}, secret: {} },
  ];
  const { body } = await api.post(pods(space), draft);
  assert.deepEqual(
    body.details.causes.map(({ field, reason }: Json) => [field, reason]),
    [
      ['spec.volumes[0].secret', 'FieldValueForbidden'],
      ['spec.volumes[1].secret.secretName', 'FieldValueRequired'],
      ['spec.volumes[1].configMap', 'FieldValueForbidden'],
    ],
  );
});

test('headers and sysctls without a value have an empty one', async () => {
  const valueless = pod('valueless');
  valueless.spec.securityContext = { sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start' }] };
  const httpGet = { port: 80, httpHeaders: [{ name: 'Accept' }] };
  valueless.spec.containers[0].readinessProbe = { httpGet };
  const { spec } = await api.made(api.post(`${pods('default')}?dryRun=All`, valueless));
  const [header] = spec.containers[0].readinessProbe.httpGet.httpHeaders;
  assert.deepEqual([header.value, spec.securityContext.sysctls[0].value], ['', '']);
});

test('an object with a malformed quantity cannot be decoded', async () => {
  const limited = pod('limited');
  limited.spec.containers[0].resources = { limits: { cpu: 'lots' } };
  const quota = {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'x' },
    spec: { hard: { pods: '' } },
  };
  for (const [path, draft] of [
    [pods('default'), limited],
    ['/api/v1/namespaces/default/resourcequotas', quota],
  ] as const) {
    assertRejected(await api.post(path, draft), {
      code: 400,
      reason: 'BadRequest',
      message: `${draft.kind} in version "v1" cannot be handled as a ${draft.kind}: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
    });
  }
});

const QUALIFIED_NAME =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

test('fields of built-in kinds are validated', async () => {
  const reported = {
    eventTime: '2024-01-01T00:00:00.000000Z',
    type: 'Normal',
    reason: 'r',
    action: 'a',
    reportingInstance: 'i',
  };
  const cases: readonly [apiVersion: string, plural: string, fields: Json, ...causes: string[]][] =
    [
      [
        'v1',
        'endpoints',
        {
          subsets: [
            { ports: [{ port: 80 }] },
            { addresses: [{ ip: '127.0.0.1' }], ports: [{ port: 99_999 }, { name: 'a', port: 1 }] },
          ],
        },
        'subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`',
        'subsets[1].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
        'subsets[1].ports[0].name: Required value',
        'subsets[1].ports[0].port: Invalid value: 99999: must be between 1 and 65535, inclusive',
      ],
      [
        'discovery.k8s.io/v1',
        'endpointslices',
        {
          addressType: 'IPv4',
          endpoints: [
            { addresses: ['web'] },
            { addresses: ['fd00::1'] },
            { addresses: ['0.0.0.0'] },
          ],
          ports: [{ name: 'a' }, { name: 'a' }],
        },
        'ports[1].name: Duplicate value: "a"',
        'endpoints[0].addresses[0]: Invalid value: "web": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        'endpoints[1].addresses: Invalid value: "fd00::1": must be an IPv4 address',
        'endpoints[2].addresses[0]: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)',
      ],
      [
        'networking.k8s.io/v1',
        'networkpolicies',
        {
          spec: {
            podSelector: {},
            ingress: [
              {
                from: [
                  { ipBlock: { cidr: '10.0.0.0/33' } },
                  { ipBlock: { cidr: '10.0.0.0/8', except: ['10.0.0.0/8', '10.1.0.0/16'] } },
                  { ipBlock: { cidr: '10.0.0.0/8' }, podSelector: {} },
                ],
              },
            ],
          },
        },
        'spec.ingress[0].from[0].ipBlock.cidr: Invalid value: "10.0.0.0/33": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
        'spec.ingress[0].from[1].ipBlock.except[0]: Invalid value: "10.0.0.0/8": must be a strict subset of `cidr`',
        'spec.ingress[0].from[2]: Forbidden: may not specify both ipBlock and another peer',
      ],
      [
        'v1',
        'limitranges',
        {
          spec: {
            limits: [
              { type: 'Container', default: { cpu: '1' }, max: { cpu: '500m' } },
              { type: 'Pod', default: { cpu: '1' }, maxLimitRequestRatio: { memory: '500m' } },
              { type: 'PersistentVolumeClaim' },
            ],
          },
        },
        'spec.limits[0].defaultRequest[cpu]: Invalid value: "1": default request value 1 is greater than max value 500m',
        'spec.limits[0].default[cpu]: Invalid value: "500m": default value 1 is greater than max value 500m',
        "spec.limits[1].default: Forbidden: may not be specified when `type` is 'Pod'",
        'spec.limits[1].maxLimitRequestRatio[memory]: Invalid value: "500m": ratio 500m is less than 1',
        'spec.limits[2].limits: Required value: either minimum or maximum storage value is required, but neither was provided',
      ],
      [
        'v1',
        'persistentvolumes',
        {
          spec: {
            capacity: { storage: '0' },
            accessModes: ['ReadWriteOnce'],
            hostPath: { path: '/a/../b' },
          },
        },
        'spec.capacity[storage]: Invalid value: "0": must be greater than zero',
        'spec.hostPath.path: Invalid value: "/a/../b": must not contain \'..\'',
      ],
      [
        'v1',
        'pods',
        {
          metadata: { name: 'x', annotations: { 'kubernetes.io/config.mirror': 'a' } },
          spec: { containers: [{ name: 'c', image: 'i' }] },
        },
        'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "a": must set spec.nodeName if mirror pod annotation is set',
      ],
      [
        'v1',
        'configmaps',
        { data: { a: 'x'.repeat(1024 * 1024 + 1) } },
        '[]: Too long: may not be more than 1048576 bytes',
      ],
      [
        'events.k8s.io/v1',
        'events',
        {
          ...reported,
          reportingController: 'a/b c',
          regarding: { kind: 'Pod', name: 'a', namespace: 'default' },
        },
        `reportingController: Invalid value: "a/b c": name part ${QUALIFIED_NAME}`,
      ],
      [
        'v1',
        'events',
        {
          ...reported,
          metadata: { name: 'A_' },
          reportingComponent: 'a b',
          involvedObject: { kind: 'Pod', name: 'a', namespace: 'default' },
        },
        `reportingComponent: Invalid value: "a b": name part ${QUALIFIED_NAME}`,
      ],
    ];
  const kinds: Json = {
    pods: 'Pod',
    configmaps: 'ConfigMap',
    events: 'Event',
    endpoints: 'Endpoints',
    endpointslices: 'EndpointSlice',
    networkpolicies: 'NetworkPolicy',
    limitranges: 'LimitRange',
    persistentvolumes: 'PersistentVolume',
  };
  for (const [apiVersion, plural, fields, ...causes] of cases) {
    const place = plural === 'persistentvolumes' ? plural : `namespaces/default/${plural}`;
    const prefix = apiVersion.includes('/') ? 'apis' : 'api';
    const draft = { apiVersion, kind: kinds[plural], metadata: { name: 'x' }, ...fields };
    const { status, body } = await api.post(`/${prefix}/${apiVersion}/${place}`, draft);
    assert.equal(status, 422, plural);
    const found = body.details.causes.map(({ field, message }: Json) => `${field}: ${message}`);
    assert.deepEqual(found.toSorted(), causes.toSorted());
  }
});

test('names of StatefulSets, schedules and time zones are validated', async () => {
  const labels = { app: 'x' };
  const template = {
    metadata: { labels },
    spec: { restartPolicy: 'OnFailure', containers: [{ name: 'x', image: 'x' }] },
  };
  const set = (name: string) => {
    const { restartPolicy: _policy, ...spec } = template.spec;
    return {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name },
      spec: { selector: { matchLabels: labels }, template: { ...template, spec } },
    };
  };
  const cronJob = (schedule: string, timeZone?: string) => ({
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'x' },
    spec: { schedule, timeZone, jobTemplate: { spec: { template } } },
  });
  const cases: [draft: Json, ...causes: string[]][] = [
    [set('a')],
    [set('a.b'), 'metadata.name: Invalid value: "a.b": must not contain dots'],
    [
      set('a'.repeat(64)),
      `metadata.name: Invalid value: "${'a'.repeat(64)}": must be no more than 63 characters`,
    ],
    [cronJob('1,2,,3 * * * *', 'Asia/Tokyo')],
    [cronJob(', 5/2 +1 * *', 'EST5EDT')],
    [cronJob(''), 'spec.schedule: Required value'],
    [
      cronJob('99999999999999999999 * * * *'),
      'spec.schedule: Invalid value: "99999999999999999999 * * * *": failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": value out of range',
    ],
    [
      cronJob('* * * * *', 'asia/tokyo'),
      'spec.timeZone: Invalid value: "asia/tokyo": unknown time zone asia/tokyo',
    ],
    [cronJob('* * * * *', 'utc'), 'spec.timeZone: Invalid value: "utc": unknown time zone utc'],
    [cronJob('* * * * *', 'PST'), 'spec.timeZone: Invalid value: "PST": unknown time zone PST'],
  ];
  for (const [draft, ...causes] of cases) {
    const plural = `${draft.kind.toLowerCase()}s`;
    const place = `/apis/${draft.apiVersion}/namespaces/default/${plural}?dryRun=All`;
    const { body } = await api.post(place, draft);
    const found = body.details?.causes?.map(({ field, message }: Json) => `${field}: ${message}`);
    assert.deepEqual(found ?? [], causes, body.message);
  }
});

test('a generated name is validated as upstream, which replaces two characters at the end of its prefix', async () => {
  for (const [generateName, ...fields] of [
    ['A-', 'metadata.name'],
    ['aA-', 'metadata.name'],
    ['Aa-', 'metadata.generateName', 'metadata.name'],
    ['-', 'metadata.generateName', 'metadata.name'],
  ] as const) {
    const { status, body } = await api.post(configMaps('default'), {
      ...configMap(''),
      metadata: { generateName },
    });
    const found = body.details.causes.map(({ field }: Json) => field);
    assert.deepEqual([status, found], [422, fields], generateName);
  }
});

test('the beginning of a generated name of a role or binding is no relative path', async () => {
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' };
  for (const [path, rest] of [
    ['clusterroles', {}],
    ['clusterrolebindings', { roleRef }],
    ['namespaces/default/roles', {}],
    ['namespaces/default/rolebindings', { roleRef }],
  ] as const) {
    for (const generateName of ['.', '..']) {
      const place = `/apis/rbac.authorization.k8s.io/v1/${path}?dryRun=All`;
      const { status, body } = await api.post(place, { metadata: { generateName }, ...rest });
      assert.equal(status, 422, path);
      const [{ field, message }] = body.details.causes;
      assert.equal(field, 'metadata.generateName');
      assert.match(message, /may not be/);
    }
  }
});

test('a Lease has no fields of coordinated leader election', async () => {
  const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
  const holderIdentity = 'a';
  const fields = { strategy: 'OldestEmulationVersion', preferredHolder: 'b' };
  const metadata = { name: 'uncoordinated' };
  const lease = await api.made(
    api.post(path, { metadata, spec: { holderIdentity, preferredHolder: 'b' } }),
  );
  assert.deepEqual(lease.spec, { holderIdentity });
  const { body } = await api.patch(`${path}/uncoordinated`, { spec: fields });
  assert.deepEqual(body.spec, { holderIdentity });
  await api.delete(`${path}/uncoordinated`);
});

test('a CRD has the errors of upstream for unsupported keywords and storage versions', async () => {
  const causesOf = async (change: (crd: Json, properties: Json) => void) => {
    const crd = widgetCrd('causes.example.com', (crd) => {
      const [{ name, served, storage }] = crd.spec.versions;
      const properties = {};
      // With the whole schema of the widget, kube-apiserver 1.37 breaks the connection.
      const spec = { type: 'object', properties };
      const openAPIV3Schema = { type: 'object', properties: { spec } };
      crd.spec.versions = [{ name, served, storage, schema: { openAPIV3Schema } }];
      change(crd, properties);
    });
    const { body } = await api.post(CRDS, crd);
    return body.details.causes.map(({ field }: Json) => field.replace(/^.*properties/, ''));
  };
  const a = (schema: Json) => causesOf((_, properties) => (properties.a = schema));
  assert.deepEqual(await a({ $ref: '#/definitions/x' }), ['[a].$ref']);
  assert.deepEqual(await a({ type: 'array', items: [{ type: 'string' }] }), ['[a].items']);
  assert.deepEqual(
    await causesOf(({ spec }) => spec.versions.push({ ...spec.versions[0], name: 'v7' })),
    ['spec.versions', 'status.storedVersions'],
  );
});
