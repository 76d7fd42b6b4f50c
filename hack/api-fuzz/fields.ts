import type { Json } from './requests.ts';

/** A field, and values of it: valid ones first, then invalid ones. `undefined` removes the field. */
export type Field = readonly [path: string, ...values: readonly Json[]];

/** Returns fields of an object with the paths that they have in its owner. */
export function under(prefix: string, fields: readonly Field[]): Field[] {
  return fields.map(([path, ...values]) => [`${prefix}.${path}`, ...values]);
}
