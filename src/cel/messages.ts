import type { CelType, ScalarType } from './values/type.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  STRING,
  TIMESTAMP,
  UINT,
  listOf,
  mapOf,
  wrapperOf,
} from './values/type.ts';
import type { Dictionary, Result, Value } from './values/value.ts';
import {
  Duration,
  EvaluationError,
  List,
  LiteralMap,
  Timestamp,
  Uint,
  isDictionary,
} from './values/value.ts';

/** A well-known message of protobuf, which every expression can construct: `google.protobuf.Duration{seconds: 5}`. */
export interface Message {
  /** The type of the message as a value. */
  readonly type: CelType;
  readonly fields: ReadonlyMap<string, CelType>;
  /** Whether values have this type by name: `type(x) == google.protobuf.Duration`. */
  readonly isTypeOfValues: boolean;
  /** Returns the value of a message with these fields. */
  readonly value: (fields: Dictionary) => Result;
}

function message(
  type: CelType,
  fields: Readonly<Record<string, CelType>>,
  value: (fields: Dictionary) => Result,
  isTypeOfValues: boolean = false,
): Message {
  return { type, fields: new Map(Object.entries(fields)), value, isTypeOfValues };
}

const SECOND = 1_000_000_000n;

function momentOf(fields: Dictionary): bigint {
  const [seconds, nanos] = ['seconds', 'nanos'].map((name) => fields.get(name));
  const whole = typeof seconds === 'bigint' ? seconds : 0n;
  return whole * SECOND + (typeof nanos === 'bigint' ? nanos : 0n);
}

const MOMENT = { seconds: INT, nanos: INT };

/** @param fit returns the value in the type of protobuf, which can be narrower; undefined if it does not fit */
function wrapper(
  name: string,
  type: ScalarType,
  zero: Value,
  fit: (value: Result) => Result | undefined = (value) => value,
): readonly [name: string, message: Message] {
  const overflow = new EvaluationError(
    `field type conversion error for google.protobuf.${name}.value value type: ${type.kind === 'uint' ? 'unsigned ' : ''}integer overflow`,
  );
  return [
    name,
    message(
      wrapperOf(type),
      { value: type },
      (fields) => fit(fields.get('value') ?? zero) ?? overflow,
    ),
  ];
}

function fitInt32(value: Result): Result | undefined {
  return typeof value === 'bigint' && BigInt.asIntN(32, value) !== value ? undefined : value;
}

function fitUint32(value: Result): Result | undefined {
  return value instanceof Uint && BigInt.asUintN(32, value.value) !== value.value
    ? undefined
    : value;
}

/** Returns a value as JSON has it, whose numbers are doubles. */
function jsonOf(value: Result): Result {
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof Uint) return Number(value.value);
  if (value instanceof List) return List.of([...value].map(jsonOf));
  if (!isDictionary(value)) return value;
  const map = new LiteralMap();
  for (const key of value.keys()) {
    const member = jsonOf(value.get(key) ?? null);
    if (member instanceof EvaluationError) return member;
    map.add(key, member);
  }
  return map;
}

/** Returns the last of the fields, of which a `Value` has one. */
function lastOf(fields: Dictionary): Result {
  const name = [...fields.keys()].at(-1);
  const value = (name !== undefined && fields.get(name)) || null;
  return name === 'null_value' ? null : value;
}

const ANY_VALUE = {
  null_value: INT,
  number_value: DOUBLE,
  string_value: STRING,
  bool_value: BOOL,
  struct_value: mapOf(STRING, DYN),
  list_value: listOf(DYN),
};

const KNOWN: readonly (readonly [name: string, message: Message])[] = [
  ['Duration', message(DURATION, MOMENT, (fields) => new Duration(momentOf(fields)), true)],
  ['Timestamp', message(TIMESTAMP, MOMENT, (fields) => new Timestamp(momentOf(fields)), true)],
  wrapper('BoolValue', BOOL, false),
  wrapper('BytesValue', BYTES, new Uint8Array()),
  wrapper('DoubleValue', DOUBLE, 0),
  wrapper('FloatValue', DOUBLE, 0, (value) =>
    typeof value === 'number' ? Math.fround(value) : value,
  ),
  wrapper('Int32Value', INT, 0n, fitInt32),
  wrapper('Int64Value', INT, 0n),
  wrapper('StringValue', STRING, ''),
  wrapper('UInt32Value', UINT, new Uint(0n), fitUint32),
  wrapper('UInt64Value', UINT, new Uint(0n)),
  ['Value', message(DYN, ANY_VALUE, (fields) => jsonOf(lastOf(fields)))],
  [
    'Struct',
    message(mapOf(STRING, DYN), { fields: mapOf(STRING, DYN) }, (fields) =>
      jsonOf(fields.get('fields') ?? new LiteralMap()),
    ),
  ],
  [
    'ListValue',
    message(listOf(DYN), { values: listOf(DYN) }, (fields) =>
      jsonOf(fields.get('values') ?? List.of([])),
    ),
  ],
  [
    'Any',
    message(
      DYN,
      { type_url: STRING, value: BYTES },
      () => new EvaluationError('unsupported conversion to ref.Val: (*dynamicpb.Message)'),
    ),
  ],
  [
    'Empty',
    message({ kind: 'opaque', name: 'google.protobuf.Empty' }, {}, (fields) => fields, true),
  ],
];

const MESSAGES: ReadonlyMap<string, Message> = new Map(
  KNOWN.map(([name, known]) => [`google.protobuf.${name}`, known]),
);

/** Returns the well-known message of that name. */
export function messageNamed(name: string): Message | undefined {
  return MESSAGES.get(name);
}
