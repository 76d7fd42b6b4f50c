/** The part of a schema that determines values. */
export interface FieldSchema {
  readonly type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly format?: string;
}

/** Texts of many kinds. The server decides which of them are valid. */
const TEXTS = [
  'nginx',
  'site',
  'nginx:1.27',
  'registry.example.com:5000/team/web@sha256:0123',
  'echo YAY',
  '2031-01-01T00:00:00Z',
  '2032-02-29T12:30:00.5+05:30',
];

/** Invalid or malicious texts. */
const HOSTILE = [
  '',
  '\u0000',
  ' nginx',
  'nginx\u00a0',
  'Web_1',
  'a..b',
  '../../etc/passwd',
  '__proto__',
  '$(HOSTNAME) $$ ${x} `id`',
  '"never closed',
  'x\\',
  '💥 ünï',
];

const NO_INSTANTS = [
  '2026-02-30T00:00:00Z',
  '2026-01-01T00:00:00x5Z',
  '9999-12-31T23:59:59.999999999999Z',
  'tomorrow',
];

/** Values of wrong types. */
const WRONG_TYPES: readonly unknown[] = [null, true, 7, 1.5, 'seven', ['x'], { x: { y: 1 } }];

/** Returns values of the right type within the limits of the schema. */
export function candidates({ type, minimum = 0, maximum = 1000 }: FieldSchema): unknown[] {
  if (type === 'integer') return [minimum + 2, minimum + 3, minimum, maximum];
  return TEXTS;
}

/** Returns invalid values and boundary values. */
export function edgeValues(schema: FieldSchema): unknown[] {
  const { minimum = 0, maximum = 1000, maxLength = 1000 } = schema;
  if (schema.type === 'integer') {
    const numbers = [minimum - 1, maximum + 1, -1, 2 ** 31, 2 ** 53, 1e300, '1', '0x1'];
    return [...WRONG_TYPES, ...numbers, ''];
  }
  const lengths = ['x'.repeat(maxLength), 'x'.repeat(maxLength + 1), 'é'.repeat(maxLength)];
  const instants = schema.format === 'date-time' ? NO_INSTANTS : [];
  return [...WRONG_TYPES, ...HOSTILE, ...instants, ...lengths];
}
