import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { describe, it } from 'node:test';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { DelegatedAccess } from '../../../src/serving/delegated-access.ts';
import type { AccessDecision } from '../../../src/serving/delegated-access.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

const METRICS_READER = [{ verbs: ['get'], nonResourceURLs: ['/metrics'] }];

/** API server with two users, and a `DelegatedAccess` that uses it. */
function newFixture() {
  const clock = new FakeClock();
  const server = new ApiServer({
    clock,
    users: [
      { token: 'prometheus-token', name: 'prometheus', rules: METRICS_READER },
      { token: 'jane-token', name: 'jane', groups: ['people'] },
    ],
  });
  const { log, lines } = recordingLogger();
  const client = new HttpClient({ handler: server.handler, server: 'https://here', clock, log });
  const access = new DelegatedAccess({ client, clock, log });
  const stop = new AbortController();
  const authorize = (authorization: string | undefined, path = '/metrics', method = 'GET') =>
    access.authorize({ method, path, authorization, signal: stop.signal });
  const reviews = () => [
    server.requests.count({ resource: 'tokenreviews' }),
    server.requests.count({ resource: 'subjectaccessreviews' }),
  ];
  return { clock, server, lines, access, stop, authorize, reviews };
}

function statusOf(decision: AccessDecision): number {
  return decision.allowed ? 200 : decision.status;
}

const isTokenReview = ({ info }: { info: { resource: string } | undefined }) =>
  info?.resource === 'tokenreviews';

describe('DelegatedAccess', () => {
  it('allows users with a role, denies other users, and rejects requests without a token', async () => {
    const { authorize, reviews } = newFixture();
    for (const authorization of [
      undefined,
      '',
      'prometheus-token',
      'Basic cHJvbQ==',
      'Bearer',
      'Bearer  ',
    ]) {
      assert.equal(statusOf(await authorize(authorization)), 401, authorization);
    }
    assert.equal(statusOf(await authorize(`Bearer ${'x'.repeat(20_000)}`)), 401);
    assert.deepEqual(reviews(), [0, 0], 'who says nothing is not asked about');
    assert.equal(statusOf(await authorize('Bearer unknown-token')), 401);
    assert.equal(statusOf(await authorize('Bearer prometheus-token')), 200);
    assert.equal(statusOf(await authorize('bearer prometheus-token')), 200);
    assert.equal(statusOf(await authorize('Bearer prometheus-token', '/debug/queues')), 403);
    assert.equal(statusOf(await authorize('Bearer prometheus-token', '/metrics', 'PUT')), 403);
    assert.deepEqual(await authorize('Bearer jane-token'), {
      allowed: false,
      status: 403,
      reason: 'User "jane" cannot get path "/metrics"',
    });
  });

  it('caches tokens for 1 min, allowed requests for 5 min and denied requests for 30 s', async () => {
    const { clock, authorize, reviews } = newFixture();
    const ask = async () => {
      for (const who of ['prometheus', 'jane', 'unknown']) await authorize(`Bearer ${who}-token`);
      return reviews();
    };
    assert.deepEqual(await ask(), [3, 2]);
    await clock.advance(29_999);
    assert.deepEqual(await ask(), [3, 2]);
    await clock.advance(1);
    assert.deepEqual(await ask(), [3, 3], 'jane may have got a role');
    await clock.advance(30_000);
    assert.deepEqual(await ask(), [6, 4], 'tokens may have ended');
    await clock.advance(239_999);
    assert.deepEqual(await ask(), [9, 5]);
    await clock.advance(1);
    assert.deepEqual(await ask(), [9, 6], 'the role may have gone');
  });

  it('sends one review for concurrent equal requests', async () => {
    const { authorize, reviews } = newFixture();
    const decisions = await Promise.all(
      Array.from({ length: 20 }, () => authorize('Bearer prometheus-token')),
    );
    assert.ok(decisions.every(({ allowed }) => allowed));
    assert.deepEqual(reviews(), [1, 1]);
  });

  it('rejects requests above the limit of concurrent reviews', async () => {
    const { clock, server, authorize } = newFixture();
    assert.equal(statusOf(await authorize('Bearer prometheus-token')), 200);
    server.faults.delayNext({ resource: 'tokenreviews' }, 1000, { times: 16 });
    const flood = Array.from({ length: 16 }, (_, i) => authorize(`Bearer made-up-${i}`));
    await settle();
    assert.equal(statusOf(await authorize('Bearer one-more')), 503);
    assert.equal(statusOf(await authorize('Bearer prometheus-token')), 200, 'who is known gets in');
    await clock.advance(1000);
    assert.deepEqual((await Promise.all(flood)).map(statusOf), Array(16).fill(401));
    assert.equal(statusOf(await authorize('Bearer one-more')), 401);
  });

  it('keeps places for tokens and addresses that had access before', async () => {
    const { clock, server, access, authorize, stop } = newFixture();
    const request = { method: 'GET', path: '/metrics', signal: stop.signal };
    const from = (address: string, token: string) =>
      access.authorize({ ...request, address, authorization: `Bearer ${token}` });
    assert.equal(statusOf(await from('10.0.0.1', 'prometheus-token')), 200);
    await clock.advance(60_000);
    server.faults.delayNext({ resource: 'tokenreviews' }, 1000, { times: 4 });
    const flood = Array.from({ length: 300 }, (_, i) => from('10.0.0.2', `made-up-${i}`));
    await settle();
    assert.equal(statusOf(await authorize('Bearer prometheus-token')), 200, 'an expired answer');
    assert.equal(statusOf(await from('10.0.0.1', 'jane-token')), 403, 'a renewed token');
    assert.equal(statusOf(await from('10.0.0.2', 'one-more')), 503);
    assert.equal(statusOf(await from('10.0.0.3', 'made-up')), 401, 'a new address');
    await clock.advance(1000);
    const statuses = (await Promise.all(flood)).map(statusOf);
    assert.deepEqual(statuses, [...Array(4).fill(401), ...Array(296).fill(503)]);
    assert.equal(statusOf(await from('10.0.0.2', 'one-more')), 401, 'its places are free again');
  });

  it('keeps places for the renewed token of an address that had access, and none for others', async () => {
    const { clock, server, access, stop } = newFixture();
    const request = { method: 'GET', path: '/metrics', signal: stop.signal };
    const from = (address: string, token: string) =>
      access.authorize({ ...request, address, authorization: `Bearer ${token}` });
    assert.equal(statusOf(await from('10.0.0.1', 'prometheus-token')), 200);
    server.faults.delayNext({ resource: 'tokenreviews' }, 1000, { times: 16 });
    const flood = Array.from({ length: 16 }, (_, i) => from(`10.0.1.${i % 4}`, `made-up-${i}`));
    await settle();
    assert.equal(statusOf(await from('10.0.0.2', 'jane-token')), 503);
    assert.equal(statusOf(await from('10.0.0.1', 'jane-token')), 403);
    await clock.advance(1000);
    await Promise.all(flood);
  });

  it('asks for the user with the uid, groups and extra fields of its token', async () => {
    const { clock, lines } = newFixture();
    const user = { username: 'jane', uid: '7', groups: ['people'], extra: { team: ['a'] } };
    const specs: unknown[] = [];
    const raw = async ({ body }: { readonly body?: unknown }) => {
      const { kind, spec } = body as { readonly kind: string; readonly spec: object };
      if (kind === 'TokenReview') return { status: { authenticated: true, user } };
      specs.push(spec);
      return { status: { allowed: true } };
    };
    const access = new DelegatedAccess({ client: { raw }, clock, log: recordingLogger(lines).log });
    const { signal } = new AbortController();
    await access.authorize({ method: 'GET', path: '/metrics', authorization: 'Bearer x', signal });
    const { username, ...rest } = user;
    const nonResourceAttributes = { verb: 'get', path: '/metrics' };
    assert.deepEqual(specs, [{ user: username, ...rest, nonResourceAttributes }]);
  });

  it('retries temporary failures, and denies the request if they persist', async () => {
    const { clock, server, authorize, reviews } = newFixture();
    server.faults.failNext(isTokenReview, 503, { times: 2 });
    const late = authorize('Bearer prometheus-token');
    await clock.advance(500);
    assert.deepEqual(reviews(), [2, 0]);
    await clock.advance(749);
    assert.deepEqual(reviews(), [2, 0]);
    await clock.advance(1);
    assert.equal(statusOf(await late), 200);

    server.faults.failNext(isTokenReview, 503, { times: 100 });
    const never = authorize('Bearer jane-token');
    await clock.advance(10_000);
    assert.equal(statusOf(await never), 500);
    assert.equal(reviews()[0], 3 + 5);
    assert.equal(statusOf(await authorize('Bearer prometheus-token')), 200, 'who is known gets in');
  });

  it('denies the request if the API server does not respond within the timeout', async () => {
    const { clock, server, authorize } = newFixture();
    server.faults.delayNext({ resource: 'tokenreviews' }, 3_600_000);
    const decision = authorize('Bearer prometheus-token');
    await clock.advance(10_000);
    assert.equal(statusOf(await decision), 500);
  });

  it('does not retry forbidden reviews, and does not cache failures', async () => {
    const { server, authorize, reviews } = newFixture();
    server.faults.failNext(isTokenReview, 403);
    assert.deepEqual(await authorize('Bearer prometheus-token'), {
      allowed: false,
      status: 500,
      reason: 'Unable to authorize: the API server is not available',
    });
    assert.deepEqual(reviews(), [1, 0]);
    assert.equal(statusOf(await authorize('Bearer prometheus-token')), 200);
  });

  it('treats an unexpected response as a failure', async () => {
    const { clock, lines, stop } = newFixture();
    for (const answer of [undefined, {}, { status: 'Failure' }, []]) {
      const client = { raw: () => Promise.resolve(answer) };
      const access = new DelegatedAccess({ client, clock, log: recordingLogger(lines).log });
      const request = { method: 'GET', path: '/metrics', signal: stop.signal };
      const decision = await access.authorize({ ...request, authorization: 'Bearer x' });
      assert.equal(statusOf(decision), 500, inspect(answer));
    }
    const hollow = [
      {},
      { authenticated: true },
      { authenticated: 'true', user: { username: 'a' } },
    ];
    for (const status of [...hollow, { authenticated: true, user: { username: '' } }]) {
      const client = { raw: () => Promise.resolve({ status }) };
      const access = new DelegatedAccess({ client, clock, log: recordingLogger(lines).log });
      const request = { method: 'GET', path: '/metrics', signal: stop.signal };
      const decision = await access.authorize({ ...request, authorization: 'Bearer x' });
      assert.equal(statusOf(decision), 401, inspect(status));
    }
  });

  it('aborts reviews when the server stops', async () => {
    const { clock, server, authorize, stop } = newFixture();
    server.faults.failNext(isTokenReview, 503, { times: 100 });
    const decision = authorize('Bearer prometheus-token');
    await settle();
    stop.abort(new Error('stopping'));
    assert.equal(statusOf(await decision), 500);
    assert.equal(clock.pending, 0);
  });

  it('writes no tokens to the log', async () => {
    const { clock, server, lines, authorize } = newFixture();
    server.faults.failNext(isTokenReview, 503);
    const decisions = ['prometheus', 'jane', 'unknown'].map((who) =>
      authorize(`Bearer ${who}-token`),
    );
    await clock.advance(10_000);
    await Promise.all(decisions);
    assert.ok(lines.length > 10);
    const all = inspect(lines, { depth: null });
    assert.doesNotMatch(all, /(prometheus|jane|unknown)-token/);
  });
});
