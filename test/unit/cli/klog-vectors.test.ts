/**
 * Our log against the real klog: `klog-vectors.jsonl` holds what that makes of many calls. How it
 * came to be is told in hack/klog/vectors.ts.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ourLines } from '../../../hack/klog/call.ts';
import { CURATED, ORDINARY_CALL } from '../../../hack/klog/curated.ts';
import { comparable, PID, VECTORS } from '../../../hack/klog/vectors.ts';
import type { Vector } from '../../../hack/klog/vectors.ts';

const vectors = readFileSync(VECTORS, 'utf8')
  .split('\n')
  .filter(Boolean)
  .map((line): Vector => JSON.parse(line));

/** The 30 characters and the place that a line begins with. */
const HEADER = /^[IE]\d{4} [\d:.]{15} .{7} [^ ]+:\d+\] /;

test('a line is byte for byte what klog writes', () => {
  for (const vector of vectors) {
    if (vector.differs?.text === undefined) {
      assert.equal(oursOf(vector).text, vector.text, vector.about);
    }
  }
});

test('a line of JSON says what that of a Kubernetes component says', () => {
  for (const vector of vectors) {
    if (vector.differs?.json === undefined) {
      assert.deepEqual(comparable(oursOf(vector).json), vector.json, vector.about);
    }
  }
});

test('a line differs where it is meant to, and as it is meant to', () => {
  for (const vector of vectors) {
    const { about, differs, text } = vector;
    const ours = oursOf(vector);
    if (differs?.text !== undefined) {
      assert.equal(ours.text, `${HEADER.exec(text)?.[0]}${differs.text}\n`, about);
      assert.notEqual(ours.text, text, about);
    }
    if (differs?.json !== undefined) {
      assert.deepEqual(comparable(ours.json), differs.json, about);
    }
  }
});

test('the vectors are those of the calls', () => {
  const calls = vectors.map(({ text: _text, json: _json, ...curated }) => curated);
  assert.deepEqual(calls, JSON.parse(JSON.stringify(CURATED)));
});

function oursOf({ call }: Vector) {
  return ourLines({ ...ORDINARY_CALL, ...call }, PID);
}
