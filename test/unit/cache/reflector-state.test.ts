import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reactionTo } from '../../../src/cache/reflector-state.ts';
import type { WatchEnd } from '../../../src/cache/reflector-watch.ts';
import {
  apiError,
  expired,
  notFound,
  tooLarge,
  tooManyRequests,
  unreachable,
} from '../../support/fake-source.ts';
import { ApiError } from '../../../src/api/api-error.ts';

const internal = apiError('internal', 'corrupt object', 500);
const forbidden = apiError('forbidden', 'no', 403);
const draining = new ApiError({ kind: 'internal', message: 'x', code: 500, retryAfterMs: 1000 });
const quick = { lastedMs: 999, events: 0 };

const table: [name: string, end: WatchEnd, reaction: string][] = [
  ['a watch that ran its time', { how: 'serverEnded', lastedMs: 300_000, events: 1 }, 'watch'],
  ['a watch that said nothing', { how: 'serverEnded', lastedMs: 300_000, events: 0 }, 'verify'],
  [
    'a watch that ended before its time',
    { how: 'serverEnded', lastedMs: 299_999, events: 9 },
    'verify',
  ],
  ['a quick watch that said something', { how: 'serverEnded', lastedMs: 10, events: 1 }, 'verify'],
  ['a quick watch that said nothing', { how: 'serverEnded', ...quick }, 'wait, relist, log'],
  ['a stalled watch', { how: 'stalled' }, 'verify'],
  ['a bookmark from the past', { how: 'bookmarkWentBack' }, 'wait, verify'],
  ['a cut connection', { how: 'connectionBroke', lastedMs: 5000, error: unreachable() }, 'verify'],
  [
    'a connection cut at once',
    { how: 'connectionBroke', lastedMs: 10, error: unreachable() },
    'wait, verify',
  ],
  [
    'an undecodable line',
    { how: 'connectionBroke', lastedMs: 5000, error: apiError('malformed', '<html>') },
    'wait, relist, log',
  ],
  ['a 410 in the stream', { how: 'errorEvent', error: expired() }, 'wait, relist'],
  ['a 429 in the stream', { how: 'errorEvent', error: tooManyRequests() }, 'wait, verify'],
  ['any other error in the stream', { how: 'errorEvent', error: internal }, 'wait, relist, log'],
  ['no server', { how: 'watchRejected', error: unreachable() }, 'wait, verify, log'],
  ['a 429', { how: 'watchRejected', error: tooManyRequests() }, 'wait, verify, log'],
  ['an error that names a time', { how: 'watchRejected', error: draining }, 'wait, verify, log'],
  ['a 410', { how: 'watchRejected', error: expired() }, 'wait, relist'],
  ['a version from the future', { how: 'watchRejected', error: tooLarge() }, 'wait, relistLatest'],
  ['a 404', { how: 'watchRejected', error: notFound() }, 'wait, relistLatest, log'],
  ['a 403', { how: 'watchRejected', error: forbidden }, 'wait, relistLatest, log'],
  ['a 500', { how: 'watchRejected', error: internal }, 'wait, relistLatest, log'],
  ['an absence of the server', { how: 'serverWasAbsent' }, 'relistLatest'],
  ['a check that finds the server behind', { how: 'serverBehind' }, 'relistLatest'],
];

for (const [name, end, expected] of table) {
  // upstream: 34d, 34h
  test(`after ${name}: ${expected}`, () => {
    const { wait, next, failure } = reactionTo(end);
    const words = [...(wait ? ['wait'] : []), next, ...(failure === undefined ? [] : ['log'])];
    assert.equal(words.join(', '), expected);
  });
}
