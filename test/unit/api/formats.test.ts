import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkedFormat, hasFormat } from '../../../src/api/formats.ts';

const cases: readonly [format: string, good: readonly string[], bad: readonly string[]][] = [
  [
    'date-time',
    [
      '2026-01-02T03:04:05Z',
      '2026-01-02t03:04:05.123456z',
      '2026-01-02T03:04:05+02:00',
      '2026-01-02T03:04:05ZTide',
    ],
    [
      '2026-01-02',
      '2026-02-30T00:00:00Z',
      '2026-01-02T24:00:00Z',
      '2026-01-02T23:60:00Z',
      '2026-01-02T23:59:60Z',
      '2026-01-02T03:04:05',
      '2026-01-02T03:04:05Z ',
      '',
    ],
  ],
  ['date', ['2024-02-29'], ['2026-02-29', '26-1-1']],
  [
    'duration',
    ['1h30m', '2 weeks', '1.5s', '0', 'about 0009223372036854775807ns'],
    ['soon', '5 parsecs', '', 'about 9223372036854775808ns', '1'.repeat(1_000_000)],
  ],
  ['ipv4', ['10.0.0.1', '01.2.3.4', '::ffff:1.2.3.4'], ['10.0.0.256', '::1']],
  ['ipv6', ['::1', 'fe80::1'], ['10.0.0.1', ':::', '::1%lo']],
  ['cidr', ['10.0.0.0/8', '010.0.0.0/08', '::/0'], ['10.0.0.0', '10.0.0.0/33']],
  [
    'mac',
    ['00:1a:2b:3c:4d:5e', '00-1A-2B-3C-4D-5E', '001a.2b3c.4d5e'],
    ['00:1a:2b:3c:4d', '00:1a-2b:3c:4d:5e'],
  ],
  [
    'uuid',
    ['6ba7b810-9dad-11d1-80b4-00c04fd430c8'],
    ['6ba7b810', 'zba7b810-9dad-11d1-80b4-00c04fd430c8'],
  ],
  ['uuid4', ['7c9e6679-7425-40de-944b-e07fc1f90ae7'], ['7c9e6679-7425-10de-944b-e07fc1f90ae7']],
  ['byte', ['aGk='], ['a', 'aGk', '!!!!']],
  [
    'email',
    ['a@b.c', 'Ann <ann@example.com>', '"a b"@c', 'a@[::1]'],
    ['a', '@b', 'a@', 'a b@c', 'a@[b]'],
  ],
  ['hostname', ['a', 'www.example.com'], ['-a', 'a..b', '2024-02-29', `${'a'.repeat(64)}.com`]],
  [
    'uri',
    ['https://example.com/x', '/path', '/a b', 'x: y', '*', 'http://[::1]:80/', 'pg://u@a:1,b:2/'],
    [
      'not a uri',
      'https://a b',
      '/%zz',
      'http://[:1]/',
      'http://a:1,b:2/',
      'pg://a:1:b/',
      'x://"@a',
    ],
  ],
  ['hexcolor', ['#fff', 'A0b1C2'], ['#ffff', 'red']],
  ['k8s-short-name', ['a', 'my-name'], ['-a', 'A', 'a.b', 'a'.repeat(64)]],
  ['k8s-long-name', ['a.b-c'], ['a..b', 'A']],
  ['isbn', ['0321751043', '978-0321751041'], ['0321751044', 'x']],
  ['creditcard', ['4111 1111 1111 1111'], ['4111 1111 1111 1112', '37828224630005']],
  ['ssn', ['123-45-6789', '123 45 6789'], ['123456789', '123-456789']],
  ['rgbcolor', ['rgb(1, 2,255)'], ['rgb(01,2,3)', 'rgb(256,1,1)']],
];

for (const [format, good, bad] of cases) {
  test(`format ${format}`, () => {
    for (const text of good) assert.ok(hasFormat(format, text), JSON.stringify(text));
    for (const text of bad) assert.ok(!hasFormat(format, text), JSON.stringify(text));
  });
}

test('accepts exactly the valid dates', () => {
  const two = (number: number) => String(number).padStart(2, '0');
  for (const year of ['0000', '1900', '2000', '2023', '2024']) {
    for (let month = 0; month <= 13; month++) {
      for (let day = 0; day <= 32; day++) {
        const text = `${year}-${two(month)}-${two(day)}`;
        const parsed = new Date(`${text}T00:00:00Z`);
        const exists = !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(text);
        assert.equal(hasFormat('date', text), exists, text);
      }
    }
  }
});

test('checks long hostile texts quickly', () => {
  const started = performance.now();
  for (const [format] of cases) {
    for (const text of [
      'a'.repeat(100_000),
      `1${' '.repeat(100_000)}`,
      '1h'.repeat(50_000) + '!',
    ]) {
      hasFormat(format, text);
    }
  }
  assert.ok(performance.now() - started < 10_000);
});

test('a format applies only to its own type', () => {
  assert.equal(checkedFormat({ type: 'integer', format: 'int32' }), 'int32');
  assert.equal(checkedFormat({ type: 'string', format: 'int32' }), undefined);
  assert.equal(checkedFormat({ type: 'integer', format: 'date-time' }), undefined);
  assert.equal(checkedFormat({ format: 'ipv4' }), 'ipv4');
});
