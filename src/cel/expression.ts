import type { Value } from './values/value.ts';

/** A parsed expression. `at` is its offset in the source, for error messages. */
export type Expression =
  | Literal
  | Identifier
  | Select
  | CallExpression
  | Logical
  | Conditional
  | ListExpression
  | MapExpression
  | Construction
  | Fold;

interface Node {
  readonly at: number;
}

interface Literal extends Node {
  readonly kind: 'literal';
  readonly value: Value;
}

interface Identifier extends Node {
  readonly kind: 'identifier';
  readonly name: string;
}

/** A field selection: `a.b`, `a.?b` or `has(a.b)`. */
export interface Select extends Node {
  readonly kind: 'select';
  readonly operand: Expression;
  readonly field: string;
  readonly mode: 'value' | 'optional' | 'test';
}

/** A call of a function, a method, or an operator by its name in the language definition: `_+_`. */
export interface CallExpression extends Node {
  readonly kind: 'call';
  readonly name: string;
  readonly target: Expression | undefined;
  readonly args: readonly Expression[];
}

/** A chain of `&&` or `||`. */
export interface Logical extends Node {
  readonly kind: 'and' | 'or';
  readonly terms: readonly Expression[];
}

export interface Conditional extends Node {
  readonly kind: 'conditional';
  readonly condition: Expression;
  readonly yes: Expression;
  readonly no: Expression;
}

export interface ListExpression extends Node {
  readonly kind: 'list';
  readonly items: readonly Expression[];
  /** Indices of optional items. Such an item is absent if its expression, an optional, has no value. */
  readonly optional: ReadonlySet<number>;
}

export interface MapExpression extends Node {
  readonly kind: 'map';
  readonly entries: readonly MapEntry[];
}

/** An entry of a map or a field of an object. An optional one is absent if its value, an optional, has none. */
export interface MapEntry {
  readonly key: Expression;
  readonly value: Expression;
  readonly isOptional: boolean;
}

/** The construction of an object: `Object.spec{replicas: 1}`. The keys of its fields are literals. */
export interface Construction extends Node {
  readonly kind: 'construction';
  readonly name: string;
  readonly fields: readonly MapEntry[];
}

export type FoldName =
  | 'all'
  | 'exists'
  | 'existsOne'
  | 'map'
  | 'filter'
  | 'transformList'
  | 'transformMap'
  | 'transformMapEntry'
  | 'sortBy'
  | 'optMap'
  | 'optFlatMap';

/** A macro. It evaluates `step` for every member of `range` that passes `filter`. */
export interface Fold extends Node {
  readonly kind: 'fold';
  readonly name: FoldName;
  readonly range: Expression;
  /** One variable: the item of a list or the key of a map. Two: index and item, or key and value. */
  readonly variables: readonly string[];
  readonly filter: Expression | undefined;
  readonly step: Expression;
}

export class CelSyntaxError {
  readonly at: number;
  readonly message: string;

  constructor(at: number, message: string) {
    this.at = at;
    this.message = message;
  }
}

/** Returns `a.b.c` if the expression is a qualified name. */
export function dottedName(expression: Expression): string | undefined {
  if (expression.kind === 'identifier') return expression.name;
  if (expression.kind !== 'select' || expression.mode !== 'value') return undefined;
  const prefix = dottedName(expression.operand);
  return prefix === undefined ? undefined : `${prefix}.${expression.field}`;
}
