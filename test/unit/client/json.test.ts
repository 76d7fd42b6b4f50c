import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { encodeJson, MAX_JSON_DEPTH, parseJson } from '../../../src/client/json.ts';

function parsed(text: string): unknown {
  return parseJson(Buffer.from(text), 'A text');
}

test('rejects malformed JSON without quoting it', () => {
  for (const text of ['', '{"canary":', '[1,]', 'canary']) {
    assert.throws(
      () => parsed(text),
      (error: Error & { kind?: string }) =>
        error.kind === 'malformed' && !error.message.includes('canary'),
    );
  }
});

test('rejects JSON that is nested too deeply', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  parsed(nested(MAX_JSON_DEPTH));
  assert.throws(() => parsed(nested(MAX_JSON_DEPTH + 1)), /deeper than 100 levels/);
  assert.throws(() => parsed(`{"items":${nested(MAX_JSON_DEPTH)}}`), /deeper than 100 levels/);
  parsed(JSON.stringify({ items: ['{"['.repeat(MAX_JSON_DEPTH), '\\"'.repeat(MAX_JSON_DEPTH)] }));
});

test('encodes lone surrogates as U+FFFD, and all other text unchanged', () => {
  const texts = fc
    .array(fc.constantFrom('a', '\\', '"', '\\ud800', '\n', '😀', '\ud800', '\udc00'))
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(texts, texts, (key, value) => {
      const encoded = encodeJson({ [key]: [value] });
      assert.deepEqual(JSON.parse(encoded), { [key.toWellFormed()]: [value.toWellFormed()] });
    }),
  );
});
