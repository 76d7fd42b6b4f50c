/**
 * Compares the log with klog: `klog-vectors.jsonl` has klog's output for many calls.
 * hack/klog/vectors.ts generates it.
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

/** Header of a line: 30 characters and the source position. */
const HEADER = /^[IE]\d{4} [\d:.]{15} .{7} [^ ]+:\d+\] /;

test('writes lines that are byte for byte those of klog', () => {
  for (const vector of vectors) {
    if (vector.differs?.text === undefined) {
      assert.equal(oursOf(vector).text, vector.text, vector.about);
    }
  }
});

test('writes JSON lines with the content of Kubernetes components', () => {
  for (const vector of vectors) {
    if (vector.differs?.json === undefined) {
      assert.deepEqual(comparable(oursOf(vector).json), vector.json, vector.about);
    }
  }
});

test('differs from klog in documented cases only', () => {
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

test('has a vector for each call', () => {
  const calls = vectors.map(({ text: _text, json: _json, ...curated }) => curated);
  assert.deepEqual(calls, JSON.parse(JSON.stringify(CURATED)));
});

function oursOf({ call }: Vector) {
  return ourLines({ ...ORDINARY_CALL, ...call }, PID);
}
