/** Generates texts of each format, most of them one or two characters away from valid ones. */
import type { Choices } from './choices.ts';
import type { Json } from './requests.ts';

/** Valid texts by the formats of custom resources. */
const FORMATS: Readonly<Record<string, readonly string[]>> = {
  bsonobjectid: ['507f1f77bcf86cd799439011'],
  byte: ['YQ==', 'YWJj', 'YWI='],
  cidr: ['10.0.0.0/8', 'fd00::/64', '1.2.3.4/32'],
  creditcard: ['4111111111111111', '5555 5555 5555 4444'],
  date: ['2020-02-29', '0001-01-01'],
  'date-time': ['2020-02-29T23:59:59Z', '2020-01-01T00:00:00.123+09:00'],
  duration: ['1h30m', '5 days', '1.5h', '10ms', '2 weeks'],
  email: ['a@example.com', '"a b"@example.com', 'A B <a.b+c@x-y.org>', 'a@[10.0.0.1]'],
  hexcolor: ['#aabbcc', 'abc'],
  hostname: ['example.com', 'a-1.b', 'localhost', 'xn--bcher-kva.de'],
  ipv4: ['10.0.0.1', '255.255.255.255'],
  ipv6: ['::1', '2001:db8::ff00:42:8329', '::ffff:1.2.3.4'],
  isbn: ['9780306406157', '0306406152'],
  isbn10: ['0-306-40615-2', '080442957X'],
  isbn13: ['978-0-306-40615-7'],
  'k8s-long-name': ['a.b-c.example.com', '1'],
  'k8s-short-name': ['a-b', '1a'],
  mac: ['00:1a:2b:3c:4d:5e', '00-1A-2B-3C-4D-5E', '001a.2b3c.4d5e'],
  password: ['x'],
  rgbcolor: ['rgb(1, 2, 255)', 'rgb(0,0,0)'],
  ssn: ['111-11-1111', '111 11 1111'],
  uri: ['https://a.example.com:80/b?c=d#e', '/a/b', 'urn:a:b', 'mailto:a@b'],
  uuid: ['a7c8e2de-6a7d-1b5d-9b1c-0123456789ab'],
  uuid3: ['a7c8e2de-6a7d-3b5d-9b1c-0123456789ab', 'a7c8e2de6a7d3b5d9b1c0123456789ab'],
  uuid4: ['a7c8e2de-6a7d-4b5d-9b1c-0123456789ab'],
  uuid5: ['A7C8E2DE-6A7D-5B5D-9B1C-0123456789AB'],
};

/** The schema of an object with a text of each format. */
export const FORMATS_SCHEMA: Json = {
  type: 'object',
  properties: Object.fromEntries(
    Object.keys(FORMATS).map((format) => [format, { type: 'string', format }]),
  ),
};

/** Returns texts of some formats. */
export function formattedTexts(choices: Choices): Json {
  const entries = Object.entries(FORMATS).filter(() => choices.chance(0.2));
  return Object.fromEntries(
    entries.map(([format, texts]) => [format, changedText(choices.one(texts), choices)]),
  );
}

const INSERTED: readonly string[] = [
  ...Array.from('0019aAzZ .,:;/-_+@#%()[]<>"\'\\\t'),
  'é',
  '١',
  '\u200b',
  '\u{1f600}',
  '00',
  'e5',
];

/** Returns a text with up to two characters that are removed, repeated, inserted, swapped or in another case. */
export function changedText(text: string, choices: Choices): string {
  const characters = Array.from(text);
  for (let count = choices.below(3); count > 0; count--) {
    const at = choices.below(characters.length + 1);
    const character = characters[at] ?? '';
    const inserted = choices.one(INSERTED);
    const isUpper = character === character.toUpperCase();
    const changes: readonly (readonly string[])[] = [
      [],
      [character, character],
      [inserted],
      [inserted, character],
      [character, inserted],
      [isUpper ? character.toLowerCase() : character.toUpperCase()],
    ];
    characters.splice(at, 1, ...choices.one(changes));
  }
  return characters.join('');
}
