import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { matchesFields, parseFieldSelector } from '../../../src/api/field-selector.ts';

describe('a field selector', () => {
  it('is split at commas, with unescaped values', () => {
    assert.deepEqual(parseFieldSelector(String.raw`a.b=x\,y\=z\\,c!=d,e==`), [
      { field: 'a.b', operator: '=', value: String.raw`x,y=z` + '\\' },
      { field: 'c', operator: '!=', value: 'd' },
      { field: 'e', operator: '=', value: '' },
    ]);
    assert.deepEqual(parseFieldSelector(''), []);
  });

  for (const bad of ['novalue', String.raw`a=\x`, 'a=b=c']) {
    it(`rejects ${bad}`, () => {
      assert.throws(() => parseFieldSelector(bad), SyntaxError);
    });
  }

  it('accepts every escaped value', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 20 }), (value) => {
        const escaped = value.replaceAll(/[\\,=]/g, String.raw`\$&`);
        assert.deepEqual(parseFieldSelector(`f=${escaped}`), [
          { field: 'f', operator: '=', value },
        ]);
      }),
    );
  });

  it('compares fields for equality and inequality', () => {
    const valueOf = (field: string) => ({ 'metadata.name': 'web' })[field] ?? '';
    const matches = (text: string) => matchesFields(parseFieldSelector(text), valueOf);
    assert.equal(matches('metadata.name=web'), true);
    assert.equal(matches('metadata.name!=web'), false);
    assert.equal(matches('metadata.name=web,status.phase!=Running'), true);
  });
});
