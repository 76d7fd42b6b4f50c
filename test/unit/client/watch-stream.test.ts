import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { ApiError, isExpired } from '../../../src/api/api-error.ts';
import type { WatchEvent } from '../../../src/api/object.ts';
import { Decoder } from '../../../src/client/decoder.ts';
import type { WatchStreamOptions } from '../../../src/client/watch-stream.ts';
import { watchStream } from '../../../src/client/watch-stream.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { CONFIG_MAPS } from '../../../src/api/builtin.ts';
import type { ConfigMap } from '../../../src/api/builtin.ts';
import { configMap } from './server.ts';

type Event = WatchEvent<ConfigMap>;

function open(
  body: Iterable<Uint8Array | string> | AsyncIterable<Uint8Array>,
  options: Partial<WatchStreamOptions<ConfigMap>> = {},
) {
  return watchStream({
    resource: CONFIG_MAPS,
    body: bytes(body),
    decoder: new Decoder(),
    clock: new FakeClock(),
    call: 'GET https://test/watch',
    ...options,
  });
}

async function* bytes(
  parts: Iterable<Uint8Array | string> | AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const part of parts) yield typeof part === 'string' ? Buffer.from(part) : part;
}

/** The events before the end, and the error at the end. */
async function drain(stream: AsyncIterable<Event>): Promise<{ events: Event[]; error?: unknown }> {
  const events: Event[] = [];
  try {
    for await (const event of stream) events.push(event);
    return { events };
  } catch (error) {
    return { events, error };
  }
}

function line(type: string, object: unknown): string {
  return `${JSON.stringify({ type, object })}\n`;
}

async function failure(body: readonly (Uint8Array | string)[]): Promise<ApiError> {
  const { error } = await drain(open(body));
  assert.ok(error instanceof ApiError, String(error));
  return error;
}

test('decodes events for any division into chunks', async () => {
  const texts = fc.string({ unit: 'grapheme', maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ type: fc.constantFrom('ADDED', 'MODIFIED', 'DELETED'), text: texts })),
      fc.array(fc.nat(), { maxLength: 20 }),
      fc.constantFrom('\n', '\r\n', '\n\n', '\r\n\r\n'),
      async (sent, cuts, newline) => {
        const objects = sent.map(({ text }, index) => ({
          ...configMap(`n-${index}`),
          data: { [text]: text },
        }));
        const stream = Buffer.from(
          sent
            .map(({ type }, at) => JSON.stringify({ type, object: objects[at] }) + newline)
            .join(''),
        );
        const places = cuts.map((cut) => cut % (stream.length + 1)).sort((a, b) => a - b);
        const chunks = [...places, stream.length].map((end, at) =>
          stream.subarray(at === 0 ? 0 : places[at - 1], end),
        );
        const expected = sent.map(({ type }, at) => ({
          type: type.toLowerCase(),
          object: objects[at],
        }));
        assert.deepEqual(await drain(open(chunks)), { events: expected });
      },
    ),
  );
});

// upstream: 30m
test('decodes the version of a bookmark, and whether it ends the initial events', async () => {
  const bookmark = (annotations?: unknown) =>
    line('BOOKMARK', { kind: 'ConfigMap', metadata: { resourceVersion: '12', annotations } });
  const key = 'k8s.io/initial-events-end';
  const { events } = await drain(
    open([
      bookmark(),
      bookmark({ [key]: 'true' }),
      bookmark({ [key]: 'false' }),
      bookmark({ [key]: true }),
      bookmark({ other: 'true' }),
    ]),
  );
  assert.deepEqual(
    events.map((event) => event.type === 'bookmark' && event.initialEventsEnd),
    [false, true, false, false, false],
  );
  assert.deepEqual(events[0], {
    type: 'bookmark',
    resourceVersion: '12',
    initialEventsEnd: false,
  });
  assert.equal((await failure([line('BOOKMARK', { metadata: {} })])).kind, 'malformed');
});

test('decodes an error event into the error of its Status', async () => {
  const { events } = await drain(
    open([
      line('ERROR', {
        kind: 'Status',
        code: 410,
        reason: 'Expired',
        message: 'too old resource version: 1 (5)',
      }),
    ]),
  );
  const [event] = events;
  assert.ok(event?.type === 'error');
  assert.ok(isExpired(event.error));
  assert.equal(event.error.code, 410);
  assert.equal(event.error.message, 'too old resource version: 1 (5)');
});

// upstream: 34m
test('throws an error for a line that is not an event, after the events before it', async () => {
  const wrong = [
    'canary\n',
    '{"type":"ADDED"}\n',
    '[]\n',
    line('ADDED', { kind: 'ConfigMap' }),
    line('RENAMED', configMap('a')),
    line('ADDED', 'canary'),
    line('ADDED', JSON.parse(`{"metadata":{"a":${'['.repeat(100)}${']'.repeat(100)}}}`)),
  ];
  for (const text of wrong) {
    const { events, error } = await drain(open([line('ADDED', configMap('first')), text]));
    assert.equal(events.length, 1);
    assert.ok(error instanceof ApiError && error.kind === 'malformed', text);
    assert.doesNotMatch(error.message, /canary/);
  }
});

test('throws an error if the stream ends within a line, and accepts a complete last line', async () => {
  const cut = await failure([line('ADDED', configMap('a')).slice(0, -10)]);
  assert.equal(cut.kind, 'unreachable');
  assert.match(cut.message, /ended in the middle of an event/);
  const { events } = await drain(open([line('ADDED', configMap('a')).trimEnd()]));
  assert.deepEqual(events, [{ type: 'added', object: configMap('a') }]);
});

test('limits the length of a line before the line is complete', async () => {
  let given = 0;
  async function* endless(): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      given += 1024;
      yield Buffer.alloc(1024, 'x');
    }
  }
  const { error } = await drain(open(endless(), { maxLineBytes: 64 * 1024 }));
  assert.ok(error instanceof ApiError && error.kind === 'malformed');
  assert.match(error.message, /longer than 65536 bytes/);
  assert.equal(given, 65 * 1024);
});

test('rejects a line that is longer than the limit and arrives in one chunk', async () => {
  const fits = line('ADDED', configMap('a'));
  const long = line('ADDED', { ...configMap('b'), data: { key: 'x'.repeat(1000) } });
  const { events, error } = await drain(open([fits + long], { maxLineBytes: 1000 }));
  assert.equal(events.length, 1);
  assert.ok(error instanceof ApiError && error.kind === 'malformed');
});

test('concatenates a long line in small chunks once', async (t) => {
  const object = { ...configMap('big'), data: { key: 'x'.repeat(2 ** 20) } };
  const whole = Buffer.from(line('ADDED', object));
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < whole.length; at += 1024) chunks.push(whole.subarray(at, at + 1024));
  const concat = t.mock.method(Buffer, 'concat');
  assert.deepEqual(await drain(open(chunks)), { events: [{ type: 'added', object }] });
  const copied = concat.mock.calls.reduce((sum, { result }) => sum + (result?.length ?? 0), 0);
  assert.equal(copied, whole.length - 1);
});

test('updates lastByteMs with every chunk, also with one that completes no event', async () => {
  const clock = new FakeClock();
  const text = line('ADDED', configMap('a'));
  async function* slow(): AsyncGenerator<Uint8Array, void, undefined> {
    await clock.advance(100);
    yield Buffer.from(text.slice(0, 5));
    seen.push(stream.lastByteMs);
    await clock.advance(100);
    yield Buffer.from(text.slice(5));
  }
  const seen: number[] = [];
  const stream = open(slow(), { clock });
  seen.push(stream.lastByteMs);
  await drain(stream);
  seen.push(stream.lastByteMs);
  assert.deepEqual(seen, [0, 100, 200]);
});

test('ends without error on abort, and throws if the connection breaks', async () => {
  const abort = new AbortController();
  async function* breaking(): AsyncGenerator<Uint8Array, void, undefined> {
    yield Buffer.from(line('ADDED', configMap('a')));
    throw Object.assign(new Error('gone'), { code: 'ECONNRESET' });
  }
  const broken = await drain(open(breaking(), { signal: abort.signal }));
  assert.equal(broken.events.length, 1);
  assert.ok(broken.error instanceof ApiError && broken.error.kind === 'unreachable');
  abort.abort();
  const quiet = await drain(open(breaking(), { signal: abort.signal }));
  assert.equal(quiet.error, undefined);
});

test('closes the body when the iteration is left', async () => {
  let closed = false;
  async function* body(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) yield Buffer.from(line('ADDED', configMap('a')));
    } finally {
      closed = true;
    }
  }
  const events = open(body())[Symbol.asyncIterator]();
  await events.next();
  await events.return?.();
  assert.equal(closed, true);
});

test('removes managed fields and sets the kind of metadata-only objects', async () => {
  const object = configMap('a');
  const withFields = { ...object, metadata: { ...object.metadata, managedFields: [{}] } };
  const { events } = await drain(open([line('ADDED', withFields)]));
  assert.deepEqual(events, [{ type: 'added', object }]);
  const partial = { kind: 'PartialObjectMetadata', metadata: object.metadata };
  const only = await drain(open([line('DELETED', partial)], { metadataOnly: true }));
  assert.deepEqual(only.events, [
    { type: 'deleted', object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: object.metadata } },
  ]);
});

test('yields events that arrive together as a batch, also those before an error', async () => {
  const [a, b, c] = ['a', 'b', 'c'].map((name) => line('ADDED', configMap(name)));
  const stream = open([`${a}${b}${c?.slice(0, 9)}`, c?.slice(9) ?? '', `${a}oops\n${b}`]);
  const batches: string[][] = [];
  await assert.rejects(
    async () => {
      for await (const batch of stream.batches?.() ?? []) {
        batches.push(
          batch.map((event) => ('object' in event ? event.object.metadata.name : event.type)),
        );
      }
    },
    { kind: 'malformed' },
  );
  assert.deepEqual(batches, [['a', 'b'], ['c'], ['a']]);
});
