import type { Field, LogCall, Scope, Value } from './call.ts';

/** A log call for the comparison, and where our line differs from klog on purpose. */
export interface Curated {
  readonly about: string;
  /** Members that differ from `ORDINARY_CALL`. */
  readonly call: Partial<LogCall>;
  readonly differs?: Difference;
}

export interface Difference {
  readonly because: string;
  /** Our text after the header, if it differs. */
  readonly text?: string;
  /** Our JSON line without its time and caller, if it differs. */
  readonly json?: Readonly<Record<string, unknown>>;
}

export const ORDINARY_CALL: LogCall = {
  time: [2026, 5, 30, 7, 57, 55, 721_030],
  file: 'controller.ts',
  line: 63,
  verbosity: 4,
  level: 0,
  scopes: [],
  isError: false,
  error: null,
  message: 'm',
  fields: [],
};

const info = (about: string, call: Partial<LogCall>, differs?: Difference): Curated => ({
  about,
  call,
  ...(differs && { differs }),
});
const fields = (about: string, ...list: readonly Field[]): Curated => info(about, { fields: list });
const value = (about: string, of: Value, differs?: Difference): Curated =>
  info(about, { fields: [['k', of]] }, differs);
const failure = (about: string, error: string | null, call: Partial<LogCall> = {}): Curated =>
  info(about, { ...call, isError: true, error });
const string = (text: string): Value => ({ string: text });
const int = (number: number): Value => ({ int: String(number) });
const float = (number: string): Value => ({ float: number });
const named = (name: string): Scope => ({ name });
const having = (...list: readonly Field[]): Scope => ({ fields: list });
/** Names of invisible characters. */
const code = (text: string): string =>
  Array.from(text, (character) => `U+${character.codePointAt(0)?.toString(16).toUpperCase()}`).join(
    ' ',
  );

const HEADERS: readonly Curated[] = [
  info('an ordinary line', {
    message: 'Updated Deployment',
    fields: [
      ['deployment', string('default/web')],
      ['replicas', int(3)],
    ],
  }),
  info('a time of small parts', { time: [2026, 1, 2, 3, 4, 5, 6007] }),
  info('a time of no parts', { time: [2027, 1, 1, 0, 0, 0, 0] }),
  info('a time just before the year is over', { time: [2026, 12, 31, 23, 59, 59, 999_999] }),
  info('a leap day', { time: [2028, 2, 29, 12, 0, 0, 1] }),
  info('a long place', { file: 'a-file-with-a-long-name.test.ts', line: 123_456 }),
  failure('an error', 'it broke', { message: 'Failed to sync' }),
  failure('an error line without an error', null, { message: 'Failed to sync' }),
  ...[0, 1, 4, 5, 10].map((level) => info(`verbosity ${level} of 4`, { level })),
  ...[0, 5].map((level) => failure(`an error at verbosity ${level} of 4`, 'x', { level })),
  info('nothing but verbosity 0', { level: 1, verbosity: 0 }),
];

/** Each is used as a value, a message, an error text, an element and a member name. */
const STRINGS: readonly string[] = [
  '',
  ' ',
  'plain',
  'two words',
  '"quoted"',
  "it's",
  'back\\slash',
  'a=b c="d"',
  '{"json":true}',
  '<html> & co',
  '`tick` $dollar %percent %s %d',
  '[1 2]',
  'ends with a quote"',
  'tab\tinside',
  'cr\rinside',
  'naïve café',
  '日本語',
  'ελληνικά',
  'עברית',
  'e\u0301',
  '👍',
  '👍🏽',
  '𝔘𝔫𝔦',
  '½ ² €',
  'a\u{E0100}',
];

const STRANGE_CHARACTERS: readonly string[] = [
  ...Array.from({ length: 0x20 }, (_, index) => String.fromCharCode(index)),
  ...Array.from('\u007F\u0080\u0085\u009B\u009F\u00A0\u00AD\u0378\u061C\u180E\u2000\u200B\u200D'),
  ...Array.from('\u200E\u2028\u2029\u202E\u2060\u2066\u3000\uE000\uFEFF\uFFF9\uFFFC\uFFFD\uFFFE'),
  ...Array.from('\uFFFF\u{1FFFF}\u{E0001}\u{F0000}\u{10FFFF}'),
  '\u{1F9D1}\u200D\u{1F680}',
].filter((character) => character !== '\n');

const TEXTS: readonly Curated[] = [
  ...STRINGS.flatMap((text) => [
    value(`the string ${text}`, string(text)),
    info(`the message ${text}`, { message: text }),
    value(`a list of ${text}`, { list: [string(text)] }),
    value(`a member called ${text}`, { struct: [[text || 'empty', string(text)]] }),
  ]),
  ...STRINGS.filter((text) => text !== '').map((text) => failure(`the error ${text}`, text)),
  ...STRANGE_CHARACTERS.flatMap((text) => [
    value(`a string with ${code(text)}`, string(`a${text}b`)),
    info(`a message with ${code(text)}`, { message: `${text}a` }),
  ]),
  value('a string with half a character', string('a\uD800b')),
  value('a string with the other half', string('\uDC00')),
];

const LINES: readonly Curated[] = [
  '\n',
  '\n\n',
  'one\ntwo',
  'one\ntwo\n',
  '\none',
  'one\n\nthree\n\n',
  'indented:\n  - "a": <b>\n  - c\\d\n',
  'tabs\there\n\tand here',
  'ends like a value\n >',
  'goroutine 1 [running]:\nmain.main()\n\t/tmp/x.go:3 +0x1d\n',
  'ünïcode\n日本語\n👍',
].flatMap((text) => [
  value(`the lines ${JSON.stringify(text)}`, string(text)),
  failure(`an error of the lines ${JSON.stringify(text)}`, text, { fields: [['after', int(1)]] }),
  info(`a message of the lines ${JSON.stringify(text)}`, { message: text }),
  value(`a list of the lines ${JSON.stringify(text)}`, { list: [string(text)] }),
]);

const NUMBERS: readonly Curated[] = [
  ...[0, 1, -1, 42, 2 ** 31, -(2 ** 31), 2 ** 53 - 1, -(2 ** 53 - 1)].map((number) =>
    value(`the integer ${number}`, int(number)),
  ),
  ...[
    '0.1',
    '-1.5',
    '3.0',
    '100',
    '0.000001',
    '0.0000001',
    '1.5e-9',
    '123456789.12345679',
    '9007199254740993',
    '1e20',
    '1e21',
    '-1.5e+300',
    '5e-324',
    '1.7976931348623157e308',
    '0.30000000000000004',
  ].map((number) => value(`the number ${number}`, float(number))),
  value('numbers in a list', { list: [float('1e21'), float('1e-7'), int(7)] }),
  ...['123', '-123', '123456789012345678901234567890'].map((number) =>
    value(`the big integer ${number}`, { big: number }),
  ),
];

const OTHERS: readonly Curated[] = [
  value('true', { bool: true }),
  value('false', { bool: false }),
  value('null', { null: true }),
  value('an error', { error: 'refused' }),
  value('an error of two lines', { error: 'refused\nby "it"' }),
  value('an object', { ref: { namespace: 'default', name: 'web' } }),
  value('an object of no namespace', { ref: { namespace: '', name: 'node-1' } }),
  value('objects', {
    refs: [
      { namespace: 'default', name: 'web' },
      { namespace: '', name: 'node-1' },
    ],
  }),
  value('one object in a list', { refs: [{ namespace: 'a', name: 'b' }] }),
  value('an object in a member', {
    struct: [['owner', { ref: { namespace: 'default', name: 'web' } }]],
  }),
  value('an object among other things', {
    list: [{ ref: { namespace: 'default', name: 'web' } }, int(1)],
  }),
  value('an empty list', { list: [] }),
  value('an empty struct', { struct: [] }),
  value('an empty map', { map: [] }),
  value('a list of everything', {
    list: [{ null: true }, { bool: true }, int(-3), string('x'), { list: [] }, { struct: [] }],
  }),
  value('a struct, in its order', {
    struct: [
      ['z', int(1)],
      ['a', { struct: [['deep', { list: [{ struct: [['deeper', { null: true }]] }] }]] }],
    ],
  }),
  value('a map', {
    map: [
      ['a', int(1)],
      ['b', { map: [['c', string('<d>')]] }],
    ],
  }),
  ...[
    0, 0.001, 0.25, 0.9999, 1, 1.5, 999.999, 1000, 1280, 1000.001, 59_999.999, 60_000, 61_500,
    300_000, 3_599_999, 3_600_000, 93_600_000, 2_147_483_647, -1500, -0.5,
  ].map((ms) => value(`${ms} ms`, { duration: ms })),
];

const SCOPES: readonly Curated[] = [
  info('a name', { scopes: [named('foo')] }),
  info('a name of names', { scopes: [named('foo'), named('sync'), named('x')] }),
  info('values of a logger', { scopes: [having(['a', int(1)])], fields: [['b', int(2)]] }),
  info('values before a name', { scopes: [having(['a', int(1)]), named('foo')] }),
  info('values between names', {
    scopes: [named('foo'), having(['a', int(1)]), named('sync'), having(['b', int(2)])],
  }),
  failure('an error of a logger with all of it', 'it broke', {
    message: 'Error syncing',
    scopes: [having(['controller', string('count')]), named('a'), named('b')],
    fields: [['attempt', int(7)]],
  }),
  info('the same key again, with another value', {
    scopes: [having(['a', int(1)], ['b', int(2)])],
    fields: [
      ['a', int(3)],
      ['c', int(4)],
    ],
  }),
  info('the same key again, with the same value', {
    scopes: [having(['a', int(1)], ['b', int(2)])],
    fields: [
      ['c', int(4)],
      ['a', int(1)],
    ],
  }),
  info('the same key three times', {
    scopes: [having(['a', int(1)]), having(['a', int(2)]), having(['b', int(0)])],
    fields: [['a', int(1)]],
  }),
  info('the same key three times, the same in the end', {
    scopes: [having(['a', int(1)]), having(['b', int(0)], ['a', int(2)])],
    fields: [
      ['c', int(0)],
      ['a', int(2)],
    ],
  }),
  failure('an error and a field that says the same', 'same', {
    fields: [
      ['a', int(1)],
      ['err', string('same')],
    ],
  }),
  info('a field called logger', {
    scopes: [having(['a', int(1)])],
    fields: [['logger', string('mine')]],
  }),
  fields('several fields', ['a', string('x\ny')], ['b', string('z')], ['c', string('p\nq\n')]),
  fields('keys like members of Object', ['__proto__', int(1)], ['constructor', string('x')]),
  fields('keys of all kinds', ['podUID', int(1)], ['a.b/c-d_e', int(2)], ['ключ', int(3)]),
];

const DIFFERENT: readonly Curated[] = [
  info(
    'the same key with values that look the same',
    {
      scopes: [having(['a', string('default/web')], ['b', { list: [int(1)] }])],
      fields: [
        ['a', { ref: { namespace: 'default', name: 'web' } }],
        ['b', { list: [int(1)] }],
      ],
    },
    {
      because: 'zap writes such members twice, and readers take either',
      json: { v: 0, msg: 'm', a: 'default/web', b: [1] },
    },
  ),
  info(
    'an error and a field called err',
    { isError: true, error: 'first', fields: [['err', string('second')]] },
    {
      because: 'zap writes the member twice, and readers take either',
      json: { msg: 'm', err: 'second' },
    },
  ),
  ...(['NaN', '+Inf', '-Inf'] as const).map((number) =>
    value(`the number ${number}`, float(number), {
      because: 'klog shows an error of its JSON encoder; we show the number',
      text: `"m" k="${number}"`,
    }),
  ),
  value(
    'a number without JSON in a list',
    { list: [float('NaN'), int(1)] },
    {
      because:
        'klog shows an error of its encoder in place of all of the value; so does zap, as kError',
      text: '"m" k=["NaN",1]',
      json: { v: 0, msg: 'm', k: ['NaN', 1] },
    },
  ),
  value('the number -0', float('-0'), {
    because: 'a count in JavaScript may become -0, and is still a count',
    text: '"m" k=0',
  }),
  value(
    'a big integer in a list',
    { list: [{ big: '123456789012345678901234567890' }] },
    {
      because:
        'readers of JSON lose the digits of such numbers: they are strings wherever they stand',
      text: '"m" k=["123456789012345678901234567890"]',
      json: { v: 0, msg: 'm', k: ['123456789012345678901234567890'] },
    },
  ),
  value(
    'a date',
    { date: 1_780_127_875_721 },
    {
      because: 'dates are shown as Kubernetes writes them, RFC 3339, in both forms',
      text: '"m" k="2026-05-30T07:57:55.721Z"',
      json: { v: 0, msg: 'm', k: '2026-05-30T07:57:55.721Z' },
    },
  ),
  value(
    'a date in a list',
    { list: [{ date: 1_780_127_875_000 }] },
    {
      because: 'the fraction of a second always has three digits',
      text: '"m" k=["2026-05-30T07:57:55.000Z"]',
      json: { v: 0, msg: 'm', k: ['2026-05-30T07:57:55.000Z'] },
    },
  ),
  value(
    'bytes',
    { bytes: 'aGVsbG8=' },
    {
      because: 'what bytes hold is rarely meant for a log: certificates, bodies, keys',
      text: '"m" k="(5 bytes)"',
      json: { v: 0, msg: 'm', k: '(5 bytes)' },
    },
  ),
  value(
    'an error in a list',
    { list: [{ error: 'refused' }] },
    {
      because: 'an error is its text wherever it stands, not an empty object',
      text: '"m" k=["refused"]',
      json: { v: 0, msg: 'm', k: ['refused'] },
    },
  ),
  info(
    'an error without a text',
    { isError: true, error: '' },
    {
      because: 'such an error of JavaScript has a name, or a code',
      text: '"m" err="Error"',
      json: { msg: 'm', err: 'Error' },
    },
  ),
  value('a terminal controlled by a value of two lines', string('a\n\u001B[2J\r\u009B\u202E'), {
    because: 'klog leaves control characters in values of several lines as they are',
    text: String.raw`"m" k=<` + '\n\ta\n\t' + String.raw`\x1b[2J\x0d\u009b\u202e` + '\n >',
  }),
  value(
    'a terminal controlled by a member',
    { list: [string('\u009B2J\u007F\u202E')] },
    {
      because: 'so does the encoder of JSON: the escapes mean the same',
      text: String.raw`"m" k=["\u009b2J\u007f\u202e"]`,
    },
  ),
  value(
    'a terminal controlled by a name',
    { ref: { namespace: 'a"\n', name: '\u001B[2J' } },
    {
      because: 'klog trusts names to be names; ours may be those of a hostile file',
      text: String.raw`"m" k="a\"\n/\x1b[2J"`,
    },
  ),
  value(
    'an object that has a name alone',
    { struct: [['name', string('web')]] },
    {
      because: 'that is how an object is referred to, besides by the object itself',
      text: '"m" k="web"',
    },
  ),
  value(
    'a member whose name is a number',
    {
      struct: [
        ['b', int(1)],
        ['7', int(2)],
      ],
    },
    {
      because: 'in JavaScript such members come first',
      text: '"m" k={"7":2,"b":1}',
    },
  ),
  info(
    'a field of a name that the JSON needs itself',
    { fields: [['msg', string('x')]] },
    {
      because: 'zap writes the member twice, and readers take either',
      json: { v: 0, msg: 'm', _msg: 'x' },
    },
  ),
  info(
    'the key of a secret',
    {
      fields: [
        ['token', string('x')],
        ['t', string('Bearer abcdef')],
      ],
    },
    {
      because: 'secrets are masked',
      text: '"m" token="[redacted]" t="Bearer [redacted]"',
      json: { v: 0, msg: 'm', token: '[redacted]', t: 'Bearer [redacted]' },
    },
  ),
];

export const CURATED: readonly Curated[] = [
  ...HEADERS,
  ...TEXTS,
  ...LINES,
  ...NUMBERS,
  ...OTHERS,
  ...SCOPES,
  ...DIFFERENT,
];
