import type { ASTNode } from '@marcbachmann/cel-js';
import { Environment, ParseError } from '@marcbachmann/cel-js';
import { withConstructors } from './constructors.ts';
import type { Construction, MapEntry, Expression, Fold, FoldName } from './expression.ts';
import { CelSyntaxError, dottedName } from './expression.ts';
import { isNamespaced } from './functions.ts';
import { Uint } from './values/value.ts';

/** Only the parser of the library is used. Names are resolved here and in `check.ts`. */
let parser = makeParser();

function makeParser(): Environment {
  return new Environment({
    enableOptionalTypes: true,
    limits: { maxListElements: 10_000, maxMapEntries: 10_000 },
  });
}

/** Maximum length of an expression, as upstream, and maximum depth of its tree. */
const MAX_LENGTH = 100_000;
const MAX_DEPTH = 300;

export interface Parsed {
  readonly expression: Expression;
  /** Returns the offset in the source for the `at` of an expression. */
  readonly placeOf: (at: number) => number;
}

/**
 * Parses an expression and its macros.
 *
 * @returns a `CelSyntaxError` if it is malformed; its text differs from that of upstream's parser
 */
export function parse(source: string): Parsed | CelSyntaxError {
  if (source.length > MAX_LENGTH) {
    return new CelSyntaxError(0, `expression code point size exceeds limit: ${MAX_LENGTH}`);
  }
  let placeOf = (at: number) => at;
  try {
    const rewritten = withConstructors(source);
    const { text, fields } = rewritten;
    ({ placeOf } = rewritten);
    return { expression: convert(parser.parse(text).ast, 0, fields), placeOf };
  } catch (error) {
    if (error instanceof CelSyntaxError)
      return new CelSyntaxError(placeOf(error.at), error.message);
    if (error instanceof ParseError) {
      const at = placeOf(error.range?.start ?? 0);
      return new CelSyntaxError(at, `Syntax error: ${error.summary}`);
    }
    // The parser does not count the depth of `!` and `-` chains; its state is undefined after an overflow.
    if (error instanceof RangeError) {
      parser = makeParser();
      return tooDeep(0);
    }
    throw error;
  }
}

function tooDeep(at: number): CelSyntaxError {
  return new CelSyntaxError(at, `expression recursion limit exceeded: ${MAX_DEPTH}`);
}

const MIN_INT = -(2n ** 63n);

/** @param fields offsets of the maps that are the fields of a constructor */
function convert(node: ASTNode, depth: number, fields: ReadonlySet<number>): Expression {
  if (depth > MAX_DEPTH) throw tooDeep(node.start);
  const at = node.pos;
  const inner = (child: ASTNode): Expression => convert(child, depth + 1, fields);
  switch (node.op) {
    case 'value':
      if (node.input.startsWith('0X', node.start)) {
        throw new CelSyntaxError(at, 'Syntax error: extraneous input');
      }
      return literal(node.args, at);
    case 'id':
      return { kind: 'identifier', at, name: node.args };
    case '.':
    case '.?':
      return selection(node, inner(node.args[0]), node.args[1]);
    case '[]':
    case '[?]': {
      const name = node.op === '[]' ? '_[_]' : '_[?_]';
      const [operand, index] = node.args;
      return {
        kind: 'call',
        at: operand.end,
        name,
        target: undefined,
        args: [inner(operand), inner(index)],
      };
    }
    case 'call': {
      const [name, args] = node.args;
      const its = fieldsOf(args, fields, inner);
      if (its) return { kind: 'construction', at: its.at, name, fields: its.entries };
      if (name === 'has' && args.length === 1) return presence(node, args, inner);
      requireNoComma(node, args);
      const open = at + name.length;
      return { kind: 'call', at: open, name, target: undefined, args: args.map(inner) };
    }
    case 'rcall':
      return construction(node, fields, inner) ?? method(node, inner);
    case 'list':
      return listOf(node, inner);
    case 'map':
      return {
        kind: 'map',
        at,
        entries: node.args.map((entry) => entryOf(entry, inner)),
      };
    case '?:': {
      const [condition, yes, no] = node.args;
      if (yes.op === '?:' && !isInParentheses(yes, between(condition, '?'))) {
        throw new CelSyntaxError(yes.pos, "Syntax error: mismatched input '?' expecting ':'");
      }
      return {
        kind: 'conditional',
        at: between(condition, '?'),
        condition: inner(condition),
        yes: inner(yes),
        no: inner(no),
      };
    }
    case '&&':
    case '||':
      return { kind: node.op === '&&' ? 'and' : 'or', at, terms: chain(node, node.op).map(inner) };
    case '!_':
      requireOneSign(node, node.args);
      return { kind: 'call', at, name: '!_', target: undefined, args: [inner(node.args)] };
    case '-_': {
      const operand = node.args;
      requireOneSign(node, operand);
      // The sign of a number is a part of it.
      if (operand.op === 'value' && typeof operand.args === 'number') {
        return { kind: 'literal', at, value: -operand.args };
      }
      if (operand.op === 'value' && typeof operand.args === 'bigint' && -operand.args >= MIN_INT) {
        return { kind: 'literal', at, value: -operand.args };
      }
      return { kind: 'call', at, name: '-_', target: undefined, args: [inner(operand)] };
    }
    default: {
      const [left, right] = node.args;
      const name = node.op === 'in' ? '@in' : `_${node.op}_`;
      return {
        kind: 'call',
        at: between(left, node.op),
        name,
        target: undefined,
        args: [inner(left), inner(right)],
      };
    }
  }
}

type NodeOf<Op extends ASTNode['op']> = Extract<ASTNode, { op: Op }>;

function literal(value: NodeOf<'value'>['args'], at: number): Expression {
  if (typeof value === 'object' && value !== null && !(value instanceof Uint8Array)) {
    const unsigned = value.valueOf();
    if (unsigned >= 2n ** 64n) throw new CelSyntaxError(at, 'invalid uint literal');
    return { kind: 'literal', at, value: new Uint(unsigned) };
  }
  if (typeof value === 'bigint' && value >= 2n ** 63n) {
    throw new CelSyntaxError(at, 'invalid int literal');
  }
  return { kind: 'literal', at, value };
}

function selection(node: NodeOf<'.' | '.?'>, operand: Expression, field: string): Expression {
  const mode = node.op === '.' ? 'value' : 'optional';
  return { kind: 'select', at: node.pos - 1, operand, field, mode };
}

function presence(
  node: NodeOf<'call'>,
  args: readonly ASTNode[],
  inner: (child: ASTNode) => Expression,
): Expression {
  const [argument] = args;
  const tested = argument && args.length === 1 ? inner(argument) : undefined;
  if (tested?.kind !== 'select' || tested.mode !== 'value') {
    throw new CelSyntaxError(node.pos, 'invalid argument to has() macro');
  }
  return { ...tested, at: node.pos + 'has'.length, mode: 'test' };
}

/** `Object.spec{a: 1}` */
function construction(
  node: NodeOf<'rcall'>,
  fields: ReadonlySet<number>,
  inner: (child: ASTNode) => Expression,
): Construction | undefined {
  const [name, receiver, args] = node.args;
  const its = fieldsOf(args, fields, inner);
  const prefix = its && dottedName(inner(receiver));
  if (prefix === undefined) return undefined;
  return {
    kind: 'construction',
    at: its?.at ?? 0,
    name: `${prefix}.${name}`,
    fields: its?.entries ?? [],
  };
}

/** Returns the fields of a constructor and their offset. */
function fieldsOf(
  args: readonly ASTNode[],
  fields: ReadonlySet<number>,
  inner: (child: ASTNode) => Expression,
): { readonly at: number; readonly entries: readonly MapEntry[] } | undefined {
  const [only] = args;
  if (only?.op !== 'map' || !fields.has(only.start)) return undefined;
  return { at: only.start, entries: only.args.map((entry) => entryOf(entry, inner)) };
}

/** Returns the expression after the prefix `!-` of an optional item or key. */
function optionalIn(node: ASTNode): ASTNode | undefined {
  return node.op === '!_' && node.args.op === '-_' ? node.args.args : undefined;
}

function listOf(
  { pos: at, args }: NodeOf<'list'>,
  inner: (child: ASTNode) => Expression,
): Expression {
  const optional = new Set<number>();
  const items = args.map((item, index) => {
    const marked = optionalIn(item);
    if (marked) optional.add(index);
    return inner(marked ?? item);
  });
  return { kind: 'list', at, items, optional };
}

function entryOf(
  [key, value]: readonly [ASTNode, ASTNode],
  inner: (child: ASTNode) => Expression,
): MapEntry {
  const marked = optionalIn(key);
  return { key: inner(marked ?? key), value: inner(value), isOptional: marked !== undefined };
}

/** The parser accepts a comma after the last argument. */
function requireNoComma(node: ASTNode, args: readonly ASTNode[]): void {
  const last = args.at(-1);
  const rest = last ? node.input.slice(last.end, node.end).replaceAll(/\/\/.*/g, '') : '';
  if (rest.includes(','))
    throw new CelSyntaxError(node.end - 1, "Syntax error: extraneous input ','");
}

/** The parser accepts a negation of a negative number without parentheses, and the reverse. */
function requireOneSign(node: ASTNode, operand: ASTNode): void {
  const isSign = operand.op === '!_' || operand.op === '-_';
  if (isSign && operand.op !== node.op && !isInParentheses(operand, node.start)) {
    throw new CelSyntaxError(operand.start, 'Syntax error: no viable alternative at input');
  }
}

/** Whether parentheses are open between a place before an expression and its start. */
function isInParentheses({ input, start }: ASTNode, from: number): boolean {
  return input.slice(from, start).includes('(');
}

function method(node: NodeOf<'rcall'>, inner: (child: ASTNode) => Expression): Expression {
  const [name, receiver, args] = node.args;
  requireNoComma(node, args);
  // Errors are reported at the start of the arguments.
  const at = receiver.end + name.length + 1;
  const target = inner(receiver);
  const fold = macro(name, at, target, args, inner);
  if (fold) return fold;
  const prefix = dottedName(target);
  if (prefix !== undefined && isNamespaced(`${prefix}.${name}`)) {
    return {
      kind: 'call',
      at,
      name: `${prefix}.${name}`,
      target: undefined,
      args: args.map(inner),
    };
  }
  return { kind: 'call', at, name, target, args: args.map(inner) };
}

/** Macros by name and number of arguments: the number of variables, and whether there is a filter. */
const MACROS: ReadonlyMap<string, readonly [name: FoldName, variables: 1 | 2, filtered?: true]> =
  new Map([
    ['all/2', ['all', 1]],
    ['all/3', ['all', 2]],
    ['exists/2', ['exists', 1]],
    ['exists/3', ['exists', 2]],
    ['exists_one/2', ['existsOne', 1]],
    ['exists_one/3', ['existsOne', 2]],
    ['existsOne/2', ['existsOne', 1]],
    ['existsOne/3', ['existsOne', 2]],
    ['map/2', ['map', 1]],
    ['map/3', ['map', 1, true]],
    ['filter/2', ['filter', 1]],
    ['transformList/3', ['transformList', 2]],
    ['transformList/4', ['transformList', 2, true]],
    ['transformMap/3', ['transformMap', 2]],
    ['transformMap/4', ['transformMap', 2, true]],
    ['transformMapEntry/3', ['transformMapEntry', 2]],
    ['transformMapEntry/4', ['transformMapEntry', 2, true]],
    ['sortBy/2', ['sortBy', 1]],
    ['optMap/2', ['optMap', 1]],
    ['optFlatMap/2', ['optFlatMap', 1]],
  ]);

function macro(
  name: string,
  at: number,
  range: Expression,
  args: readonly ASTNode[],
  inner: (child: ASTNode) => Expression,
): Fold | undefined {
  const found = MACROS.get(`${name}/${args.length}`);
  if (!found) return undefined;
  const [fold, count, filtered = false] = found;
  const variables = args.slice(0, count).map((node) => {
    if (node.op !== 'id') throw new CelSyntaxError(node.start, 'argument must be a simple name');
    return node.args;
  });
  if (new Set(variables).size < count) {
    throw new CelSyntaxError(at, `duplicate variable name: ${variables[0]}`);
  }
  const [first, second] = args.slice(count).map(inner);
  if (!first) return undefined;
  const [filter, step] = filtered && second ? [first, second] : [undefined, first];
  return { kind: 'fold', at, name: fold, range, variables, filter, step };
}

/** Offset of the operator after `left`. */
function between(left: ASTNode, operator: string): number {
  return Math.max(left.end, left.input.indexOf(operator, left.end));
}

/** Returns the terms of a chain without recursion, because it may be long. */
function chain(node: NodeOf<'&&' | '||'>, op: '&&' | '||'): ASTNode[] {
  const terms: ASTNode[] = [];
  const pending: ASTNode[] = [node];
  for (let next = pending.pop(); next; next = pending.pop()) {
    if (next.op === op) pending.push(next.args[1], next.args[0]);
    else terms.push(next);
  }
  return terms;
}
