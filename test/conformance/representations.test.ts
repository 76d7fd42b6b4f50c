import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { Api, assertRejected, JSON_TYPE } from './api.ts';
import {
  configMap,
  configMaps,
  CRDS,
  GROUP,
  pod,
  pods,
  widget,
  widgetCrd,
  widgets,
} from './objects.ts';
import { skipBefore } from '../support/skip.ts';

let api: Api;

before(async () => {
  api = await Api.start();
  await api.install(widgetCrd());
  space = await api.namespace();
  await api.made(api.post(widgets(space), widget('a')));
  await api.made(api.post(configMaps(space), configMap('a')));
  await api.made(api.post(pods(space), pod('p')));
});

after(() => api.close());

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const METADATA = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io';
const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';
const AGE = /^(?:\d+[smh])+$/;
let space: string;

function shape(table: Json): Json {
  return table.columnDefinitions.map(({ name, type, format, priority }: Json) => [
    name,
    type,
    format,
    priority,
  ]);
}

test('a table of custom resources has the printer columns of their CRD', async () => {
  const { status, headers, body } = await api.get(widgets(space), TABLE);
  assert.deepEqual([status, headers['content-type']], [200, JSON_TYPE]);
  assert.deepEqual([body.kind, body.apiVersion], ['Table', 'meta.k8s.io/v1']);
  assert.match(body.metadata.resourceVersion, /^[1-9]\d*$/);
  assert.deepEqual(shape(body), [
    ['Name', 'string', 'name', 0],
    ['Size', 'integer', '', 0],
    ['Age', 'date', '', 0],
  ]);
  assert.equal(body.columnDefinitions[1].description, 'How large.');
  const [row, ...others] = body.rows;
  assert.deepEqual(others, []);
  assert.deepEqual(row.cells.slice(0, 2), ['a', 1]);
  assert.match(row.cells[2], AGE);
  const { kind, apiVersion, metadata } = row.object;
  assert.deepEqual(
    [kind, apiVersion, metadata.name],
    ['PartialObjectMetadata', 'meta.k8s.io/v1', 'a'],
  );
});

test('a table of a built-in kind has the columns that kubectl shows', async () => {
  const configs = (await api.get(configMaps(space), TABLE)).body;
  assert.deepEqual(shape(configs), [
    ['Name', 'string', 'name', 0],
    ['Data', 'string', '', 0],
    ['Age', 'string', '', 0],
  ]);
  const listed = (await api.get(pods(space), TABLE)).body;
  assert.deepEqual(shape(listed), [
    ['Name', 'string', 'name', 0],
    ['Ready', 'string', '', 0],
    ['Status', 'string', '', 0],
    ['Restarts', 'string', '', 0],
    ['Age', 'string', '', 0],
    ['IP', 'string', '', 1],
    ['Node', 'string', '', 1],
    ['Nominated Node', 'string', '', 1],
    ['Readiness Gates', 'string', '', 1],
  ]);
  const [name, ready, phase, restarts, age, ...wide] = listed.rows[0].cells;
  assert.deepEqual([name, ready, phase, restarts], ['p', '0/1', 'Pending', '0']);
  assert.match(age, AGE);
  assert.deepEqual(wide, ['<none>', '<none>', '<none>', '<none>']);
});

test('a table of CRDs shows their scope, versions and state', skipBefore(37), async () => {
  const { body } = await api.get(`${CRDS}/widgets.${GROUP}`, TABLE);
  const cells = body.rows[0].cells;
  cells[3] = 'time';
  assert.deepEqual(cells, [
    `widgets.${GROUP}`,
    'Namespaced',
    'v1(storage)',
    'time',
    GROUP,
    'Widget',
    'wd',
    true,
  ]);
});

test('one object is a table with one row', async () => {
  const { body } = await api.get(`${configMaps(space)}/a`, TABLE);
  assert.deepEqual([body.kind, body.rows.length, body.rows[0].cells[0]], ['Table', 1, 'a']);
});

test('a row includes the object as requested by includeObject', async () => {
  const carried = async (include: string) => {
    const { body } = await api.get(`${configMaps(space)}?includeObject=${include}`, TABLE);
    return body.rows[0].object;
  };
  assert.equal(await carried('None'), null);
  assert.equal((await carried('Metadata')).kind, 'PartialObjectMetadata');
  assert.deepEqual((await carried('Object')).data, { a: '1' });
  assertRejected(await api.get(`${configMaps(space)}?includeObject=Odd`, TABLE), {
    code: 400,
    reason: 'BadRequest',
    message:
      "Unable to convert to Table as requested: includeObject: Invalid value: \"Odd\": must be 'Metadata', 'Object', 'None', or empty",
  });
});

test('an older version of tables is supported', async () => {
  const { body } = await api.get(configMaps(space), TABLE.replace('v=v1', 'v=v1beta1'));
  assert.deepEqual([body.kind, body.apiVersion], ['Table', 'meta.k8s.io/v1beta1']);
});

test('an error is not converted to a table', async () => {
  const { status, body } = await api.get(`${widgets(space)}/nope`, TABLE);
  assert.deepEqual([status, body.kind], [404, 'Status']);
});

test('only metadata can be requested', async () => {
  const one = (await api.get(`${widgets(space)}/a`, METADATA)).body;
  assert.deepEqual(Object.keys(one).toSorted(), ['apiVersion', 'kind', 'metadata']);
  assert.deepEqual(
    [one.kind, one.apiVersion, one.metadata.name],
    ['PartialObjectMetadata', 'meta.k8s.io/v1', 'a'],
  );
  const all = (await api.get(widgets(space), METADATA_LIST)).body;
  assert.deepEqual([all.kind, all.apiVersion], ['PartialObjectMetadataList', 'meta.k8s.io/v1']);
  assert.deepEqual(Object.keys(all.items[0]).toSorted(), ['apiVersion', 'kind', 'metadata']);
});

test('the form of a list is not valid for one object, nor the other way round', async () => {
  const wrong = [
    [
      `${configMaps(space)}/a`,
      METADATA_LIST,
      'PartialObjectMetadataList',
      'is not a list (*core.ConfigMap)',
    ],
    [configMaps(space), METADATA, 'PartialObjectMetadata', 'is a list (*core.ConfigMapList)'],
    [
      widgets(space),
      METADATA,
      'PartialObjectMetadata',
      'is a list (*unstructured.UnstructuredList)',
    ],
  ] as const;
  for (const [path, accept, form, is] of wrong) {
    assertRejected(await api.get(path, accept), {
      code: 406,
      reason: 'NotAcceptable',
      message: `you requested ${form}, but the requested object ${is}`,
    });
  }
});

test('the first supported media type is used', async () => {
  for (const accept of [
    `${TABLE},${JSON_TYPE}`,
    `application/xml,${TABLE}`,
    `${TABLE.replace('v=v1', 'v=v7')},${TABLE}`,
  ]) {
    assert.equal((await api.get(configMaps(space), accept)).body.kind, 'Table', accept);
  }
  for (const accept of [
    '*/*',
    'application/json;q=0.5, text/html',
    'application/json;charset=utf-8',
  ]) {
    assert.equal((await api.get(configMaps(space), accept)).body.kind, 'ConfigMapList', accept);
  }
});

test('an unsupported media type is rejected', async () => {
  for (const accept of [
    TABLE.replace('v=v1', 'v=v7'),
    TABLE.replace('Table', 'Chair'),
    'application/json;as=Table',
  ]) {
    const { status, body } = await api.get(configMaps(space), accept);
    assert.deepEqual([status, body.reason, body.code], [406, 'NotAcceptable', 406], accept);
    assert.match(body.message, /^only the following media types are accepted: application\/json/);
  }
  const { status, body } = await api.get(configMaps(space), 'text/html');
  assert.deepEqual([status, body.reason, body.code], [406, 'NotAcceptable', 406]);
});

test('JSON escapes the characters that HTML treats specially, in all but the OpenAPI document of version 2', async () => {
  const special = '<b> & \u2028\u2029';
  const escaped = '\\u003cb\\u003e \\u0026 \\u2028\\u2029';
  const annotations = { special };
  const group = 'escapes.example.com';
  const crd = widgetCrd(group);
  const [version] = crd.spec.versions;
  version.schema.openAPIV3Schema.description = special;
  const column = {
    name: 'All',
    type: 'string',
    jsonPath: '.metadata.annotations',
    description: special,
  };
  version.additionalPrinterColumns = [column];
  await api.install(crd);
  const objects = `/apis/${group}/v1/namespaces/${space}/widgets`;
  const object = {
    apiVersion: `${group}/v1`,
    kind: 'Widget',
    metadata: { name: 'special', annotations },
    spec: { size: 1, color: 'red' },
  };
  await api.made(api.post(objects, object));
  const text = { ...configMap('special'), data: { special } };
  await api.made(api.post(configMaps(space), text));
  for (const [path, accept] of [
    [`${configMaps(space)}/special`],
    [`${configMaps(space)}/special?pretty=1`],
    [configMaps(space)],
    [objects],
    [objects, TABLE],
    [`${CRDS}/${crd.metadata.name}`],
    [`/openapi/v3/apis/${group}/v1`],
    [`${configMaps(space)}/${encodeURIComponent(special)}`],
  ] as const) {
    // The OpenAPI document of a new kind is served later.
    await api.until(path, async () => (await api.get(path, accept)).text.startsWith('{'));
    const reply = await api.get(path, accept);
    assert.ok(reply.text.includes(escaped), path);
    assert.ok(!/[<>&\u2028\u2029]/.test(reply.text), path);
  }
  const { body } = await api.get(`${objects}/special`, TABLE);
  assert.equal(body.rows[0].cells[1], `{"special":"${escaped}"}`);
});
