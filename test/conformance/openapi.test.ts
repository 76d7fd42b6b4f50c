import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { WireReader } from '../../src/apiserver/protobuf/wire-reader.ts';
import type { Json } from './api.ts';
import { Api, JSON_TYPE } from './api.ts';
import { GROUP, widgetCrd } from './objects.ts';

let api: Api;

before(async () => {
  api = await Api.start();
  await api.install(widgetCrd());
  await api.until('the kind is published', async () => {
    const { definitions } = JSON.parse((await api.get('/openapi/v2')).text);
    if (!definitions[WIDGET]) return false;
    // The server publishes the two versions independently of each other.
    const { status, text } = await api.get(`/openapi/v3/apis/${GROUP}/v1`);
    return status === 200 && JSON.parse(text).components?.schemas?.[WIDGET];
  });
});

after(() => api.close());

const WIDGET = 'com.example.conformance.v1.Widget';

/** Returns the length-delimited fields of a message by their numbers. */
function fieldsOf(bytes: Uint8Array): Map<number, Uint8Array[]> {
  const reader = new WireReader(bytes);
  const fields = new Map<number, Uint8Array[]>();
  for (let tag = reader.tag('Message'); tag; tag = reader.tag('Message')) {
    if (tag.wireType !== 2) {
      reader.skip(tag.wireType);
      continue;
    }
    const values = fields.get(tag.number) ?? [];
    fields.set(tag.number, [...values, reader.bytes()]);
  }
  return fields;
}

const textIn = (fields: Map<number, Uint8Array[]>, number: number): string =>
  Buffer.from(fields.get(number)?.[0] ?? []).toString();

/** Returns the entries of a map in a message of gnostic. */
const namesIn = (bytes: Uint8Array = new Uint8Array(), field: number = 1): string[] =>
  (fieldsOf(bytes).get(field) ?? []).map((entry) => textIn(fieldsOf(entry), 1));

test('the types and fields of built-in kinds have descriptions, for kubectl explain', async () => {
  const v2 = (await api.get('/openapi/v2')).body.definitions;
  const v3 = (await api.get('/openapi/v3/apis/apps/v1')).body.components.schemas;
  for (const schemas of [v2, v3]) {
    const { description, properties } = schemas['io.k8s.api.apps.v1.DeploymentSpec'];
    assert.match(description, /^DeploymentSpec is the specification/);
    assert.match(properties.replicas.description, /^Number of desired pods\./);
    // A field that refers to another type.
    assert.match(properties.template.description, /^Template describes the pods/);
  }
});

test('OpenAPI v2 contains the paths and the schema of every kind', async () => {
  const { status, headers, body } = await api.get('/openapi/v2');
  assert.deepEqual([status, headers['content-type']], [200, JSON_TYPE]);
  assert.deepEqual([body.swagger, body.info.title], ['2.0', 'Kubernetes']);
  const { definitions, paths } = body;
  assert.deepEqual(definitions[WIDGET]['x-kubernetes-group-version-kind'], [
    { group: GROUP, kind: 'Widget', version: 'v1' },
  ]);
  assert.deepEqual(definitions[WIDGET]['x-kubernetes-selectable-fields'], [
    { fieldPath: 'spec.color' },
  ]);
  const { properties } = definitions[WIDGET];
  assert.equal(
    properties.metadata.$ref,
    '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta',
  );
  assert.match(properties.apiVersion.description, /^APIVersion defines the versioned schema/);
  const { creationTimestamp } =
    definitions['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'].properties;
  assert.match(creationTimestamp.description, /^CreationTimestamp is a timestamp/);
  assert.deepEqual(properties.spec.properties.size, { type: 'integer', minimum: 0, maximum: 10 });
  const containers = definitions['io.k8s.api.core.v1.PodSpec'].properties.containers;
  assert.deepEqual(containers.items, { $ref: '#/definitions/io.k8s.api.core.v1.Container' });
  assert.equal(containers['x-kubernetes-patch-merge-key'], 'name');
  const { get, post } = paths[`/apis/${GROUP}/v1/namespaces/{namespace}/widgets`];
  assert.deepEqual(
    [get.operationId, get['x-kubernetes-action'], get.responses['200'].schema],
    [
      'listConformanceExampleComV1NamespacedWidget',
      'list',
      { $ref: `#/definitions/${WIDGET}List` },
    ],
  );
  const sent = post.parameters.find((parameter: Json) => parameter.in === 'body');
  assert.deepEqual(
    [sent.name, sent.required, sent.schema],
    ['body', true, { $ref: `#/definitions/${WIDGET}` }],
  );
});

test('OpenAPI v2 is served as protobuf, as kubectl requests it', async () => {
  const json = (await api.get('/openapi/v2')).body;
  const { status, headers, bytes } = await api.get(
    '/openapi/v2',
    'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
  );
  assert.equal(status, 200);
  assert.equal(
    headers['content-type'],
    'application/com.github.proto-openapi.spec.v2.v1.0+protobuf',
  );
  const document = fieldsOf(bytes);
  assert.equal(textIn(document, 1), '2.0');
  assert.deepEqual(namesIn(document.get(8)?.[0], 2), Object.keys(json.paths));
  assert.deepEqual(namesIn(document.get(9)?.[0]), Object.keys(json.definitions));
});

test('OpenAPI v3 is served as protobuf', async () => {
  const path = `/openapi/v3/apis/${GROUP}/v1`;
  const { body } = await api.get(path);
  for (const separator of ['@', '.']) {
    const type = `application/com.github.proto-openapi.spec.v3${separator}v1.0+protobuf`;
    const { headers, bytes } = await api.get(path, `${type}, application/json`);
    assert.equal(headers['content-type'], type.replace('@', '.'));
    const document = fieldsOf(bytes);
    assert.equal(textIn(document, 1), '3.0.0');
    assert.deepEqual(namesIn(document.get(4)?.[0]), Object.keys(body.paths));
    const components = fieldsOf(document.get(5)?.[0] ?? new Uint8Array());
    assert.deepEqual(namesIn(components.get(1)?.[0]), Object.keys(body.components.schemas));
  }
});

test('OpenAPI documents in a form that does not exist are not acceptable', async () => {
  for (const path of ['/openapi/v2', '/openapi/v3/api/v1']) {
    for (const accept of ['text/plain', 'application/yaml']) {
      const { status, text } = await api.get(path, accept);
      assert.deepEqual([status, text], [406, ''], path);
    }
  }
});
