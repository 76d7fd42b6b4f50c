import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { socks5 } from '../../../../src/client/transport/socks5.ts';

/** A proxy that accepts each connection without authentication. */
function accepting(): { readonly socket: Duplex; readonly sent: Buffer[] } {
  const sent: Buffer[] = [];
  const answers = [
    [5, 0],
    [5, 0, 0, 1, 0, 0, 0, 0, 0, 0],
  ];
  const socket = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => {
      sent.push(chunk);
      setImmediate(() => socket.push(Buffer.from(answers.shift() ?? [])));
      done();
    },
  });
  return { socket, sent };
}

test('connects to a name of at most 255 bytes, and leaves no listeners', async () => {
  const { socket, sent } = accepting();
  const listeners = () =>
    ['readable', 'end', 'close', 'error'].map((event) => socket.listenerCount(event));
  const before = listeners();
  await socks5(socket as Socket, { host: 'a'.repeat(255), port: 443 }, undefined);
  assert.equal(sent.at(-1)?.length, 3 + 2 + 255 + 2);
  assert.deepEqual(listeners(), before);
  const long = socks5(accepting().socket as Socket, { host: 'a'.repeat(256), port: 1 }, undefined);
  await assert.rejects(long, /longer than 255 bytes/);
});
