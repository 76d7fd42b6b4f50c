import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { messageType } from '../../../../src/apiserver/protobuf/decode-message.ts';
import {
  decodeProtobufBody,
  messageOfKind,
} from '../../../../src/apiserver/protobuf/protobuf-body.ts';
import { MAX_BODY_BYTES } from '../../../../src/apiserver/request/request-body.ts';
import { StatusError } from '../../../../src/apiserver/objects/status-error.ts';
import type { HttpRequest } from '../../../../src/util/http.ts';
import type { Json, Reply } from '../api-client.ts';
import { Api, CONFIG_MAPS, COUNTS, PODS, apiWithCounts, count, pod } from '../api-client.ts';
import { body, field, message, tag, varint } from './wire-writer.ts';

const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';

async function send(
  api: Api,
  method: HttpRequest['method'],
  path: string,
  bytes: Uint8Array,
  accept = 'application/json',
): Promise<Pick<Reply, 'status' | 'body'>> {
  const headers = { 'content-type': PROTOBUF, 'user-agent': 'tester/1', accept };
  const reply = await api.server.handler({ method, path, headers, body: bytes });
  const chunks: Uint8Array[] = [];
  for await (const chunk of reply.body) chunks.push(chunk);
  return { status: reply.status, body: JSON.parse(Buffer.concat(chunks).toString()) };
}

function named(name: string): Buffer {
  return field(1, field(1, name));
}

function configMap(name: string): Buffer {
  return body(
    'v1',
    'ConfigMap',
    named(name),
    field(2, message(field(1, 'key'), field(2, 'value'))),
  );
}

function deployment(): Buffer {
  const labels = message(field(1, 'app'), field(2, 'web'));
  const container = message(field(1, 'web'), field(2, 'nginx:1'));
  const template = message(field(1, field(11, labels)), field(2, field(2, container)));
  return body(
    'apps/v1',
    'Deployment',
    named('web'),
    field(2, message(field(1, 2), field(2, field(1, labels)), field(3, template))),
  );
}

/** Metadata that differs between two created objects. */
function withoutIdentity({ metadata, ...rest }: Json): Json {
  const { uid: _uid, resourceVersion: _version, ...kept } = metadata;
  return { ...rest, metadata: kept };
}

describe('a protobuf body', () => {
  test('creates the same object as JSON', async () => {
    const api = new Api();
    const sent = await send(api, 'POST', DEPLOYMENTS, deployment());
    assert.equal(sent.status, 201);
    await api.delete(`${DEPLOYMENTS}/web`);
    const posted = await api.post(DEPLOYMENTS, {
      metadata: { name: 'web' },
      spec: {
        replicas: 2,
        selector: { matchLabels: { app: 'web' } },
        strategy: {},
        template: {
          metadata: { labels: { app: 'web' } },
          spec: { containers: [{ name: 'web', image: 'nginx:1', resources: {} }] },
        },
      },
      status: {},
    });
    assert.deepEqual(withoutIdentity(sent.body), withoutIdentity(posted.body));
  });

  test('may lack apiVersion and kind', async () => {
    const bytes = message(Buffer.from('k8s\0'), field(2, named('a')));
    assert.equal((await send(new Api(), 'POST', CONFIG_MAPS, bytes)).status, 201);
  });

  test('updates an object', async () => {
    const api = new Api();
    await send(api, 'POST', CONFIG_MAPS, configMap('a'));
    const bytes = body('v1', 'ConfigMap', named('a'), field(4, true));
    const { status, body: updated } = await send(api, 'PUT', `${CONFIG_MAPS}/a`, bytes);
    assert.equal(status, 200);
    assert.deepEqual([updated.immutable, updated.data], [true, undefined]);
  });

  test('sets the delete options, also for a custom object', async () => {
    const api = await apiWithCounts();
    await api.post(COUNTS, count('c'));
    const stale = field(2, field(2, '1'));
    const refused = await send(api, 'DELETE', `${COUNTS}/c`, body('v1', 'DeleteOptions', stale));
    assert.equal(refused.status, 409);
    const options = body('demo.mark8s.io/v1', 'DeleteOptions', field(1, 0), field(4, 'Background'));
    assert.equal((await send(api, 'DELETE', `${COUNTS}/c`, options)).status, 200);
  });

  test('is accepted by scale, binding and eviction', async () => {
    const api = new Api();
    await send(api, 'POST', DEPLOYMENTS, deployment());
    const scale = body('autoscaling/v1', 'Scale', named('web'), field(2, field(1, 7)));
    const scaled = await send(api, 'PUT', `${DEPLOYMENTS}/web/scale`, scale);
    assert.deepEqual([scaled.status, scaled.body.spec], [200, { replicas: 7 }]);

    await api.post(PODS, pod('p'));
    const target = field(2, message(field(1, 'Node'), field(3, 'node-1')));
    const binding = body('v1', 'Binding', named('p'), target);
    assert.equal((await send(api, 'POST', `${PODS}/p/binding`, binding)).status, 201);
    assert.equal((await api.get(`${PODS}/p`)).body.spec.nodeName, 'node-1');
    const eviction = body('policy/v1', 'Eviction', named('p'), field(2, field(1, 0)));
    assert.equal((await send(api, 'POST', `${PODS}/p/eviction`, eviction)).status, 201);
    assert.equal((await api.get(`${PODS}/p`)).status, 404);
  });

  test('is rejected for custom kinds', async () => {
    const api = await apiWithCounts();
    const bytes = body('demo.mark8s.io/v1', 'Count', named('c'));
    const { status, body: answer } = await send(api, 'POST', COUNTS, bytes);
    assert.equal(status, 415);
    assert.match(answer.message, /include: application\/json, application\/yaml/);
  });

  test('is rejected for a custom kind with the name of a built-in kind', () => {
    const deployment = { group: 'apps.example.com', version: 'v1', kind: 'Deployment' };
    assert.equal(messageOfKind({ ...deployment, custom: true }), undefined);
  });

  test('is accepted as delete options only for deletes', async () => {
    const reply = await send(
      new Api(),
      'DELETE',
      `${CONFIG_MAPS}/a`,
      body('v1', 'Pod', field(1, 0)),
    );
    assert.equal(reply.status, 400);
    assert.match(reply.body.message, /kind in the data \(Pod\) does not match/);
  });

  test('is rejected if it is too large', async () => {
    const bytes = new Uint8Array(MAX_BODY_BYTES + 1);
    assert.equal((await send(new Api(), 'POST', CONFIG_MAPS, bytes)).status, 413);
  });

  test('gets a response in protobuf if the client accepts it', async () => {
    const { server } = new Api();
    const headers = { 'content-type': PROTOBUF, accept: PROTOBUF };
    const request = { path: CONFIG_MAPS, headers };
    const created = await server.handler({ ...request, method: 'POST', body: configMap('a') });
    assert.deepEqual([created.status, created.headers['content-type']], [201, PROTOBUF]);
    const kind = { group: '', version: 'v1', kind: 'ConfigMap' };
    const type = messageOfKind(kind);
    assert.ok(type);
    const chunks: Uint8Array[] = [];
    for await (const chunk of created.body) chunks.push(chunk);
    assert.deepEqual(decodeProtobufBody(Buffer.concat(chunks), kind, type)['data'], {
      key: 'value',
    });
  });
});

describe('a malformed body is a 400', () => {
  const unrecognized = 'the object provided is unrecognized (must be of type ConfigMap): ';
  const cannotBeHandled = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: ';
  for (const [what, bytes, expected] of [
    ['nothing', Buffer.of(), `${unrecognized}empty data (<empty>)`],
    ['a prefix alone', Buffer.from('k8s\0'), `${unrecognized}empty body (6b387300)`],
    [
      'JSON',
      Buffer.from(`{"kind":"ConfigMap","apiVersion":"v1"}`),
      `${unrecognized}provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({"kind":"ConfigMap","apiVersio ...)`,
    ],
    [
      'an envelope cut short',
      configMap('a').subarray(0, 12),
      `${unrecognized}unexpected EOF (6b3873000a0f0a0276311209)`,
    ],
    [
      'a message cut short',
      body('v1', 'ConfigMap', named('a').subarray(0, 3)),
      `${cannotBeHandled}unexpected EOF`,
    ],
    [
      'another kind',
      body('v1', 'Secret', named('a')),
      'Secret in version "v1" cannot be handled as a ConfigMap: the kind in the data (Secret) does not match the expected kind (ConfigMap)',
    ],
    [
      'another version',
      body('v2', 'ConfigMap', named('a')),
      'ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"',
    ],
  ] as const) {
    test(what, async () => {
      const { status, body: answer } = await send(new Api(), 'POST', CONFIG_MAPS, bytes);
      assert.deepEqual([status, answer.message], [400, expected]);
    });
  }

  test('rejects schemas that are nested too deeply', async () => {
    const parts: Buffer[] = [field(5, 'object')];
    let bytesInside = parts[0]?.length ?? 0;
    for (let depth = 0; depth < 10_000; depth++) {
      const head = message(tag(28, 2), varint(BigInt(bytesInside)));
      parts.push(head);
      bytesInside += head.length;
    }
    const schema = message(...parts.reverse());
    const version = message(field(1, 'v1'), field(4, field(1, schema)));
    const bytes = body(
      'apiextensions.k8s.io/v1',
      'CustomResourceDefinition',
      field(2, field(7, version)),
    );
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const { status, body: answer } = await send(new Api(), 'POST', path, bytes);
    assert.equal(status, 400);
    assert.match(answer.message, /exceeded max depth/);
  });
});

test('decodes or rejects arbitrary bytes', () => {
  const kinds = [
    { group: '', version: 'v1', kind: 'ConfigMap' },
    { group: 'apps', version: 'v1', kind: 'Deployment' },
  ];
  const random = seeded(1);
  const outcomes = new Map<string, number>();
  for (let round = 0; round < 1500; round++) {
    const kind = kinds[round % kinds.length] ?? assert.fail();
    const type = messageType(`${kind.group || 'core'}.v1.${kind.kind}`) ?? assert.fail();
    const bytes = damaged(kind.group ? deployment() : configMap('a'), random);
    const outcome = outcomeOf(() => decodeProtobufBody(bytes, kind, type));
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }
  assert.deepEqual([...outcomes.keys()].sort(), ['decoded', 'refused']);
});

function outcomeOf(decode: () => unknown): string {
  try {
    decode();
    return 'decoded';
  } catch (error) {
    if (error instanceof StatusError && error.status.code === 400) return 'refused';
    throw error;
  }
}

/** Mutated bytes: some changed, truncated, or random bytes after the prefix. */
function damaged(bytes: Uint8Array, random: () => number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  const changes = random() < 0.2 ? copy.length : 1 + Math.floor(random() * 3);
  for (let change = 0; change < changes; change++) {
    copy[4 + Math.floor(random() * (copy.length - 4))] = Math.floor(random() * 256);
  }
  return random() < 0.3 ? copy.subarray(0, Math.floor(random() * copy.length)) : copy;
}

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return state / 0x8000_0000;
  };
}
