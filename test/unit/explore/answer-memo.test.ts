import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { CompleteBody } from '../../../src/util/complete-body.ts';
import { AnswerMemo } from '../../../src/explore/answer-memo.ts';
import type { HttpRequest } from '../../../src/util/http.ts';

const OBJECT = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } } as never;

describe('AnswerMemo', () => {
  let executed: number;
  let repeated: number;
  let nowMs: number;
  let writes: string;
  let memo: AnswerMemo;

  beforeEach(() => {
    [executed, repeated, nowMs, writes] = [0, 0, 0, '/pods'];
    memo = new AnswerMemo({
      handler: async () => {
        await Promise.resolve();
        executed++;
        memo.written(writes, OBJECT, false);
        return { status: 201, headers: {}, body: new CompleteBody(`answer ${executed}`) };
      },
      elapsedMs: () => nowMs,
      used: { uids: 0, draws: 0 },
      draw: () => undefined,
      repeat: () => repeated++,
    });
  });

  const create = async (body: string): Promise<string> => {
    const request: HttpRequest = { method: 'POST', path: '/api/v1/pods', headers: {}, body };
    const response = await memo.handler(request);
    return new TextDecoder().decode(response.body.received?.());
  };

  it('repeats the answer and the writes to the same request in the same state', async () => {
    assert.deepEqual([await create('a'), await create('b')], ['answer 1', 'answer 2']);
    memo.restart();
    assert.deepEqual([await create('a'), await create('b')], ['answer 1', 'answer 2']);
    assert.deepEqual([executed, repeated], [2, 2]);
  });

  for (const [what, change] of [
    ['at another time', () => nowMs++],
    ['after another request', () => create('c')],
    ['after another change of the state', () => memo.leave()],
    ['after a write of the server itself', () => memo.written('/pods', OBJECT, false)],
  ] as const) {
    it(`does not repeat it ${what}`, async () => {
      await create('a');
      memo.restart();
      await change();
      const before = executed;
      await create('a');
      assert.equal(executed, before + 1);
    });
  }

  it('does not remember requests that ran at the same time, or whose writes the server watches', async () => {
    await Promise.all([create('a'), create('b')]);
    memo.restart();
    await create('a');
    memo.restart();
    writes = 'apiextensions.k8s.io/customresourcedefinitions';
    await create('d');
    memo.restart();
    await create('d');
    assert.deepEqual([executed, repeated], [5, 0]);
  });
});
