import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { ApiError, isExpired, isTooLargeResourceVersion } from '../../../src/api/api-error.ts';
import { setCondition, timestamp } from '../../../src/api/conditions.ts';
import { equalJson } from '../../../src/api/equal.ts';
import { labelValue, requireLabelValue } from '../../../src/api/label-selector.ts';
import { objectKey, splitKey } from '../../../src/api/object-key.ts';
import { controllerReference, isControlledBy } from '../../../src/api/metadata.ts';
import { compareResourceVersions } from '../../../src/api/resource-version.ts';
import { collectionPath, objectPath } from '../../../src/api/resource.ts';
import { NODES, PODS } from '../../../src/api/builtin.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { aCount, aPodOf } from '../../support/objects.ts';

describe('an object key', () => {
  it('is parsed into the namespace and name that it was created from', () => {
    assert.deepEqual(splitKey(objectKey('default', 'web')), { namespace: 'default', name: 'web' });
    assert.deepEqual(splitKey(objectKey(undefined, 'node-1')), { name: 'node-1' });
    assert.throws(() => splitKey('a/b/c'), /Unexpected key format: "a\/b\/c"/);
  });
});

describe('a resourceVersion', () => {
  it('is compared as a decimal number of any length', () => {
    assert.ok(compareResourceVersions('9', '10') < 0);
    assert.ok(compareResourceVersions('18446744073709551616', '18446744073709551615') > 0);
    assert.equal(compareResourceVersions('7', '7'), 0);
  });

  for (const bad of ['', '0', '01', '-1', '1.5', 'abc']) {
    it(`"${bad}" has no order`, () => {
      assert.throws(() => compareResourceVersions(bad, '1'), SyntaxError);
    });
  }

  it('agrees with BigInt', () => {
    const decimal = fc.bigInt({ min: 1n, max: 2n ** 80n });
    fc.assert(
      fc.property(decimal, decimal, (a, b) => {
        const order = compareResourceVersions(String(a), String(b));
        assert.equal(Math.sign(order), a < b ? -1 : a > b ? 1 : 0);
      }),
    );
  });
});

describe('the equality of JSON', () => {
  it('agrees with a comparison of JSON texts with sorted members', () => {
    const sorted = (value: unknown): unknown => {
      if (Array.isArray(value)) return ['list', ...value.map(sorted)];
      if (!value || typeof value !== 'object') return value;
      const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
      return ['object', ...members.map(([key, member]) => [key, sorted(member)])];
    };
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        assert.equal(equalJson(a, b), JSON.stringify(sorted(a)) === JSON.stringify(sorted(b)));
        assert.equal(equalJson(a, structuredClone(a)), true);
      }),
    );
  });

  it('ignores undefined members and supports any depth', () => {
    assert.equal(equalJson({ a: 1, b: undefined }, { a: 1 }), true);
    assert.equal(equalJson({ a: undefined }, { b: undefined }), true);
    const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`) as unknown;
    const deeper = JSON.parse(`${'['.repeat(100_000)}1${']'.repeat(100_000)}`) as unknown;
    assert.equal(equalJson(deep, deeper), false);
  });

  it('distinguishes lists, objects and absent values', () => {
    assert.equal(equalJson([], {}), false);
    assert.equal(equalJson(null, {}), false);
    assert.equal(equalJson({ a: null }, {}), false);
    assert.equal(equalJson(JSON.parse('{"__proto__":1}'), {}), false);
  });
});

describe('ownership', () => {
  it('depends on the uid, not on the name', () => {
    const count = aCount();
    const successor = aCount();
    assert.equal(isControlledBy(aPodOf(count, 0), count), true);
    assert.equal(isControlledBy(aPodOf(count, 0), successor), false);
    assert.equal(controllerReference(count).blockOwnerDeletion, true);
  });
});

describe('an API error', () => {
  it('has the kind of its reason, or of its HTTP status if there is no reason', () => {
    assert.equal(ApiError.fromStatus({ reason: 'AlreadyExists', code: 409 }).kind, 'alreadyExists');
    assert.equal(ApiError.fromStatus({ code: 409 }).kind, 'conflict');
    assert.equal(ApiError.fromStatus({}, 502).kind, 'internal');
    assert.equal(ApiError.fromStatus({ reason: 'Surprise' }, 418).kind, 'unknown');
  });

  it('recognises expired and too large resourceVersions', () => {
    assert.equal(isExpired(ApiError.fromStatus({ reason: 'Expired', code: 410 })), true);
    assert.equal(isExpired(ApiError.fromStatus({ code: 410 })), true);
    const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }];
    const tooLarge = [
      { reason: 'Timeout', code: 504, details: { causes } },
      { reason: 'Timeout', code: 504, details: { causes: [{ message: causes[0]!.message }] } },
      { reason: 'Timeout', code: 504, message: 'Too large resource version' },
    ];
    for (const status of tooLarge) {
      assert.equal(isTooLargeResourceVersion(ApiError.fromStatus(status)), true);
    }
    assert.equal(isTooLargeResourceVersion(ApiError.fromStatus({ code: 504 })), false);
  });

  it('contains the retry delay of the server', () => {
    const status = { code: 429, details: { retryAfterSeconds: 3 } };
    assert.equal(ApiError.fromStatus(status).retryAfterMs, 3000);
  });
});

describe('a condition', () => {
  const ready = { type: 'Ready', reason: 'R', message: 'm' } as const;

  it('keeps its transition time while its status is unchanged', () => {
    const first = setCondition([], { ...ready, status: 'False' }, 0);
    const second = setCondition(first, { ...ready, status: 'False', message: 'n' }, 5000);
    const third = setCondition(second, { ...ready, status: 'True' }, 9000);
    assert.deepEqual(
      [first, second, third].map(([condition]) => condition?.lastTransitionTime),
      [timestamp(0), timestamp(0), timestamp(9000)],
    );
    assert.equal(second[0]?.message, 'n');
  });

  it('has the message as a server stores it', () => {
    const messageOf = (message: string) =>
      setCondition([], { ...ready, status: 'True', message }, 0)[0]?.message;
    assert.equal(messageOf('\ud83d\ude00 \ud83d.'), '😀 \ufffd.');
    assert.equal(messageOf('😀'.repeat(20_000)), `${'😀'.repeat(16_383)}…`);
  });

  it('is replaced in place', () => {
    const others = setCondition(
      setCondition([], { ...ready, status: 'True' }, 0),
      { ...ready, type: 'B', status: 'True' },
      0,
    );
    const set = setCondition(others, { ...ready, status: 'False' }, 0);
    assert.deepEqual(
      set.map(({ type, status }) => `${type} ${status}`),
      ['Ready False', 'B True'],
    );
  });
});

describe('a label value', () => {
  it('is the name if it is short enough, otherwise a valid and distinct shortened form', () => {
    assert.equal(labelValue('test-count'), 'test-count');
    const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9.]{60,250}[a-z0-9])$/);
    fc.assert(
      fc.property(name, (long) => {
        const value = labelValue(long);
        assert.ok(value.length <= 63);
        requireLabelValue(value);
        if (long.length > 63) assert.notEqual(value, labelValue(`${long}x`));
      }),
    );
  });
});

describe('the path of a resource', () => {
  it('depends on group, scope and namespace', () => {
    assert.equal(collectionPath(PODS), '/api/v1/pods');
    assert.equal(collectionPath(PODS, 'dev'), '/api/v1/namespaces/dev/pods');
    assert.equal(objectPath(NODES, { name: 'a' }), '/api/v1/nodes/a');
    assert.equal(
      objectPath(COUNTS, { namespace: 'default', name: 'x/../y' }, 'status'),
      '/apis/demo.mark8s.io/v1/namespaces/default/counts/x%2F..%2Fy/status',
    );
  });
});
