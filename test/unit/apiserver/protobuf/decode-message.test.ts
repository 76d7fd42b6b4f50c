import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { BUILTIN_KINDS } from '../../../../src/apiserver/builtin/kinds.ts';
import {
  decodeMessage,
  emptyMessage,
  messageType,
} from '../../../../src/apiserver/protobuf/decode-message.ts';
import type { MessageType } from '../../../../src/apiserver/protobuf/decode-message.ts';
import {
  decodeProtobufBody,
  bodyLength,
  encodeBody,
  messageOfKind,
} from '../../../../src/apiserver/protobuf/protobuf-body.ts';
import { WireError } from '../../../../src/apiserver/protobuf/wire-reader.ts';
import { double, field, message, tag } from './wire-writer.ts';

const POD = typeNamed('core.v1.Pod');
const CONFIG_MAP = typeNamed('core.v1.ConfigMap');
const SCHEMA = typeNamed('apiextensions.v1.JSONSchemaProps');

function typeNamed(name: string): MessageType {
  const type = messageType(name);
  assert.ok(type, name);
  return type;
}

function specOf(...fields: readonly Uint8Array[]): unknown {
  return decodeMessage(POD, field(2, message(...fields)))['spec'];
}

function schemaOf(...fields: readonly Uint8Array[]): unknown {
  return decodeMessage(SCHEMA, message(...fields));
}

function refusal(type: MessageType, bytes: Uint8Array): string {
  try {
    decodeMessage(type, bytes);
  } catch (error) {
    assert.ok(error instanceof WireError, String(error));
    return error.message;
  }
  return assert.fail('was decoded');
}

test('every built-in kind has a message, and all messages of its fields exist', () => {
  const pending = BUILTIN_KINDS.map((kind) => {
    const type = messageOfKind(kind);
    assert.ok(type, kind.kind);
    return type;
  });
  const seen = new Set(pending);
  for (const type of pending) {
    for (const field of type.fields.values()) {
      if (typeof field.type === 'string') continue;
      const other = typeNamed(field.type.message);
      if (!seen.has(other)) pending.push(other);
      seen.add(other);
    }
  }
});

test('decodes objects to the same JSON as Go', () => {
  // Random objects, encoded as protobuf and as JSON by k8s.io/apimachinery v0.36.3.
  const lines = readFileSync(join(import.meta.dirname, 'go-objects.jsonl'), 'utf8').trim();
  for (const line of lines.split('\n')) {
    const { protobuf, json, ...kind } = JSON.parse(line);
    const type = messageOfKind(kind);
    assert.ok(type, kind.kind);
    const decoded = decodeProtobufBody(Buffer.from(protobuf, 'base64'), kind, type);
    assert.deepEqual(JSON.parse(JSON.stringify(decoded)), json, kind.kind);
  }
});

test('encodes objects to the same bytes as Go', () => {
  const lines = readFileSync(join(import.meta.dirname, 'go-objects.jsonl'), 'utf8').trim();
  // JSON has no pointer to a zero value: it is null, as is no pointer.
  for (const line of lines.split('\n').filter((each) => !each.includes(':null'))) {
    const { protobuf, json, ...kind } = JSON.parse(line);
    const bytes = encodeBody(json);
    assert.equal(Buffer.from(bytes).toString('base64'), protobuf, kind.kind);
    const type = messageOfKind(kind);
    assert.ok(type, kind.kind);
    assert.equal(bodyLength(json, type), bytes.byteLength, kind.kind);
  }
});

describe('a zero value', () => {
  test('is omitted unless Go encodes it or the field is a pointer', () => {
    const container = message(field(1, ''), field(2, ''), field(17, false));
    assert.deepEqual(specOf(field(2, container), field(4, 0), field(11, false)), {
      containers: [{ name: '', resources: {} }],
      terminationGracePeriodSeconds: 0,
    });
  });

  test('is an empty object for a struct and null for a list', () => {
    assert.deepEqual(emptyMessage(POD), { metadata: {}, spec: { containers: null }, status: {} });
  });
});

describe('values', () => {
  test('decodes signed 64-bit and 32-bit integers', () => {
    assert.deepEqual(specOf(field(4, -5), field(25, -7n), field(5, 2 ** 40)), {
      containers: null,
      terminationGracePeriodSeconds: -5,
      activeDeadlineSeconds: 2 ** 40,
      priority: -7,
    });
  });

  test('text keeps a byte order mark, and invalid UTF-8 is replaced', () => {
    const entry = (key: string, value: Uint8Array) =>
      field(2, message(field(1, key), field(2, value)));
    const { data } = decodeMessage(
      CONFIG_MAP,
      message(entry('bom', Buffer.from('\ufeffx')), entry('bad', Buffer.of(0x61, 0xff))),
    );
    assert.deepEqual(data, { bom: '\ufeffx', bad: 'a\ufffd' });
  });

  test('a map accepts any key, takes the last value of a key, and defaults a missing key or value', () => {
    const entry = (...fields: readonly Uint8Array[]) => field(2, message(...fields));
    const { data } = decodeMessage(
      CONFIG_MAP,
      message(
        entry(field(1, '__proto__'), field(2, 'x')),
        entry(field(1, 'a'), field(2, '1')),
        entry(field(2, '2'), field(1, 'a')),
        entry(field(1, 'b')),
        // A text by its tag of a number, whose wire type is not checked.
        entry(Buffer.of(0x08, 1, 0x63), field(2, '3')),
        entry(field(2, 'nameless')),
      ),
    );
    const expected = JSON.parse('{"__proto__":"x","a":"2","b":"","c":"3","":"nameless"}');
    assert.deepEqual(Object.entries(Object(data)), Object.entries(expected));
    assert.equal(Object.getPrototypeOf(data), Object.prototype);
  });

  test('decodes packed and unpacked lists of numbers', () => {
    const context = message(field(4, 1), field(4, Buffer.of(2, 3)), field(4, Buffer.of()));
    assert.deepEqual(specOf(field(14, context)), {
      containers: null,
      securityContext: { supplementalGroups: [1, 2, 3] },
    });
  });

  test('merges the parts of a message', () => {
    const { metadata } = decodeMessage(
      CONFIG_MAP,
      message(field(1, field(1, 'a')), field(1, field(3, 'ns')), field(1, field(1, 'b'))),
    );
    assert.deepEqual(metadata, { name: 'b', namespace: 'ns' });
  });

  test('quantities are canonical', () => {
    const quantity = (text: string) => message(field(1, 'cpu'), field(2, field(1, text)));
    const resources = typeNamed('core.v1.ResourceRequirements');
    assert.deepEqual(decodeMessage(resources, field(1, quantity('0.50'))), {
      limits: { cpu: '500m' },
    });
    assert.deepEqual(decodeMessage(resources, field(1, field(1, 'cpu'))), { limits: { cpu: '0' } });
    assert.match(refusal(resources, field(1, quantity('much'))), /^quantities must match/);
  });

  test('decodes times: absent, the epoch, before it, with a fraction', () => {
    const metadata = (...time: readonly Uint8Array[]) =>
      decodeMessage(CONFIG_MAP, field(1, field(8, message(...time))))['metadata'];
    assert.deepEqual(metadata(), {});
    assert.deepEqual(metadata(field(1, -62_135_596_800), field(2, 0)), {});
    assert.deepEqual(metadata(field(1, 0)), { creationTimestamp: '1970-01-01T00:00:00Z' });
    assert.deepEqual(metadata(field(1, 1e9), field(2, 5)), {
      creationTimestamp: '2001-09-09T01:46:40Z',
    });
    const lease = (...time: readonly Uint8Array[]) =>
      decodeMessage(typeNamed('coordination.v1.LeaseSpec'), field(3, message(...time)));
    assert.deepEqual(lease(field(1, -1), field(2, 999_999_999)), {
      acquireTime: '1969-12-31T23:59:59.999999Z',
    });
    assert.deepEqual(lease(field(1, 5)), { acquireTime: '1970-01-01T00:00:05.000000Z' });
    assert.deepEqual(lease(field(1, 5), field(2, -1000)), {
      acquireTime: '1970-01-01T00:00:04.999999Z',
    });
    assert.match(
      refusal(typeNamed('meta.v1.ObjectMeta'), field(8, field(1, 2n ** 62n))),
      /year outside of range/,
    );
  });

  test('decodes the union types of CRD schemas', () => {
    const inner = field(5, 'string');
    assert.deepEqual(schemaOf(field(24, field(1, inner))), { items: { type: 'string' } });
    assert.deepEqual(schemaOf(field(24, message(field(2, inner), field(2, '')))), {
      items: [{ type: 'string' }, {}],
    });
    assert.deepEqual(schemaOf(field(30, field(1, true))), { additionalProperties: true });
    assert.deepEqual(schemaOf(field(30, field(1, false))), { additionalProperties: false });
    assert.deepEqual(schemaOf(field(30, field(2, ''))), { additionalProperties: {} });
    assert.deepEqual(schemaOf(field(8, field(1, '{"a":[1]}')), double(9, -0.5), field(8, '')), {
      default: { a: [1] },
      maximum: -0.5,
    });
  });

  test('skips unknown fields and groups', () => {
    const unknown = message(
      field(1000, 'x'),
      field(1001, 7),
      double(1002, 1),
      message(tag(1003, 5), Buffer.alloc(4)),
      message(tag(1004, 3), field(1, 'in'), tag(2, 3), tag(2, 4), tag(1004, 4)),
    );
    assert.deepEqual(decodeMessage(CONFIG_MAP, message(unknown, field(4, true), unknown)), {
      metadata: {},
      immutable: true,
    });
  });
});

describe('rejects malformed messages', () => {
  for (const [what, bytes, reason] of [
    ['a value of another wire type', field(1, 5), 'proto: wrong wireType = 0 for field Metadata'],
    ['a length beyond the end', Buffer.of(0x0a, 5, 1), 'unexpected EOF'],
    ['a tag cut short', Buffer.of(0x80), 'unexpected EOF'],
    ['a number cut short', Buffer.of(0x20, 0xff), 'unexpected EOF'],
    [
      'a number too long',
      Buffer.of(0x20, ...Array<number>(11).fill(0xff)),
      'proto: integer overflow',
    ],
    [
      'a negative length',
      Buffer.of(0x0a, ...Array<number>(9).fill(0xff), 1),
      'proto: negative length found during unmarshaling',
    ],
    ['field 0', Buffer.of(0), 'proto: ConfigMap: illegal tag 0 (wire type 0)'],
    ['the end of no group', tag(9, 4), 'proto: ConfigMap: wiretype end group for non-group'],
    ['a group without end', tag(9, 3), 'unexpected EOF'],
    ['a wire type that is none', tag(9, 6), 'proto: illegal wireType 6'],
  ] as const) {
    test(what, () => assert.equal(refusal(CONFIG_MAP, bytes), reason));
  }

  test('rejects numbers that JSON does not have', () => {
    assert.match(refusal(SCHEMA, double(9, Number.NaN)), /unsupported value: NaN/);
  });

  test('rejects malformed embedded JSON', () => {
    assert.match(refusal(SCHEMA, field(8, field(1, '{'))), /json parse error/);
  });

  test('rejects an IntOrString of an unknown type', () => {
    const port = field(1, field(4, field(1, 2)));
    assert.equal(refusal(typeNamed('core.v1.ServiceSpec'), port), 'impossible IntOrString.Type');
  });
});
