import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { ApiError, isExpired, isTooLargeResourceVersion } from '../../../src/api/api-error.ts';
import { parseFieldSelector } from '../../../src/api/field-selector.ts';
import type { FieldRequirement } from '../../../src/api/field-selector.ts';
import {
  formatLabelSelector,
  matchesLabels,
  parseLabelSelector,
} from '../../../src/api/label-selector.ts';
import type { Requirement } from '../../../src/api/label-selector.ts';
import { keyOf, objectKey, splitKey } from '../../../src/api/object-key.ts';
import { compareResourceVersions } from '../../../src/api/resource-version.ts';

/** @returns undefined if the text was rejected with a SyntaxError */
function tryParse<R>(parse: (text: string) => R, text: string): R | undefined {
  try {
    return parse(text);
  } catch (error) {
    assert.ok(error instanceof SyntaxError, `${JSON.stringify(text)}: ${String(error)}`);
    return undefined;
  }
}

function texts(units: readonly string[]): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(...units), maxLength: 30 });
}

/** Returns the processor time of `work`, which does not depend on other processes. */
function spentMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Parsing takes milliseconds in linear time and seconds in quadratic time. */
const LONG = 30_000;

const word = fc.stringMatching(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?$/);
const prefix = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,4}[a-z0-9])?(\.[a-z0-9]{1,3}){0,2}$/);
const key = fc.oneof(
  word,
  fc.tuple(prefix, word).map(([of, name]) => `${of}/${name}`),
  fc.constantFrom('in', 'notin', 'constructor'),
);
const value = fc.oneof(fc.constant(''), word, fc.constantFrom('in', 'notin'));
const int64 = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n });

describe('a label selector', () => {
  const plain = { noNullPrototype: true };
  const requirement: fc.Arbitrary<Requirement> = fc.oneof(
    fc.record(
      {
        operator: fc.constantFrom('in' as const, 'notin' as const),
        key,
        values: fc.array(value, { minLength: 1, maxLength: 4 }),
      },
      plain,
    ),
    fc.record({ operator: fc.constantFrom('exists' as const, 'absent' as const), key }, plain),
    fc.record(
      { operator: fc.constantFrom('gt' as const, 'lt' as const), key, value: int64 },
      plain,
    ),
  );

  /** The tokens of one requirement; two words in a row are kept apart by white space. */
  const tokens = (one: Requirement, short: boolean): string[] => {
    switch (one.operator) {
      case 'exists':
        return [one.key];
      case 'absent':
        return ['!', one.key];
      case 'gt':
      case 'lt':
        return [one.key, one.operator === 'gt' ? '>' : '<', String(one.value)];
      case 'in':
      case 'notin': {
        const [first = '', ...rest] = one.values;
        if (short && rest.length === 0) {
          return [one.key, one.operator === 'in' ? '=' : '!=', first];
        }
        const list = one.values.flatMap((each, at) => (at === 0 ? [each] : [',', each]));
        return [one.key, ' ', one.operator, '(', ...list, ')'];
      }
    }
  };

  // upstream: 55
  it('is parsed with any white space between its parts', () => {
    const space = fc.constantFrom('', '', ' ', '\t', ' \r\n ');
    fc.assert(
      fc.property(
        fc.array(fc.tuple(requirement, fc.boolean()), { minLength: 1, maxLength: 4 }),
        fc.infiniteStream(space),
        (requirements, spaces) => {
          const parts = requirements.flatMap(([one, short], at) => [
            ...(at === 0 ? [] : [',']),
            ...tokens(one, short),
          ]);
          const text = parts.map((part) => `${spaces.next().value}${part}`).join('');
          assert.deepEqual(
            parseLabelSelector(text),
            requirements.map(([one]) => one),
          );
        },
      ),
    );
  });

  // upstream: 55
  it('compares integers exactly within 64 bits', () => {
    fc.assert(
      fc.property(int64, fc.bigInt({ min: -2n, max: 2n }), (bound, step) => {
        const number = bound + step;
        const inRange = number >= 0n && number < 2n ** 63n;
        const labels = { n: String(number) };
        const matches = (sign: string) =>
          matchesLabels(parseLabelSelector(`n${sign}${bound}`), labels);
        // A label value cannot start with a sign, and larger numbers are not integers.
        if (inRange) assert.deepEqual([matches('>'), matches('<')], [step > 0n, step < 0n]);
        else if (number >= 0n) assert.deepEqual([matches('>'), matches('<')], [false, false]);
      }),
    );
    assert.equal(tryParse(parseLabelSelector, 'n>9223372036854775808'), undefined);
  });

  it('is parsed or rejected with a SyntaxError, whatever its text is', () => {
    const pieces = texts(
      'a|in|notin|=|==|!|<|>|(|)|,| |/|.|-|7|\\|\0|\n|\u00a0|é|😀|\ud800|__proto__'.split('|'),
    );
    fc.assert(
      fc.property(pieces, (text) => {
        for (const one of tryParse(parseLabelSelector, text) ?? []) assert.ok(one.key.length > 0);
      }),
    );
  });

  it('is converted from its object form only if all its parts are valid in labels', () => {
    const part = texts('a|b|,|=|!|(|)| |/|-'.split('|'));
    const operator = fc.constantFrom(
      'In' as const,
      'NotIn' as const,
      'Exists' as const,
      'DoesNotExist' as const,
    );
    fc.assert(
      fc.property(part, operator, fc.array(part, { maxLength: 2 }), (key, operator, values) => {
        const selector = { matchExpressions: [{ key, operator, values }] };
        const text = tryParse(() => formatLabelSelector(selector), JSON.stringify(selector));
        if (text === undefined) return;
        const [read, ...more] = parseLabelSelector(text);
        assert.deepEqual([read?.key, more], [key, []]);
        const kept = operator === 'In' || operator === 'NotIn' ? values : undefined;
        assert.deepEqual(read && 'values' in read ? read.values : undefined, kept);
      }),
    );
    for (const matchLabels of [{ 'a!': 'b' }, { a: 'b,c' }, { 'a in (b),c': '' }, { '!a': '' }]) {
      assert.throws(() => formatLabelSelector({ matchLabels }), SyntaxError);
    }
  });

  it('accepts only the white space of the grammar', () => {
    for (const space of ['\u00a0', '\u2028', '\ufeff', '\v', '\f']) {
      assert.equal(tryParse(parseLabelSelector, `a${space}=${space}b`), undefined);
    }
  });

  it('is parsed in linear time', () => {
    const hostile = ['a', 'a ', '(', '!', ' ', 'a,', 'a.', 'a./', '\\'];
    const long = hostile.flatMap((piece) => {
      const run = piece.repeat(LONG);
      return [run, `x in (${run})`, `x=${run}!`];
    });
    const ms = spentMs(() => {
      for (const text of long) tryParse(parseLabelSelector, text);
    });
    assert.ok(ms < 2000, `${ms} ms`);
  });
});

describe('a field selector', () => {
  const field = fc.stringMatching(/^[a-zA-Z][a-zA-Z.]{0,10}$/);
  const requirement: fc.Arbitrary<FieldRequirement> = fc.record(
    {
      field,
      operator: fc.constantFrom('=' as const, '!=' as const),
      value: fc.oneof(fc.string({ maxLength: 8 }), texts(['\\', ',', '=', '!', 'a'])),
    },
    { noNullPrototype: true },
  );

  it('is parsed into its requirements', () => {
    fc.assert(
      fc.property(fc.array(requirement, { maxLength: 4 }), fc.boolean(), (requirements, twice) => {
        const text = requirements.map(({ field, operator, value }) => {
          const sign = operator === '=' && twice ? '==' : operator;
          return `${field}${sign}${value.replaceAll(/[\\,=]/g, String.raw`\$&`)}`;
        });
        assert.deepEqual(parseFieldSelector(text.join(',')), requirements);
      }),
    );
  });

  it('is rejected with a SyntaxError if and only if a value has an unescaped special character', () => {
    const isStray = (text: string): boolean => {
      for (let at = 0; at < text.length; at++) {
        if (text[at] === '=') return true;
        if (text[at] === '\\' && !['\\', ',', '='].includes(text[++at] ?? '')) return true;
      }
      return false;
    };
    fc.assert(
      fc.property(texts(['\\', '=', '!', 'a', '.', 'é', '\n', '\ud800']), (text) => {
        const read = tryParse(parseFieldSelector, `f!=${text}`);
        // After `f!=`, all characters belong to the value.
        assert.equal(read === undefined, isStray(text), JSON.stringify(text));
      }),
    );
  });

  it('is parsed or rejected with a SyntaxError, whatever its text is', () => {
    fc.assert(
      fc.property(
        texts(['\\', '=', '==', '!', 'a', ',', '.', '\0', '\n', 'é', '\ud800']),
        (text) => {
          tryParse(parseFieldSelector, text);
        },
      ),
    );
  });

  it('is parsed in linear time', () => {
    const hostile = ['a', '\\', '\\\\', '=', '!', ',', 'a=', '\\,', '\\=', 'a=\\,', '!='];
    const ms = spentMs(() => {
      for (const piece of hostile) {
        const run = piece.repeat(LONG);
        for (const text of [run, `x=${run}`, `x=${run}a`, `${run}=x`]) {
          tryParse(parseFieldSelector, text);
        }
      }
    });
    assert.ok(ms < 2000, `${ms} ms`);
  });
});

describe('an object key', () => {
  const name = fc.string({ minLength: 1, maxLength: 12 }).filter((text) => !text.includes('/'));

  // upstream: 54
  it('is parsed into namespace and name', () => {
    fc.assert(
      fc.property(fc.option(name, { nil: undefined }), name, (namespace, of) => {
        const made = objectKey(namespace, of);
        assert.equal(made, namespace === undefined ? of : `${namespace}/${of}`);
        const read = splitKey(made);
        assert.deepEqual([read.namespace, read.name], [namespace, of]);
        assert.equal(keyOf({ metadata: { ...read } }), made);
      }),
    );
  });

  // upstream: 54
  it('is any text with at most one slash', () => {
    fc.assert(
      fc.property(texts(['a', 'b', '/', '.', '\0', '\\']), (text) => {
        const parts = text.split('/');
        const read = tryParse(splitKey, text);
        assert.equal(read === undefined, parts.length > 2);
        if (!read) return;
        assert.equal(read.name, parts.at(-1));
        assert.equal(read.namespace, parts.length === 2 ? parts[0] : undefined);
      }),
    );
  });

  // upstream: 54
  it('consists of a name, or of a namespace and a name', () => {
    assert.deepEqual(splitKey('foo'), { name: 'foo' });
    assert.deepEqual(splitKey('ns/foo'), { namespace: 'ns', name: 'foo' });
    assert.deepEqual(splitKey(''), { name: '' });
    assert.equal(objectKey('', 'foo'), 'foo');
    assert.throws(() => splitKey('a/b/c'), {
      name: 'SyntaxError',
      message: 'Unexpected key format: "a/b/c"',
    });
  });
});

describe('a resourceVersion', () => {
  it('is compared with others of its form, and causes a SyntaxError otherwise', () => {
    const decimal = /^[1-9][0-9]*$/;
    const version = fc.oneof(
      fc.bigInt({ min: 1n, max: 2n ** 70n }).map(String),
      texts(['0', '1', '9', '-', '+', ' ', 'e', '.', '\n', '١']),
    );
    fc.assert(
      fc.property(version, version, (a, b) => {
        const order = tryParse(() => compareResourceVersions(a, b), `${a} ${b}`);
        assert.equal(order !== undefined, decimal.test(a) && decimal.test(b));
        if (order === undefined) return;
        assert.equal(Math.sign(order), BigInt(a) < BigInt(b) ? -1 : BigInt(a) > BigInt(b) ? 1 : 0);
      }),
    );
  });
});

describe('a Status from the network', () => {
  it('is converted to an ApiError for any members', () => {
    const details = fc.record(
      {
        causes: fc.oneof(
          fc.jsonValue({ maxDepth: 1 }),
          fc.array(fc.record({ reason: fc.jsonValue({ maxDepth: 0 }), message: fc.constant('x') })),
        ),
        retryAfterSeconds: fc.oneof(
          fc.jsonValue({ maxDepth: 0 }),
          fc.constantFrom(Infinity, 1e306, 0.5, -1),
          fc.nat(),
        ),
      },
      { requiredKeys: [] },
    );
    const status = fc.record(
      {
        message: fc.jsonValue({ maxDepth: 1 }),
        reason: fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constant('Expired')),
        code: fc.oneof(fc.jsonValue({ maxDepth: 0 }), fc.constantFrom(410, 429, 504)),
        details: fc.oneof(fc.jsonValue({ maxDepth: 1 }), details),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(status, (hostile) => {
        const error = ApiError.fromStatus(hostile);
        assert.equal(typeof error.message, 'string');
        assert.equal(typeof error.code, 'number');
        assert.equal(typeof isExpired(error), 'boolean');
        assert.equal(typeof isTooLargeResourceVersion(error), 'boolean');
        assert.equal(error.hasCause('never'), false);
        const { retryAfterMs = 0 } = error;
        assert.ok(retryAfterMs >= 0 && retryAfterMs < 2 ** 31 * 1000, `${retryAfterMs} ms`);
      }),
    );
  });

  it('keeps valid members beside invalid ones', () => {
    const causes = [null, { reason: 'ResourceVersionTooLarge', field: 7 }, 'x'];
    const error = ApiError.fromStatus({
      reason: 'Timeout',
      message: 7,
      details: { name: 'a', uid: [], causes, retryAfterSeconds: 2 },
      code: 504,
    });
    assert.equal(error.message, 'Timeout');
    assert.deepEqual(error.details, {
      name: 'a',
      causes: [{ reason: 'ResourceVersionTooLarge' }],
      retryAfterSeconds: 2,
    });
    assert.equal(isTooLargeResourceVersion(error), true);
    assert.equal(error.retryAfterMs, 2000);
  });
});
