import { assertNever } from '../util/values.ts';

/** A TypeScript type. */
export type TypeNode =
  | { readonly kind: 'named'; readonly name: string }
  | { readonly kind: 'literal'; readonly value: string | number | boolean | null }
  | { readonly kind: 'list'; readonly of: TypeNode }
  | { readonly kind: 'map'; readonly of: TypeNode }
  /** A map in a module whose own declaration has the name `Record`. */
  | { readonly kind: 'index'; readonly of: TypeNode }
  | { readonly kind: 'union'; readonly of: readonly TypeNode[] };

/** A field of an interface. */
export interface TypeField {
  readonly name: string;
  readonly type: TypeNode;
  readonly optional: boolean;
  /** Lines of the doc comment, or none. */
  readonly doc: readonly string[];
}

/** A declaration at the top level of a module. */
export type Declaration =
  | {
      readonly kind: 'interface';
      readonly name: string;
      readonly doc: readonly string[];
      readonly extends?: string;
      readonly fields: readonly TypeField[];
      /** Whether the object may have undeclared fields. */
      readonly open: boolean;
    }
  | {
      readonly kind: 'alias';
      readonly name: string;
      readonly doc: readonly string[];
      readonly type: TypeNode;
    };

export const STRING_TYPE: TypeNode = { kind: 'named', name: 'string' };
export const NUMBER: TypeNode = { kind: 'named', name: 'number' };
export const BOOLEAN: TypeNode = { kind: 'named', name: 'boolean' };
export const UNKNOWN: TypeNode = { kind: 'named', name: 'unknown' };
export const NEVER: TypeNode = { kind: 'named', name: 'never' };
export const NULL_TYPE: TypeNode = { kind: 'literal', value: null };

/** Returns the source text of a type. */
export function printType(type: TypeNode): string {
  switch (type.kind) {
    case 'named':
      return type.name;
    case 'literal':
      return typeof type.value === 'string' ? quote(type.value) : String(type.value);
    case 'list':
      return type.of.kind === 'union' ? `(${printType(type.of)})[]` : `${printType(type.of)}[]`;
    case 'map':
      return `Record<string, ${printType(type.of)}>`;
    case 'index':
      return `{ [name: string]: ${printType(type.of)} }`;
    case 'union':
      return type.of.map(printType).join(' | ');
    default:
      return assertNever(type);
  }
}

/** Returns a string literal, in double quotes only if they need fewer escapes than single quotes. */
export function quote(text: string): string {
  const double = JSON.stringify(text);
  const inner = double.slice(1, -1).replaceAll(String.raw`\"`, '"');
  const singles = inner.split("'").length;
  return singles > inner.split('"').length ? double : `'${inner.replaceAll("'", String.raw`\'`)}'`;
}
