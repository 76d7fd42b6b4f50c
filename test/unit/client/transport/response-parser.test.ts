import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ResponseParser } from '../../../../src/client/transport/response-parser.ts';

interface Parsed {
  readonly status: number[];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Undefined while the response is not complete. */
  readonly isReusable: boolean | undefined;
  readonly pieces: number;
}

function parse(parts: readonly Buffer[]): { parser: ResponseParser; parsed: Parsed } {
  const parsed = { status: [] as number[], headers: {}, body: '', pieces: 0 } as {
    -readonly [K in keyof Parsed]: Parsed[K];
  };
  const parser = new ResponseParser({
    onHead({ status, headers }) {
      parsed.status.push(status);
      parsed.headers = headers;
    },
    onData(bytes) {
      parsed.pieces++;
      parsed.body += Buffer.from(bytes).toString('latin1');
    },
    onComplete: (isReusable) => (parsed.isReusable = isReusable),
  });
  parser.start();
  for (const part of parts) parser.parse(Buffer.from(part));
  return { parser, parsed };
}

const textOf = (lines: readonly string[]) => Buffer.from(lines.join('\r\n'), 'latin1');

const ok = (...lines: readonly string[]) => textOf(['HTTP/1.1 200 OK', ...lines]);

test('parses a response in the same way wherever it is divided', () => {
  const responses: Record<string, [response: Buffer, body: string, isReusable: boolean]> = {
    length: [ok('Content-Length: 5', '', 'hello'), 'hello', true],
    'length 0': [ok('content-length:0', '', ''), '', true],
    'no content': [textOf(['HTTP/1.1 204 No Content', 'Content-Length: 3', '', '']), '', true],
    'no reason phrase': [textOf(['HTTP/1.1 404', 'Content-Length: 1', '', 'x']), 'x', true],
    'last on the connection': [
      ok('Connection: keep-alive, Close', 'Content-Length: 1', '', 'x'),
      'x',
      false,
    ],
    'HTTP/1.0': [textOf(['HTTP/1.0 200 OK', 'Content-Length: 1', '', 'x']), 'x', false],
    informational: [
      Buffer.concat([
        textOf(['HTTP/1.1 103 Early Hints', 'Link: </a>', '', '']),
        ok('Content-Length: 1', '', 'x'),
      ]),
      'x',
      true,
    ],
    chunked: [
      ok(
        'Transfer-Encoding: Chunked',
        '',
        '5',
        'hello',
        '0A;name="value"',
        ' big world',
        '1 ',
        '\n',
        '0',
        'Trailer: 1',
        'Other: 2',
        '',
        '',
      ),
      'hello big world\n',
      true,
    ],
  };
  for (const [name, [response, body, isReusable]] of Object.entries(responses)) {
    for (let at = 0; at <= response.length; at++) {
      const { parsed } = parse([response.subarray(0, at), response.subarray(at)]);
      assert.equal(parsed.body, body, `${name}, divided at ${at}`);
      assert.equal(parsed.isReusable, isReusable, `${name}, divided at ${at}`);
    }
    const { parsed } = parse(Array.from(response, (byte) => Buffer.of(byte)));
    assert.equal(parsed.body, body, `${name}, byte by byte`);
  }
});

test('joins repeated headers, in lower case and without surrounding space', () => {
  const { parsed } = parse([
    ok('Warning: \t299 - "a" ', 'X-Empty:', 'WARNING: 299 - "b"', 'Content-Length: 0', '', ''),
  ]);
  assert.deepEqual(
    { ...parsed.headers },
    { warning: '299 - "a", 299 - "b"', 'x-empty': '', 'content-length': '0' },
  );
});

test('delivers the chunks that arrive together as one piece', () => {
  const { parsed } = parse([ok('Transfer-Encoding: chunked', '', '1', 'a', '2', 'bc', '3', 'd')]);
  assert.deepEqual([parsed.body, parsed.pieces, parsed.isReusable], ['abcd', 1, undefined]);
});

test('ends a response without length with the connection, and reports an incomplete one', () => {
  const endless = parse([ok('Content-Type: text/plain', '', 'text')]);
  assert.equal(endless.parsed.isReusable, undefined);
  assert.equal(endless.parser.end(), true);
  assert.deepEqual([endless.parsed.body, endless.parsed.isReusable], ['text', false]);
  for (const incomplete of [
    ok('Content-Length: 2', '', 'x'),
    ok('Transfer-Encoding: chunked', '', '1', 'x', ''),
    ok('Content-Le'),
  ]) {
    assert.equal(parse([incomplete]).parser.end(), false);
  }
});

test('rejects malformed and ambiguous responses', () => {
  const chunked = (...lines: readonly string[]) => ok('Transfer-Encoding: chunked', '', ...lines);
  const malformed: Record<string, Buffer> = {
    'not HTTP': textOf(['SSH-2.0-OpenSSH', '', '']),
    'HTTP/2': textOf(['HTTP/2 200', '', '']),
    'status below 100': textOf(['HTTP/1.1 099 No', '', '']),
    'another protocol': textOf(['HTTP/1.1 101 Switching Protocols', '', '']),
    'header without name': ok(': value', '', ''),
    'space before the colon': ok('Content-Length : 1', '', 'x'),
    'folded header': ok('A: 1', ' 2', '', ''),
    'line feed in a header': ok('A: 1\nB: 2', '', ''),
    'zero byte in a header': ok('A: \0', '', ''),
    'two lengths': ok('Content-Length: 1', 'Content-Length: 2', '', 'xx'),
    'negative length': ok('Content-Length: -1', '', ''),
    'hexadecimal length': ok('Content-Length: 0x1', '', 'x'),
    'length and chunks': ok('Content-Length: 1', 'Transfer-Encoding: chunked', '', '0', '', ''),
    'compressed transfer': ok('Transfer-Encoding: gzip, chunked', '', ''),
    'data after the response': ok('Content-Length: 1', '', 'xy'),
    'data after the chunks': chunked('0', '', 'x'),
    'chunk without size': chunked('', 'x'),
    'chunk size with a sign': chunked('+1', 'x'),
    'line feed after the chunk size': chunked('1\nx'),
    'line feed in an extension': chunked('1;\nx'),
    'carriage return in the chunk size': chunked('1\rx'),
    'chunk longer than its size': chunked('1', 'xx'),
    'huge chunk': chunked('1000000000000'),
    'endless extension': chunked(`1;${'x'.repeat(70_000)}`),
    'endless trailer': chunked('0', 'x'.repeat(70_000)),
    'endless informational responses': Buffer.concat(
      Array(21).fill(textOf(['HTTP/1.1 103 Early Hints', '', ''])),
    ),
    'large informational responses': Buffer.concat(
      Array(9).fill(textOf(['HTTP/1.1 102 Processing', `A: ${'x'.repeat(8000)}`, '', ''])),
    ),
    'endless head': ok('x'.repeat(70_000)),
  };
  for (const [name, response] of Object.entries(malformed)) {
    assert.throws(() => parse([response]), { name: 'ResponseSyntaxError' }, name);
  }
  const { parser } = parse([ok('Content-Length: 0', '', '')]);
  assert.throws(() => parser.parse(Buffer.from('x')), { name: 'ResponseSyntaxError' });
});
