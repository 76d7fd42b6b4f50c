/** Generates schemas of CRDs with rules in CEL, for the types, costs and messages of the compiler. */
import type { Choices } from './choices.ts';
import type { Json } from './requests.ts';

type Type = 'bool' | 'int' | 'string' | 'list' | 'map' | 'time' | 'optional';

/**
 * Expressions by type: in a template, `{TYPE}` stands for another expression. `self` has a field of each type with a
 * bound and one without.
 */
const TEMPLATES: Readonly<Record<Type, readonly string[]>> = {
  bool: [
    'self.flag',
    'true',
    '!{bool}',
    '{bool} && {bool}',
    '{bool} || {bool}',
    '{bool} ? {bool} : {bool}',
    '{string} == {string}',
    '{string} <= {string}',
    '{int} < {int}',
    '{int} != {int}',
    '{list} == {list}',
    '{map} == {map}',
    '{time} < {time}',
    '{string}.startsWith({string})',
    '{string}.endsWith({string})',
    '{string}.contains({string})',
    '{string}.matches("^[a-z]+$")',
    '{string}.matches({string})',
    '{string} in {list}',
    '{string} in {map}',
    '{list}.all(x, x == {string})',
    '{list}.exists(x, x.contains({string}))',
    '{list}.exists_one(x, x == {string})',
    '{list}.all(x, {list}.exists(y, x == y))',
    '{list}.all(i, x, i < {int} && x != "")',
    '{map}.all(k, k.startsWith({string}))',
    '{map}.exists(k, v, v > {int} && k != "")',
    '{list}.isSorted()',
    'sets.contains({list}, {list})',
    'sets.intersects({list}, {list})',
    'sets.equivalent({list}, {list})',
    'has(self.option)',
    '{optional}.hasValue()',
    'isURL({string})',
    'isIP({string})',
    'isCIDR({string})',
    'isQuantity({string})',
    'isSemver({string})',
    'ip({string}).isLoopback()',
    'ip({string}) == ip({string})',
    'cidr({string}).containsIP({string})',
    'cidr({string}).containsCIDR(cidr({string}))',
    'quantity({string}).isGreaterThan(quantity({string}))',
    'quantity({string}).add(quantity({string})).isInteger()',
    'semver({string}).isLessThan(semver({string}))',
    'format.dns1123Label().validate({string}).hasValue()',
    'format.named({string}).hasValue()',
    'duration({string}) < duration("1h")',
    'type({string}) == string',
    'self.parts.all(p, p.name != {string})',
    'self.parts.exists(p, has(p.value) && p.value > {int})',
    '{list}.map(x, x + {string}) == {list}',
    'dyn({string}) == {int}',
  ],
  int: [
    'self.count',
    '1',
    '-5',
    'size({string})',
    '{list}.size()',
    'size({map})',
    '{int} + {int}',
    '{int} * {int}',
    '{int} % {int}',
    '-{int}',
    '{string}.indexOf({string})',
    '{list}.indexOf({string})',
    '{list}.map(x, size(x)).sum()',
    '{list}.map(x, size(x)).max()',
    'int({string})',
    'int(1.5)',
    '{map}[{string}]',
    '{time}.getFullYear()',
    '{time}.getHours("Europe/Berlin")',
    'ip({string}).family()',
    'cidr({string}).prefixLength()',
    'quantity({string}).asInteger()',
    'quantity({string}).compareTo(quantity({string}))',
    'semver({string}).major()',
    '{bool} ? {int} : {int}',
    'self.parts[{int}].value',
    'self.parts.filter(p, p.value > 1).size()',
  ],
  string: [
    'self.text',
    'self.any',
    '"a"',
    "'b-c'",
    '{string} + {string}',
    '{string}.lowerAscii()',
    '{string}.upperAscii()',
    '{string}.trim()',
    '{string}.replace({string}, {string})',
    '{string}.replace("a", {string}, {int})',
    '{string}.substring({int})',
    '{string}.substring({int}, {int})',
    '{string}.charAt({int})',
    '{string}.find("a+")',
    '{string}.split({string})[{int}]',
    '{list}.join({string})',
    '{list}.join()',
    '{list}[{int}]',
    'string({int})',
    'string({time})',
    '{optional}.orValue({string})',
    '{optional}.value()',
    'url({string}).getHost()',
    'url({string}).getQuery()["a"][0]',
    'cidr({string}).masked().ip().string()',
    '"%s-%d".format([{string}, {int}])',
    '{bool} ? {string} : {string}',
    '{list}.min()',
    'self.parts[0].name',
    'self.parts.map(p, p.name)[0]',
    'string(b"a")',
    'base64.encode(bytes({string}))',
    '{string}.reverse()',
    'strings.quote({string})',
  ],
  list: [
    'self.list',
    'self.names',
    '["a", {string}]',
    '[]',
    '{list} + {list}',
    '{list}.filter(x, x != {string})',
    '{list}.map(x, x + {string})',
    '{list}.map(x, x != "a", {string})',
    '{string}.split({string})',
    '{string}.findAll("a")',
    '{string}.findAll("a", {int})',
    '{map}.map(k, k)',
    'self.parts.map(p, p.name)',
    '{list}.slice({int}, {int})',
    '{list}.distinct()',
    '{list}.sort()',
    '{list}.reverse()',
    '{list}.transformList(i, x, x + string(i))',
  ],
  map: [
    'self.map',
    '{"a": {int}}',
    '{{string}: 1}',
    '{map}.transformMap(k, v, v + {int})',
    '{list}.transformMapEntry(i, x, {x: i})',
  ],
  time: [
    'self.when',
    'timestamp("2020-01-01T00:00:00Z")',
    'timestamp({string})',
    '{time} + duration({string})',
  ],
  optional: [
    'self.?option',
    'optional.of({string})',
    'optional.none()',
    '{list}[?{int}]',
    'self.?parts[0].?name',
    '{optional}.or({optional})',
    '{optional}.optMap(x, x + {string})',
    'optional.ofNonZeroValue({string})',
  ],
};

/** Returns a schema with one to three rules, some of which are about the old object. */
export function schemaWithRules(choices: Choices): Json {
  const expression = (type: Type, depth: number): string => {
    const all = TEMPLATES[type];
    const template =
      depth > 0 ? choices.one(all) : (all.find((text) => !/\{\w+\}/.test(text)) ?? '""');
    return template.replace(/\{(bool|int|string|list|map|time|optional)\}/g, (_, inner: Type) => {
      const text = expression(inner, depth - 1);
      return /^[\w.]+$|^"\w*"$|\)$/.test(text) ? text : `(${text})`;
    });
  };
  const rule = () => {
    const text = expression('bool', 1 + choices.below(3));
    const isTransition = choices.chance(0.2);
    return {
      rule: isTransition ? text.replace('self.', 'oldSelf.') : text,
      ...(choices.chance(0.15) && { messageExpression: expression('string', 2) }),
      ...(choices.chance(0.1) && { optionalOldSelf: choices.chance(0.8) }),
    };
  };
  const text = (more: object = {}) => ({ type: 'string', ...more });
  const bound = (more: object) => (choices.chance(0.5) ? more : {});
  return {
    type: 'object',
    properties: {
      flag: { type: 'boolean' },
      count: { type: 'integer' },
      text: text(bound({ maxLength: choices.one([1, 10, 253, 10_000]) })),
      any: text(choices.one([{}, { maxLength: 5 }, { format: 'uuid' }, { enum: ['a', 'abc'] }])),
      option: text(),
      when: text({ format: 'date-time' }),
      list: {
        type: 'array',
        items: text(bound({ maxLength: 20 })),
        ...bound({ maxItems: choices.one([2, 100]) }),
      },
      names: { type: 'array', items: text(), maxItems: 5 },
      map: {
        type: 'object',
        additionalProperties: { type: 'integer' },
        ...bound({ maxProperties: choices.one([3, 64]) }),
      },
      parts: {
        type: 'array',
        ...bound({ maxItems: choices.one([3, 50]) }),
        items: {
          type: 'object',
          required: ['name'],
          properties: { name: text(bound({ maxLength: 63 })), value: { type: 'integer' } },
          ...(choices.chance(0.3) && {
            'x-kubernetes-validations': [{ rule: `self.name != ${expression('string', 0)}` }],
          }),
        },
      },
    },
    'x-kubernetes-validations': Array.from({ length: 1 + choices.below(3) }, rule),
  };
}
