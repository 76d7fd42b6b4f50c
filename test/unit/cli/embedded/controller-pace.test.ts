import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RequestLog } from '../../../../src/apiserver/audit/request-log.ts';
import { CLUSTER_CONTROLLERS_AGENT } from '../../../../src/cli/embedded/cluster-pages.ts';
import { paced } from '../../../../src/cli/embedded/controller-pace.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import type { HttpRequest, HttpResponse } from '../../../../src/util/http.ts';

type Method = HttpRequest['method'];

/** Returns functions for requests of a client and of the controllers; the latter returns the delay. */
function pacing() {
  const requests = new RequestLog();
  const clock = new FakeClock();
  const record = (method: Method, userAgent: string) =>
    requests.add({ method, path: '/', info: undefined, userAgent, receivedMs: clock.now() });
  const send = paced(
    async ({ method }): Promise<HttpResponse> => {
      record(method, CLUSTER_CONTROLLERS_AGENT);
      return { status: 200, headers: {}, body: (async function* () {})() };
    },
    { requests, clock },
  );
  return {
    clock,
    client: (method: Method) => record(method, 'kubectl'),
    controllers: async (method: Method): Promise<number> => {
      const sending = send({ method, path: '/', headers: {} });
      const delay = clock.untilNext ?? 0;
      await clock.advance(delay);
      await sending;
      return delay;
    },
  };
}

describe('the pace of the cluster controllers', () => {
  test('the first write waits for 50 ms after the write of a client, and others take 10 ms', async () => {
    const { clock, client, controllers } = pacing();
    client('POST');
    assert.equal(await controllers('POST'), 50);
    assert.equal(await controllers('PATCH'), 10);
    client('PUT');
    await clock.advance(20);
    assert.equal(await controllers('PATCH'), 30);
    await clock.advance(1000);
    assert.equal(await controllers('DELETE'), 10);
  });

  test('reads are neither delayed nor waited for', async () => {
    const { clock, client, controllers } = pacing();
    client('POST');
    assert.equal(await controllers('GET'), 0);
    await clock.advance(100);
    client('GET');
    assert.equal(await controllers('POST'), 10);
  });

  test('a clock that was set back does not stop the controllers', async () => {
    const { clock, client, controllers } = pacing();
    client('POST');
    clock.jump(-3_600_000);
    assert.equal(await controllers('POST'), 50);
  });
});
