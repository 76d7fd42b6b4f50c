import { pattern } from './values/pattern.ts';
import type { CallExpression, Expression, ListExpression, MapExpression } from './expression.ts';
import { clauseProblem, clausesOf } from './functions/text-format.ts';
import { parseDuration } from '../util/go-duration.ts';
import { parseTimestamp } from './values/time.ts';
import type { CelType } from './values/type.ts';
import { formatType, unwrapped } from './values/type.ts';

/** An error at an offset of an expression. */
export interface TypeProblem {
  readonly at: number;
  readonly message: string;
}

/** Returns the errors of literals that always make `call` fail: patterns, times, format templates. */
export function literalProblems(
  { name, at: open, target, args }: CallExpression,
  typeOf: (expression: Expression) => CelType,
): readonly TypeProblem[] {
  const literal = args.at(-1);
  if (name === 'format' && target && literal?.kind === 'list') {
    return formatProblems(target, literal, open, typeOf);
  }
  if (literal?.kind !== 'literal' || typeof literal.value !== 'string') return [];
  return isUsable(name, target ? args.length + 1 : args.length, literal.value)
    ? []
    : [{ at: literal.at, message: `invalid ${name} argument` }];
}

/**
 * Returns the errors of members of a list or map that have another type than the first one. As upstream, the first
 * error of a list and all of a map.
 */
export function memberProblems(
  literal: ListExpression | MapExpression,
  typeOf: (expression: Expression) => CelType,
): readonly TypeProblem[] {
  if (literal.kind === 'list') {
    const { items, optional } = literal;
    const members = items.map((member, index) => ({ member, isOptional: optional.has(index) }));
    return differences(members, typeOf).slice(0, 1);
  }
  const { entries } = literal;
  const keys = entries.map(({ key }) => ({ member: key, isOptional: false }));
  const values = entries.map(({ value, isOptional }) => ({ member: value, isOptional }));
  return [...differences(keys, typeOf), ...differences(values, typeOf)];
}

function differences(
  members: readonly { readonly member: Expression; readonly isOptional: boolean }[],
  typeOf: (member: Expression) => CelType,
): TypeProblem[] {
  const types = members.map(({ member, isOptional }) => {
    const type = typeOf(member);
    return formatType(unwrapped(isOptional && type.kind === 'optional' ? type.item : type));
  });
  const [expected] = types;
  return members.flatMap(({ member: { at } }, index) =>
    types[index] === expected
      ? []
      : [{ at, message: `expected type '${expected}' but found '${types[index]}'` }],
  );
}

function isUsable(name: string, count: number, text: string): boolean {
  switch (name) {
    case 'matches':
      return count !== 2 || !('error' in pattern(text));
    case 'duration':
      return parseDuration(text) !== undefined;
    case 'timestamp':
      return parseTimestamp(text) !== undefined;
    default:
      return true;
  }
}

/** Compares a literal format template with the number and types of its arguments. */
function formatProblems(
  template: Expression,
  { items }: ListExpression,
  open: number,
  typeOf: (expression: Expression) => CelType,
): readonly TypeProblem[] {
  if (template.kind !== 'literal' || typeof template.value !== 'string') return [];
  const clauses = clausesOf(template.value);
  for (const [index, { verb }] of clauses.entries()) {
    const item = items[index];
    if (!item) return [{ at: open, message: `index ${index} out of range` }];
    const message = clauseProblem(verb, runtimeName(typeOf(item)));
    if (message !== undefined) {
      return [{ at: message.startsWith('could not parse') ? open : item.at, message }];
    }
  }
  if (items.length <= clauses.length) return [];
  const message = `too many arguments supplied to string.format (expected ${clauses.length}, got ${items.length})`;
  return [{ at: open, message }];
}

/** The name that `type` returns for a value of this type. */
function runtimeName(type: CelType): string {
  switch (type.kind) {
    case 'null':
      return 'null_type';
    case 'timestamp':
      return 'google.protobuf.Timestamp';
    case 'duration':
      return 'google.protobuf.Duration';
    case 'optional':
      return 'optional_type';
    case 'object':
      return 'map';
    case 'opaque':
      return type.name;
    case 'param':
    case 'error':
      return 'dyn';
    default:
      return type.kind;
  }
}

/** Maximum length of a source line in a message. */
const MAX_SNIPPET = 16_384;

/** Formats problems with their source lines. */
export function problemText(source: string, problems: readonly TypeProblem[]): string {
  return problems.map((problem) => withPlace(source, problem)).join('\n');
}

function withPlace(source: string, { at, message }: TypeProblem): string {
  const before = source.slice(0, Math.max(0, at)).split('\n');
  const line = source.split('\n')[before.length - 1] ?? '';
  const column = Array.from(before.at(-1) ?? '').length;
  const place = `ERROR: <input>:${before.length}:${column + 1}: ${message}`;
  if (line.length > MAX_SNIPPET) return place;
  return `${place}\n | ${line.replaceAll('\t', ' ')}\n | ${'.'.repeat(column)}^`;
}
