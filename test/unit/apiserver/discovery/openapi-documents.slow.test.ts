import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BUILTIN_KINDS } from '../../../../src/apiserver/builtin/kinds.ts';
import {
  OpenApiDocuments,
  openApiResponse,
} from '../../../../src/apiserver/discovery/openapi-documents.ts';
import { Registry } from '../../../../src/apiserver/objects/registry.ts';
import { parseTarget } from '../../../../src/apiserver/request/request-info.ts';
import type { ResourceDefinition } from '../../../../src/apiserver/objects/resource-definition.ts';
import { customColumns } from '../../../../src/apiserver/table/custom-columns.ts';

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly description?: string;
  readonly required?: readonly string[];
  readonly 'x-kubernetes-group-version-kind'?: readonly object[];
}

interface Document {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, Record<string, unknown> & { parameters?: object[] }>>>
  >;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const count: ResourceDefinition = {
  group: 'demo.mark8s.io',
  version: 'v1',
  kind: 'Count',
  listKind: 'CountList',
  plural: 'counts',
  singular: 'count',
  shortNames: [],
  categories: [],
  namespaced: true,
  custom: true,
  subresources: {
    status: true,
    scale: { specReplicasPath: '.spec.count', statusReplicasPath: '.status.replicas' },
  },
  columns: customColumns([]),
  schema: {
    type: 'object',
    description: 'Runs a number of Pods.',
    properties: {
      spec: { type: 'object', description: 'What is wanted.', required: ['count'] },
      child: { type: 'object', 'x-kubernetes-embedded-resource': true },
    },
  },
};

function serve(...extra: readonly ResourceDefinition[]) {
  const registry = new Registry();
  for (const definition of [...BUILTIN_KINDS, ...extra]) registry.add(definition);
  const documents = new OpenApiDocuments(registry);
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const response = await openApiResponse(
      documents,
      { method: 'GET', path, headers },
      parseTarget(path),
    );
    if (!response) return undefined;
    const chunks = await Array.fromAsync(response.body);
    return { ...response, text: Buffer.concat(chunks).toString() };
  };
  return { registry, documents, get };
}

async function read(documents: OpenApiDocuments, path: string): Promise<Document> {
  return JSON.parse((await documents.document(path)?.json()) ?? '') as Document;
}

async function urls(documents: OpenApiDocuments): Promise<Record<string, string>> {
  const { paths } = JSON.parse(await (await documents.index()).json()) as {
    paths: Record<string, { serverRelativeURL: string }>;
  };
  return Object.fromEntries(
    Object.entries(paths).map(([path, { serverRelativeURL }]) => [path, serverRelativeURL]),
  );
}

test('the index has the document URL of each group version', async () => {
  const { documents } = serve(count);
  const found = await urls(documents);
  const expected = BUILTIN_KINDS.map(({ group, version }) =>
    group ? `apis/${group}/${version}` : `api/${version}`,
  );
  assert.deepEqual(
    Object.keys(found).toSorted(),
    [...new Set([...expected, 'apis/demo.mark8s.io/v1'])].toSorted(),
  );
  const hash = await documents.document('api/v1')?.hash();
  assert.equal(found['api/v1'], `/openapi/v3/api/v1?hash=${hash}`);
});

test('every reference in a document resolves within it', async () => {
  const { documents } = serve(count);
  for (const path of Object.keys(await urls(documents))) {
    const body = (await documents.document(path)?.json()) ?? '';
    const { schemas } = (JSON.parse(body) as Document).components;
    for (const [, name = ''] of body.matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      assert.ok(Object.hasOwn(schemas, name), `${path}: ${name}`);
    }
  }
});

test('each operation has its action and kind', async () => {
  const { paths } = await read(serve().documents, 'api/v1');
  const pods = paths['/api/v1/namespaces/{namespace}/pods/{name}'];
  const kind = { group: '', kind: 'Pod', version: 'v1' };
  for (const verb of ['get', 'put', 'patch', 'delete']) {
    assert.equal(pods?.[verb]?.['x-kubernetes-action'], verb);
    assert.deepEqual(pods?.[verb]?.['x-kubernetes-group-version-kind'], kind);
  }
  assert.equal(pods?.['patch']?.['operationId'], 'patchCoreV1NamespacedPod');
  assert.deepEqual(
    Object.keys(paths).filter((path) => /\/(pods|namespaces|namespaces\/\{name\}.*)$/.test(path)),
    [
      '/api/v1/namespaces',
      '/api/v1/namespaces/{name}',
      '/api/v1/namespaces/{name}/finalize',
      '/api/v1/namespaces/{name}/status',
      '/api/v1/pods',
      '/api/v1/namespaces/{namespace}/pods',
    ],
  );
});

test('patch operations have fieldValidation, and strategic merge patch only for built-in kinds', async () => {
  const { documents } = serve(count);
  const patchOf = async (document: string, path: string) => {
    const patch = (await read(documents, document)).paths[path]?.['patch'];
    assert.ok(patch);
    const { content } = patch['requestBody'] as { content: object };
    const names = (patch.parameters ?? []).map((each) => (each as { name: string }).name);
    return { names, types: Object.keys(content) };
  };
  const pod = await patchOf('api/v1', '/api/v1/namespaces/{namespace}/pods/{name}');
  const custom = await patchOf(
    'apis/demo.mark8s.io/v1',
    '/apis/demo.mark8s.io/v1/namespaces/{namespace}/counts/{name}',
  );
  assert.ok(pod.names.includes('fieldValidation') && custom.names.includes('fieldValidation'));
  assert.ok(pod.types.includes('application/strategic-merge-patch+json'));
  assert.ok(!custom.types.includes('application/strategic-merge-patch+json'));
});

test('the schema of a custom kind has the fields of its CRD and of every object', async () => {
  const { schemas } = (await read(serve(count).documents, 'apis/demo.mark8s.io/v1')).components;
  const schema = schemas['io.mark8s.demo.v1.Count'];
  assert.equal(schema?.description, 'Runs a number of Pods.');
  assert.equal(schema?.properties?.['spec']?.description, 'What is wanted.');
  assert.deepEqual(Object.keys(schema?.properties ?? {}).sort(), [
    'apiVersion',
    'child',
    'kind',
    'metadata',
    'spec',
  ]);
  assert.deepEqual(schema?.['x-kubernetes-group-version-kind'], [
    { group: 'demo.mark8s.io', kind: 'Count', version: 'v1' },
  ]);
  assert.deepEqual(schema?.properties?.['child']?.required, ['kind', 'apiVersion']);
  assert.ok(schemas['io.mark8s.demo.v1.CountList']?.properties?.['items']);
});

test('a custom kind without a schema declares no fields', async () => {
  const { schema: _, ...open } = count;
  const { schemas } = (await read(serve(open).documents, 'apis/demo.mark8s.io/v1')).components;
  assert.equal(schemas['io.mark8s.demo.v1.Count']?.properties, undefined);
});

test('only the document of a changed group version changes', async () => {
  const { registry, documents } = serve();
  const before = await urls(documents);
  assert.equal(documents.document('apis/demo.mark8s.io/v1'), undefined);
  registry.add(count);
  const added = await urls(documents);
  registry.add({ ...count, subresources: {} });
  const changed = await urls(documents);
  assert.equal(added['api/v1'], before['api/v1']);
  assert.notEqual(changed['apis/demo.mark8s.io/v1'], added['apis/demo.mark8s.io/v1']);
  registry.remove(count);
  assert.deepEqual(await urls(documents), before);
});

test('the same content has the same hash in another server', async () => {
  const hashes = [serve(count), serve(count)].map(async ({ documents }) =>
    (await documents.index()).hash(),
  );
  const [first, second] = await Promise.all(hashes);
  assert.equal(first, second);
});

test('a document with a hash in its URL is immutable', async () => {
  const { documents, get } = serve();
  const url = (await urls(documents))['apis/apps/v1'] ?? '';
  const response = await get(url);
  assert.equal(response?.status, 200);
  assert.equal(response?.headers['cache-control'], 'public, immutable');
  assert.equal(response?.text, await documents.document('apis/apps/v1')?.json());
});

test('an old hash redirects to the current document', async () => {
  const { documents, get } = serve();
  const response = await get('/openapi/v3/apis/apps/v1?hash=OLD');
  assert.equal(response?.status, 301);
  assert.equal(response?.headers['location'], (await urls(documents))['apis/apps/v1']);
});

test('answers a matching If-None-Match with 304', async () => {
  const { get } = serve();
  const first = await get('/openapi/v3');
  const again = await get('/openapi/v3', { 'if-none-match': first?.headers['etag'] ?? '' });
  assert.equal(again?.status, 304);
  assert.equal(again?.text, '');
});

test('does not answer other paths', async () => {
  const { get } = serve();
  for (const path of ['/openapi/v2/x', '/openapi/v3/apis/none/v1', '/openapi/v3/api', '/api/v1']) {
    assert.equal(await get(path), undefined, path);
  }
});

test('a kind that can only be created has one operation and no list', async () => {
  const { paths, components } = await read(serve().documents, 'apis/authorization.k8s.io/v1');
  const own = Object.keys(paths).map((path) => path.slice('/apis/authorization.k8s.io/v1/'.length));
  assert.deepEqual(own, [
    'namespaces/{namespace}/localsubjectaccessreviews',
    'selfsubjectaccessreviews',
    'selfsubjectrulesreviews',
    'subjectaccessreviews',
  ]);
  for (const [path, item] of Object.entries(paths)) {
    const isNamespaced = path.includes('{namespace}');
    assert.deepEqual(Object.keys(item), ['post', ...(isNamespaced ? ['parameters'] : [])], path);
  }
  assert.ok(!Object.keys(components.schemas).some((name) => name.endsWith('ReviewList')));
});

test('version 2 omits what its clients cannot read', async () => {
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;
  const { documents } = serve({
    ...count,
    schema: {
      type: 'object',
      properties: {
        nullable: { type: 'string', nullable: true, default: 'x' },
        open: { ...open, properties: { a: { type: 'string' } } },
        list: { type: 'array', items: { type: 'object', oneOf: [{ required: ['a'] }] } },
        map: { type: 'object', additionalProperties: { type: 'string', nullable: true } },
      },
    },
  });
  const { definitions } = JSON.parse(await documents.swagger().json()) as {
    definitions: Record<string, Schema>;
  };
  const {
    apiVersion: _,
    kind: __,
    metadata: ___,
    ...own
  } = definitions['io.mark8s.demo.v1.Count']?.properties ?? {};
  assert.deepEqual(own, {
    nullable: {},
    open: { 'x-kubernetes-preserve-unknown-fields': true },
    list: { type: 'array', items: { type: 'object' } },
    map: { type: 'object', additionalProperties: {} },
  });
});

test('version 2 declares no field of a kind with unknown fields, so that kubectl accepts them', async () => {
  const { group, version, kind } = count;
  const { documents } = serve({
    ...count,
    schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  });
  const { definitions } = JSON.parse(await documents.swagger().json()) as {
    definitions: Record<string, Schema>;
  };
  assert.deepEqual(definitions['io.mark8s.demo.v1.Count'], {
    type: 'object',
    'x-kubernetes-group-version-kind': [{ group, kind, version }],
  });
});

test('the version 2 document is generated again after a kind was added', async () => {
  const { documents, registry } = serve();
  const first = documents.swagger();
  assert.equal(documents.swagger(), first);
  registry.add(count);
  assert.match(await documents.swagger().json(), /io\.mark8s\.demo\.v1\.Count/);
  assert.equal(documents.swagger().protobuf?.(), documents.swagger().protobuf?.());
});
