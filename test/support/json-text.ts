import * as fc from 'fast-check';

/** An object of JSON as a list of members, whose names may repeat. */
export type Members = readonly (readonly [name: string, value: JsonTree])[];
export type JsonTree =
  string | number | boolean | null | readonly JsonTree[] | { readonly members: Members };

/** Strings that look like the structure of an object, and others that need escapes or several bytes. */
const text = fc.oneof(
  fc.constantFrom(
    '',
    '"',
    '\\',
    '\\"',
    '},"spec":{',
    '"managedFields":[',
    '}],"name":"x"',
    'ü[😀',
    '\u0000\n\u2028',
    'a,b:c',
  ),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
);

const scalar = fc.oneof(
  text,
  fc.constantFrom(null, true, false, 0, -1.5, 1e300, 9_007_199_254_740_991),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

/**
 * Without backslashes: after the name `\\`, V8's JSON.parse (24.21) reads the name `"\u0022"` as `\\`. It compares the
 * escaped text with the name that followed in an earlier object.
 */
const name = fc.oneof(
  fc.constantFrom('spec', 'status', 'metadata', 'managedFields', 'name', 'kind', 'f:x', '.'),
  text.filter((each) => !each.includes('\\')),
);

const { value: tree } = fc.letrec<{ value: JsonTree }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc
      .array(fc.tuple(name, tie('value')), { maxLength: 4 })
      .map((members): JsonTree => ({ members })),
  ),
}));

export { tree as jsonTree };

/** Choices of a writer of JSON: where it puts whitespace, and how it writes characters. */
export interface Style {
  readonly spaces: readonly string[];
  readonly escapeEvery: number;
}

export const style: fc.Arbitrary<Style> = fc.record({
  spaces: fc.oneof(
    fc.constant(['']),
    fc.array(fc.constantFrom('', ' ', '\t', '\r', '  '), { minLength: 1, maxLength: 7 }),
  ),
  escapeEvery: fc.constantFrom(0, 0, 0, 3, 1),
});

/** Writes JSON in one line, in one of the ways that its grammar permits. */
export function writeJson(value: JsonTree, { spaces, escapeEvery }: Style): string {
  let count = 0;
  const space = () => spaces[count++ % spaces.length] ?? '';
  const string = (content: string) => {
    if (escapeEvery === 0) return JSON.stringify(content);
    const escaped = Array.from({ length: content.length }, (_, at) => {
      const unit = content.charCodeAt(at);
      // The halves of a surrogate pair are written in the same way.
      const isEscaped = (unit >= 0xd800 && unit <= 0xdfff) || at % escapeEvery === 0;
      if (isEscaped) return `\\u${unit.toString(16).padStart(4, '0')}`;
      return JSON.stringify(content[at]).slice(1, -1);
    });
    return `"${escaped.join('')}"`;
  };
  const list = (open: string, parts: readonly string[], close: string) =>
    parts.length === 0
      ? `${open}${space()}${close}`
      : `${open}${parts.map((part) => `${space()}${part}${space()}`).join(',')}${close}`;
  const write = (node: JsonTree): string => {
    if (typeof node === 'string') return string(node);
    if (typeof node !== 'object' || node === null) return JSON.stringify(node);
    if ('members' in node) {
      const members = node.members.map(
        ([key, member]) => `${string(key)}${space()}:${space()}${write(member)}`,
      );
      return list('{', members, '}');
    }
    return list('[', node.map(write), ']');
  };
  return write(value);
}
