import type { Expression } from './expression.ts';
import { dottedName } from './expression.ts';
import { messageNamed } from './messages.ts';
import type { CelType } from './values/type.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DYN,
  INT,
  NULL,
  STRING,
  UINT,
  listOf,
  mapOf,
  optionalOf,
  typeOf,
} from './values/type.ts';

/** Types by the names that expressions compare `type(x)` with. */
const TYPES: ReadonlyMap<string, CelType> = new Map<string, CelType>([
  ['bool', BOOL],
  ['bytes', BYTES],
  ['double', DOUBLE],
  ['int', INT],
  ['list', listOf(DYN)],
  ['map', mapOf(DYN, DYN)],
  ['null_type', NULL],
  ['optional_type', optionalOf(DYN)],
  ['string', STRING],
  ['type', { kind: 'opaque', name: 'type' }],
  ['uint', UINT],
  ['net.CIDR', { kind: 'opaque', name: 'net.CIDR' }],
  ['net.IP', { kind: 'opaque', name: 'net.IP' }],
]);

/** Returns the name of a type that the expression is, or undefined. A variable can hide it. */
export function typeNameIn(expression: Expression): string | undefined {
  const name = dottedName(expression);
  return name !== undefined && typeOfName(name) ? name : undefined;
}

/** Returns the type of the name of a type: `type(int)` of `int`. */
export function typeOfName(name: string): CelType | undefined {
  const type = TYPES.get(name) ?? messageNamed(name)?.type;
  return type && typeOf(type);
}
