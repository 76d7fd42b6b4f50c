import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { LineWriter } from '../../../src/util/line-writer.ts';
import type { DroppedLines } from '../../../src/util/line-writer.ts';

const notice = ({ lines }: DroppedLines) => `${lines} dropped\n`;

/** Returns a FIFO that the test reads on demand, and a writer for it. */
function pipe(context: TestContext, maxWaitingBytes?: number) {
  const folder = mkdtempSync(join(tmpdir(), 'line-writer-'));
  const path = join(folder, 'fifo');
  assert.equal(spawnSync('mkfifo', [path]).status, 0);
  const openReader = () => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  let reader = openReader();
  const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  context.after(() => {
    closeSync(reader);
    closeSync(fd);
    rmSync(folder, { recursive: true });
  });
  const clock = new FakeClock();
  const writer = new LineWriter(fd, { clock, ...(maxWaitingBytes && { maxWaitingBytes }) });
  const read = () => {
    const buffer = Buffer.alloc(1 << 20);
    let text = '';
    for (;;) {
      try {
        const length = readSync(reader, buffer);
        if (length === 0) return text;
        text += buffer.toString('utf8', 0, length);
      } catch (error) {
        assert.match(String(error), /EAGAIN/);
        return text;
      }
    }
  };
  return {
    writer,
    clock,
    read,
    closeReader: () => closeSync(reader),
    openReader: () => (reader = openReader()),
  };
}

/** Longer than a pipe holds. */
const LONG = `${'x'.repeat(100_000)}\n`;

describe('a full disk', () => {
  test('drops the lines without an error', (context) => {
    const fd = openSync('/dev/full', 'w');
    context.after(() => closeSync(fd));
    const writer = new LineWriter(fd);
    for (let line = 0; line < 3; line++) writer.write('line\n', notice);
    writer.flush();
    assert.equal(writer.dropped, 3);
  });
});

describe('a reader that closed the pipe', () => {
  test('drops lines until a reader opens the pipe, and reports how many', (context) => {
    const { writer, read, closeReader, openReader } = pipe(context);
    writer.write('first\n', notice);
    assert.equal(read(), 'first\n');
    closeReader();
    for (const line of ['second\n', 'third\n']) writer.write(line, notice);
    assert.equal(writer.dropped, 2);
    openReader();
    writer.write('fourth\n', notice);
    assert.equal(read(), '2 dropped\nfourth\n');
    writer.write('fifth\n', notice);
    assert.equal(read(), 'fifth\n', 'reported once');
    assert.equal(writer.dropped, 2);
  });

  test('separates the rest of a partly written line from the next line', (context) => {
    const { writer, read, closeReader, openReader } = pipe(context);
    writer.write(LONG, notice);
    closeReader();
    writer.write('lost\n', notice);
    openReader();
    assert.ok(/^x+$/.test(read()), 'part of a line');
    writer.write('next\n', notice);
    assert.equal(read(), '\n2 dropped\nnext\n');
  });
});

describe('a slow reader', () => {
  test('receives every line in order without blocking the writer', async (context) => {
    const { writer, clock, read } = pipe(context);
    writer.write(LONG, notice);
    writer.write('second\n', notice);
    let text = read();
    assert.ok(text.length < LONG.length);
    await clock.advance(1000);
    text += read();
    assert.ok(text === `${LONG}second\n`, text.slice(-20));
    assert.equal(writer.dropped, 0);
  });

  test('loses lines beyond the limit and receives their number when it reads', async (context) => {
    const { writer, clock, read } = pipe(context, 250_000);
    for (let line = 0; line < 5; line++) writer.write(LONG, notice);
    assert.equal(writer.dropped, 3);
    let text = '';
    for (let turn = 0; turn < 10; turn++) {
      text += read();
      await clock.advance(1000);
    }
    assert.ok(text === `${LONG.repeat(2)}3 dropped\n`, text.slice(-20));
  });
});
