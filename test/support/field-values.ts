/** As much of a schema as values are made from. */
export interface FieldSchema {
  readonly type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly format?: string;
}

/** Texts of many kinds. Which of them a field takes, the server knows. */
const TEXTS = [
  'nginx',
  'site',
  'nginx:1.27',
  'registry.example.com:5000/team/web@sha256:0123',
  'echo YAY',
  '2031-01-01T00:00:00Z',
  '2032-02-29T12:30:00.5+05:30',
];

/** What a careless or hostile user might write. */
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

/** Values of other types than the field's. */
const STRANGERS: readonly unknown[] = [null, true, 7, 1.5, 'seven', ['x'], { x: { y: 1 } }];

/** Values that may be good: of the right type, and within the limits that the schema names. */
export function candidates({ type, minimum = 0, maximum = 1000 }: FieldSchema): unknown[] {
  if (type === 'integer') return [minimum + 2, minimum + 3, minimum, maximum];
  return TEXTS;
}

/** Values that are bad, or good by a hair. */
export function doubtful(schema: FieldSchema): unknown[] {
  const { minimum = 0, maximum = 1000, maxLength = 1000 } = schema;
  if (schema.type === 'integer') {
    const numbers = [minimum - 1, maximum + 1, -1, 2 ** 31, 2 ** 53, 1e300, '1', '0x1'];
    return [...STRANGERS, ...numbers, ''];
  }
  const lengths = ['x'.repeat(maxLength), 'x'.repeat(maxLength + 1), 'é'.repeat(maxLength)];
  const instants = schema.format === 'date-time' ? NO_INSTANTS : [];
  return [...STRANGERS, ...HOSTILE, ...instants, ...lengths];
}
