import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import {
  formatLabelSelector,
  matchesLabels,
  parseLabelSelector,
} from '../../../src/api/label-selector.ts';

const matches = (selector: string, labels?: Record<string, string>) =>
  matchesLabels(parseLabelSelector(selector), labels);

describe('a label selector', () => {
  const cases: [selector: string, labels: Record<string, string>, matches: boolean][] = [
    ['', {}, true],
    ['app=web', { app: 'web' }, true],
    ['app==web', { app: 'web' }, true],
    ['app=web', { app: 'api' }, false],
    ['app=', { app: '' }, true],
    ['app!=web', {}, true],
    ['app!=web', { app: 'web' }, false],
    ['app', { app: '' }, true],
    ['!app', { app: '' }, false],
    ['! app', {}, true],
    ['tier in (a, b),app', { tier: 'b', app: 'x' }, true],
    ['tier in (a,)', { tier: '' }, true],
    ['tier notin (a,b)', { tier: 'c' }, true],
    ['tier notin (a,b)', {}, true],
    ['n>3', { n: '10' }, true],
    ['n>3', { n: 'ten' }, false],
    ['n<3', { n: '2' }, true],
    ['in in (in)', { in: 'in' }, true],
    ['example.com/app=web', { 'example.com/app': 'web' }, true],
    ['constructor', {}, false],
  ];
  for (const [selector, labels, expected] of cases) {
    it(`"${selector}" ${expected ? 'matches' : 'does not match'} ${JSON.stringify(labels)}`, () => {
      assert.equal(matches(selector, labels), expected);
    });
  }

  for (const bad of [
    '=web',
    'app=web=',
    'a b',
    'app in a',
    'app in (a',
    'app in (a b)',
    'n>x',
    ',',
    'app=-web',
    'x/y/z',
    'app,,tier',
    '(',
  ]) {
    it(`rejects "${bad}"`, () => {
      assert.throws(() => parseLabelSelector(bad), SyntaxError);
    });
  }

  it('selects the same objects in its object form and its URL form', () => {
    const word = fc.stringMatching(/^[a-z]([a-z0-9.]{0,5}[a-z0-9])?$/);
    const labels = fc.dictionary(word, word, { maxKeys: 4 });
    const expression = fc.record({
      key: word,
      operator: fc.constantFrom('In', 'NotIn', 'Exists', 'DoesNotExist'),
      values: fc.array(word, { minLength: 1, maxLength: 3 }),
    });
    fc.assert(
      fc.property(
        labels,
        fc.array(expression, { maxLength: 3 }),
        labels,
        (matchLabels, matchExpressions, subject) => {
          const direct =
            Object.entries(matchLabels).every(([key, value]) => subject[key] === value) &&
            matchExpressions.every(({ key, operator, values }) => {
              const value = subject[key];
              switch (operator) {
                case 'In':
                  return value !== undefined && values.includes(value);
                case 'NotIn':
                  return value === undefined || !values.includes(value);
                case 'Exists':
                  return value !== undefined;
                case 'DoesNotExist':
                  return value === undefined;
              }
            });
          assert.equal(
            matches(formatLabelSelector({ matchLabels, matchExpressions }), subject),
            direct,
          );
        },
      ),
    );
  });

  it('is parsed or rejected with a SyntaxError for any text', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), (text) => {
        try {
          parseLabelSelector(text);
        } catch (error) {
          assert.ok(error instanceof SyntaxError);
        }
      }),
    );
  });
});
