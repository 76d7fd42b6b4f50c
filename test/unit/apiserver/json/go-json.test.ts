import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assert as check, constantFrom, json, nat, oneof, property, tuple } from 'fast-check';
import { inspectJson } from '../../../../src/apiserver/json/go-json.ts';

test('reports errors with the text of Go', () => {
  const mistakes: [string, string][] = [
    ['', 'unexpected end of JSON input'],
    ['{', 'unexpected end of JSON input'],
    ['{"a', 'unexpected end of JSON input'],
    ['{"a":1,}', "invalid character '}' looking for beginning of object key string"],
    ['[1,]', "invalid character ']' looking for beginning of value"],
    ['[1 2]', "invalid character '2' after array element"],
    ['{"a":1 "b"}', "invalid character '\"' after object key:value pair"],
    ["{'a'}", "invalid character '\\'' looking for beginning of object key string"],
    ['{"a",1}', "invalid character ',' after object key"],
    ['{} x', "invalid character 'x' after top-level value"],
    ['tru1', "invalid character '1' in literal true (expecting 'e')"],
    ['-x', "invalid character 'x' in numeric literal"],
    ['1.x', "invalid character 'x' after decimal point in numeric literal"],
    ['1e+x', "invalid character 'x' in exponent of numeric literal"],
    ['01', "invalid character '1' after top-level value"],
    ['"\\x"', "invalid character 'x' in string escape code"],
    ['"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"],
    ['"\n"', "invalid character '\\n' in string literal"],
  ];
  for (const [text, problem] of mistakes) assert.equal(inspectJson(text).problem, problem, text);
});

test('a text has no problem exactly if JSON.parse accepts it', () => {
  const texts = json();
  const characters = constantFrom(...'{}[]",:x0-.e\\ '.split(''));
  const damaged = tuple(texts, nat(), characters).map(([text, at, character]) => {
    const place = at % (text.length + 1);
    return text.slice(0, place) + character + text.slice(place);
  });
  check(
    property(oneof(texts, damaged), (text) => {
      const read = () => JSON.parse(text) as unknown;
      if (inspectJson(text).problem === undefined) assert.doesNotThrow(read);
      else assert.throws(read, SyntaxError);
    }),
    { numRuns: 600 },
  );
});

test('repeated members are found at every depth', () => {
  const text = `{"a":1,"b":{"c":1,"\\u0063":2,"c":3},"l":[{"x":1},{"x":1,"x":2}],"a":{"a":1}}`;
  const duplicates = ['b.c', 'l[1].x', 'a'].map((path) => `duplicate field "${path}"`);
  assert.deepEqual(inspectJson(text).strictErrors, duplicates);
  const halves = String.raw`{"\ud800":1,"\udc00":1}`;
  assert.deepEqual(inspectJson(halves).strictErrors, ['duplicate field "\ufffd"']);
  assert.deepEqual(inspectJson('{"__proto__":1,"constructor":2}').strictErrors, []);
});

test('deep nesting does not overflow the stack', () => {
  const depth = 100_000;
  assert.deepEqual(inspectJson('['.repeat(depth) + ']'.repeat(depth)), { strictErrors: [] });
});
