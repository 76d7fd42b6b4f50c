import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonSchema } from '../../../src/api/json-schema.ts';
import { compileRules } from '../../../src/cel/rule.ts';
import { declare } from '../../../src/cel/schema-type.ts';

const text = (maxLength: number): JsonSchema => ({ type: 'string', maxLength });
const list = (maxItems: number, items: JsonSchema): JsonSchema => ({
  type: 'array',
  maxItems,
  items,
});
const map = (maxProperties: number, additionalProperties: JsonSchema): JsonSchema => ({
  type: 'object',
  maxProperties,
  additionalProperties,
});
const object = (properties: Readonly<Record<string, JsonSchema>>): JsonSchema => ({
  type: 'object',
  properties,
});

const SCHEMA = object({
  s: text(10),
  u: { type: 'string' },
  e: { type: 'string', enum: ['a', 'bcd'] },
  l: list(7, text(5)),
  ll: list(3, list(4, text(6))),
  m: map(3, text(4)),
  um: { type: 'object', additionalProperties: { type: 'string' } },
  o: object({ a: text(20) }),
  lo: list(11, object({ k: text(8), v: { type: 'integer' }, t: list(3, text(3)) })),
  i: { type: 'integer' },
  b: { type: 'boolean' },
  by: { type: 'string', format: 'byte', maxLength: 12 },
});

const UNKNOWN = 2 ** 64;

/** Rules with the cost that kube-apiserver 1.37 estimates. */
const COSTS: readonly (readonly [rule: string, cost: number])[] = [
  // The paths of nested macros share an array.
  ['self.lo.all(x, x.t.all(y, y.startsWith(x.k)))', 3589],
  ['self.lo.exists(x, x.t.sortBy(y, x.k).all(z, x.k == z))', 96_627],
  ["self.m.all(k, k.contains('abcdefghijklmnop'))", 15],
  ['self.um.all(k, self.um[k].contains(k))', 3_145_723],
  ["self.l.map(x, x + 'a').all(y, y.contains('abcdefghijklmn'))", 154],
  ["self.l.filter(x, x == 'a').size() > 0", 120],
  ['self.lo.map(x, x.v).sum() > 3', 179],
  ["self.lo.map(x, x).all(y, y.k.contains('abcdefghijkl'))", UNKNOWN],
  ["self.l.join(self.s).contains('abcdefghijkl')", 118],
  ["self.s.split(',', 2).all(x, x == 'a')", 19],
  ["self.s.replace('', 'bbb').contains('abcdefghijklmno')", 44],
  ["self.s.replace('aaa', self.e).contains('abcdefghijklmno')", 20],
  ["self.s.replace(self.e, 'x').contains('abcdefghijklmno')", 30],
  ["self.s.findAll('[a-z]+').all(x, x.contains('abcdefghijklmno'))", 173],
  ["(self.b ? self.l : ['x', 'y']).all(x, x.contains('abcdefghijkl'))", 41],
  ["(self.b ? self.o : self.o).a.contains('abcdefghijkl')", 5],
  ["{'a': 'bcd', 'ef': 'g'}.all(k, v, v.contains('abcdefghijkl'))", 39],
  ["(self.l + ['a']).all(x, x.contains('abcdefghijkl'))", 46],
  ["string(self.by).contains('abcdefghijkl')", 8],
  ['self.i == 3', 2],
  ['self.i == -3', 2],
  ["dyn(self.l).all(x, x.contains('abcdefghijkl'))", 32],
  ["self.?s.orValue('').contains('abcdefghijkl')", UNKNOWN / 5],
  ['self.?s.optFlatMap(x, optional.of(x.size())).orValue(3) == 3', 21],
  ['[?self.?s].size() == 1', 14],
  ['[self.?s].unwrapOpt().size() > 2', 15],
  ["self.l.first().value().contains('abcdefghijkl')", UNKNOWN / 5],
  ["self.l.sort().all(x, x.contains('abcdefghijkl'))", 313],
  ["self.l.slice(0, 2).all(x, x.contains('abcdefghijkl'))", 24],
  ['self.l.distinct().size() > 3', 113],
  ['self.ll.flatten(2).size() > 3', 21],
  ['self.lo.sortBy(x, x.k).size() > 3', 447],
  ["self.m.transformMap(k, v, k != 'a', v).size() > 3", 50],
  ['self.m.transformMapEntry(k, v, {v: k}).size() > 2', 137],
  ["self.m.exists_one(k, v, v == 'a')", 16],
  ['self.lo.all(x, self.lo.exists(y, y.k == x.k))', 1521],
  ['url(self.s) == url(self.u)', 629_154],
  ['isURL(self.s)', 3],
  ['cidr(self.s).containsIP(self.s)', 16],
  ['cidr(self.s).containsCIDR(self.u)', 314_588],
  ['format.dns1123Label().validate(self.s).hasValue()', 132],
  // A field after a call is looked up below the root.
  ["oldSelf.value().s.contains('a')", 3],
  ["oldSelf.value().o.a.contains('a')", UNKNOWN / 10],
  ["self.s.startsWith(oldSelf.?s.orValue(''))", UNKNOWN / 10],
  ['oldSelf.optMap(o, o.l.all(x, x in self.l)).orValue(true)', 19],
];

test('estimates follow the path of a value as upstream', () => {
  const schema = {
    ...SCHEMA,
    'x-kubernetes-validations': COSTS.map(([rule]) => ({
      rule,
      ...(rule.includes('oldSelf') && { optionalOldSelf: true }),
    })),
  };
  const declared = declare(schema, true);
  assert.ok(declared);
  for (const [index, rule] of [...compileRules(schema, declared)].entries()) {
    const [source, cost] = COSTS[index] ?? [];
    assert.ok(rule && 'maxCost' in rule && cost !== undefined, JSON.stringify(rule));
    // Above a million, a few units more or less.
    const isEqual = Math.abs(rule.maxCost - cost) <= (cost > 1e6 ? cost * 1e-9 : 0);
    assert.ok(isEqual, `${source}: ${rule.maxCost}, not ${cost}`);
  }
});
