import assert from 'node:assert/strict';
import { test } from 'node:test';
import { constants, createDeflate } from 'node:zlib';
import type { Deflate } from 'node:zlib';
import { SpdyConnection } from '../../../../../src/apiserver/http/streams/spdy-connection.ts';
import type { SpdyStream } from '../../../../../src/apiserver/http/streams/spdy-connection.ts';
import { spdyDictionary } from '../../../../../src/apiserver/http/streams/spdy-dictionary.ts';

const SYN_STREAM = 1;
const PING = 6;
const GOAWAY = 7;

function words(...numbers: readonly number[]): Buffer {
  return Buffer.concat(
    numbers.map((number) => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(number);
      return bytes;
    }),
  );
}

const control = (type: number, payload: Uint8Array) =>
  Buffer.concat([words(0x8003_0000 + type, payload.length), payload]);

const data = (id: number, text: string, flags = 0) =>
  Buffer.concat([words(id, flags * 2 ** 24 + text.length), Buffer.from(text)]);

/** Opens a stream with headers, which are compressed after those of the streams before. */
async function syn(
  deflate: Deflate,
  id: number,
  headers: Readonly<Record<string, string>>,
): Promise<Buffer> {
  const texts = Object.entries(headers).flat();
  const parts = texts.flatMap((text) => [words(text.length), Buffer.from(text)]);
  deflate.write(Buffer.concat([words(texts.length / 2), ...parts]));
  await new Promise<void>((resolve) => {
    deflate.flush(constants.Z_SYNC_FLUSH, resolve);
  });
  const block = deflate.read() as Buffer;
  return control(SYN_STREAM, Buffer.concat([words(id, 0), Buffer.alloc(2), block]));
}

async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Serves the bytes of a client, divided into parts. Returns the streams and what the server sent. */
async function serve(bytes: Buffer, size: number) {
  const sent: Uint8Array[] = [];
  const streams: SpdyStream[] = [];
  const connection = new SpdyConnection({
    received: (async function* () {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    })(),
    write: async (part) => void sent.push(part),
  });
  await connection.serve((stream) => {
    if (stream.headers.has('rejected')) return false;
    streams.push(stream);
    return true;
  });
  return { streams, sent: Buffer.concat(sent).toString('hex') };
}

test('streams are read however their frames are divided', async () => {
  assert.equal(spdyDictionary().length, 1423);
  const deflate = createDeflate({ dictionary: spdyDictionary() });
  const bytes = Buffer.concat([
    await syn(deflate, 1, { streamtype: 'stdin', port: '80' }),
    data(1, 'one '),
    await syn(deflate, 3, { streamtype: 'error' }),
    data(1, 'two', 1),
    data(3, 'x'),
    control(PING, words(7)),
    await syn(deflate, 5, { rejected: '' }),
    control(GOAWAY, words(3, 0)),
    data(3, 'after the end'),
  ]);
  const empty = '000400fbff00000000000000ffff';
  const replies = [
    `8003000200000014000000017801${empty}`,
    `800300020000001200000003${empty}`,
    '800300060000000400000007',
    '80030003000000080000000500000005',
  ].join('');
  for (const size of [1, 7, bytes.length]) {
    const { streams, sent } = await serve(bytes, size);
    assert.deepEqual(
      streams.map(({ id, headers }) => [id, headers.get('streamtype')]),
      [
        [1, 'stdin'],
        [3, 'error'],
      ],
    );
    assert.deepEqual(await Promise.all(streams.map(({ received }) => textOf(received))), [
      'one two',
      'x',
    ]);
    assert.equal(sent, replies);
  }
});

test('a frame that is too large, or a stream that is not new, ends the connection', async () => {
  const deflate = createDeflate({ dictionary: spdyDictionary() });
  const first = await syn(deflate, 3, { streamtype: 'data' });
  const old = await syn(deflate, 1, { streamtype: 'error' });
  const { streams } = await serve(Buffer.concat([first, old, data(3, 'x')]), 1000);
  assert.equal(await textOf(streams[0]!.received), '');
  const huge = await serve(Buffer.concat([words(0x8003_0001, 0xff_ffff), first]), 1000);
  assert.deepEqual(huge.streams, []);
});

test('headers are read up to 64 KiB, and larger ones end the connection', async () => {
  const opened = async (length: number) => {
    const deflate = createDeflate({ dictionary: spdyDictionary() });
    const large = await syn(deflate, 1, { streamtype: 'x'.repeat(length) });
    const bytes = Buffer.concat([large, await syn(deflate, 3, { streamtype: 'error' })]);
    return (await serve(bytes, 1000)).streams.map(
      ({ headers }) => headers.get('streamtype')?.length,
    );
  };
  assert.deepEqual(await opened(60_000), [60_000, 5]);
  await assert.rejects(opened(1_000_000), RangeError);
});
