import type {
  CallExpression,
  Construction,
  Expression,
  Fold,
  ListExpression,
  MapEntry,
  MapExpression,
  Select,
} from './expression.ts';
import { overloadsOf } from './functions.ts';
import type { Message } from './messages.ts';
import { messageNamed } from './messages.ts';
import type { TypeProblem } from './literal-problems.ts';
import { literalProblems, memberProblems } from './literal-problems.ts';
import type { Overload } from './values/overload.ts';
import { fieldOf } from './schema-type.ts';
import { typeNameIn, typeOfName } from './type-names.ts';
import { typeNameOf, Uint } from './values/value.ts';
import type { CelType } from './values/type.ts';
import {
  BOOL,
  BYTES,
  Bindings,
  DOUBLE,
  DYN,
  ERROR,
  INT,
  NULL,
  STRING,
  UINT,
  formatType,
  isAny,
  isAssignable,
  listOf,
  mapOf,
  optionalOf,
  param,
  substitute,
} from './values/type.ts';

/** A type-checked expression. */
export interface Checked {
  readonly expression: Expression;
  readonly type: CelType;
  readonly typeOf: ReadonlyMap<Expression, CelType>;
  /** Possible overloads of each call; several if argument types are known only at run time. */
  readonly overloadsOf: ReadonlyMap<CallExpression, readonly Overload[]>;
  /** Variables that the expression reads. */
  readonly variables: ReadonlySet<string>;
}

/**
 * Type-checks an expression with declared `variables`. Returns its type, or all its errors.
 *
 * @param constructs whether it may construct objects (`Object.spec{}`) and patches (`JSONPatch{}`)
 */
export function checkTypes(
  expression: Expression,
  variables: ReadonlyMap<string, CelType>,
  constructs: boolean,
): Checked | readonly TypeProblem[] {
  const checker = new Checker(variables, constructs);
  const type = checker.check(expression);
  const problems = checker.problems.length > 0 ? checker.problems : checker.literalProblems();
  if (problems.length > 0) return problems.toSorted((a, b) => a.at - b.at);
  return {
    expression,
    type,
    typeOf: checker.types,
    overloadsOf: checker.overloads,
    variables: checker.read,
  };
}

type Scope = ReadonlyMap<string, CelType>;

/** Declared where patches can be constructed. */
const PATCH_FUNCTION = 'jsonpatch.escapeKey';

class Checker {
  readonly problems: TypeProblem[] = [];
  readonly types = new Map<Expression, CelType>();
  readonly overloads = new Map<CallExpression, readonly Overload[]>();
  readonly read = new Set<string>();
  #scope: Scope;
  readonly #bindings = new Bindings();
  #params = 0;
  /** Calls, lists and maps whose literals may be wrong. */
  readonly #literals: (CallExpression | ListExpression | MapExpression)[] = [];
  /** Number of enclosing `format` calls, whose arguments may have any types. */
  #formats = 0;

  readonly #constructs: boolean;

  constructor(variables: Scope, constructs: boolean) {
    this.#scope = variables;
    this.#constructs = constructs;
  }

  /** Returns errors of literals in an expression with correct types. */
  literalProblems(): TypeProblem[] {
    const typeOf = (expression: Expression) =>
      substitute(this.types.get(expression) ?? DYN, this.#bindings);
    return this.#literals.flatMap((literal) =>
      literal.kind === 'call' ? literalProblems(literal, typeOf) : memberProblems(literal, typeOf),
    );
  }

  check(expression: Expression): CelType {
    const type = substitute(this.#typeOf(expression), this.#bindings);
    this.types.set(expression, type);
    return type;
  }

  #typeOf(expression: Expression): CelType {
    switch (expression.kind) {
      case 'literal':
        return literalType(expression.value);
      case 'identifier': {
        const { at, name } = expression;
        const type = this.#scope.get(name);
        if (!type) return typeOfName(name) ?? this.#undeclared(at, name);
        this.read.add(name);
        return type;
      }
      case 'select':
        return this.#select(expression);
      case 'call':
        return this.#call(expression);
      case 'and':
      case 'or':
        for (const term of expression.terms) {
          this.#expect(term, BOOL);
        }
        return BOOL;
      case 'conditional': {
        this.#expect(expression.condition, BOOL);
        const yes = this.check(expression.yes);
        const no = this.check(expression.no);
        const condition = this.types.get(expression.condition) ?? DYN;
        if (!this.#assign(yes, no))
          return this.#noOverload(expression.at, '_?_:_', [condition, yes, no], false);
        return isAny(no) ? no : yes;
      }
      case 'list':
        return this.#list(expression);
      case 'map':
        return this.#map(expression);
      case 'construction':
        return this.#construction(expression);
      case 'fold':
        return this.#fold(expression);
    }
  }

  #select(expression: Select): CelType {
    const { at, operand, field, mode } = expression;
    const name = typeNameIn(expression);
    if (name !== undefined && !this.#scope.has(name.split('.')[0] ?? '')) {
      return typeOfName(name) ?? ERROR;
    }
    const whole = this.check(operand);
    const target = whole.kind === 'optional' ? whole.item : whole;
    const found = this.#field(target, field, at);
    if (mode === 'test') return BOOL;
    return whole.kind === 'optional' || mode === 'optional' ? optionalOf(found) : found;
  }

  #field(target: CelType, field: string, at: number): CelType {
    switch (target.kind) {
      case 'map':
        return target.value;
      case 'object':
        return fieldOf(target.fields, field) ?? this.#fail(at, `undefined field '${field}'`);
      case 'param':
        this.#assign(DYN, target);
        return DYN;
      default:
        return isAny(target) || (target.kind === 'opaque' && CONSTRUCTED.test(target.name))
          ? DYN
          : this.#fail(at, `type '${formatType(target)}' does not support field selection`);
    }
  }

  #call(call: CallExpression): CelType {
    const { at, name, target, args } = call;
    if (name === 'format') this.#formats++;
    const types = [...(target ? [target] : []), ...args].map((argument) => this.check(argument));
    if (name === 'format') this.#formats--;
    const known = overloadsOf(name);
    if (known.length === 0) return this.#undeclared(at, name);
    if (name === PATCH_FUNCTION && !this.#constructs) {
      const [library = '', member = ''] = name.split('.');
      this.#undeclared(at - name.length, library);
      return this.#undeclared(at, member);
    }
    const fitting: Overload[] = [];
    let result: CelType | undefined;
    for (const overload of known) {
      if (overload.member !== (target !== undefined)) continue;
      const found = this.#resolve(overload, types);
      if (!found) continue;
      fitting.push(overload);
      if (!result) result = found;
      else if (formatType(result) !== formatType(found)) result = DYN;
    }
    if (!result) return this.#noOverload(at, name, types, target !== undefined);
    this.overloads.set(call, fitting);
    this.#literals.push(call);
    return result;
  }

  #resolve(overload: Overload, types: readonly CelType[]): CelType | undefined {
    if (types.length !== overload.params.length) return undefined;
    const fresh = new Bindings();
    for (const name of ['A', 'B']) fresh.set(name, this.#param());
    const fits = this.#bindings.try(() =>
      overload.params.every((parameter, index) =>
        isAssignable(substitute(parameter, fresh), types[index] ?? ERROR, this.#bindings),
      ),
    );
    if (!fits) return undefined;
    return substitute(substitute(overload.result, fresh), this.#bindings);
  }

  #list(list: ListExpression): CelType {
    const { items, optional } = list;
    if (this.#formats === 0) this.#literals.push(list);
    let type: CelType | undefined;
    for (const [index, item] of items.entries()) {
      type = this.#commonType(item, type, this.#memberType(item, optional.has(index)));
    }
    return listOf(type ?? this.#param());
  }

  #map(map: MapExpression): CelType {
    const { entries } = map;
    if (this.#formats === 0) this.#literals.push(map);
    let key: CelType | undefined;
    let value: CelType | undefined;
    for (const entry of entries) {
      key = this.#commonType(entry.key, key);
      value = this.#commonType(entry.value, value, this.#memberType(entry.value, entry.isOptional));
    }
    return mapOf(key ?? this.#param(), value ?? this.#param());
  }

  /** Returns the common type of the members of a literal, `dyn` if they differ. */
  #commonType(
    member: Expression,
    previous: CelType | undefined,
    type: CelType = this.check(member),
  ): CelType {
    if (!previous) return type;
    if (this.#assign(previous, type)) return isAny(type) ? type : previous;
    return DYN;
  }

  /** Returns the type of a member of a literal. The value of an optional one is an optional. */
  #memberType(value: Expression, isOptional: boolean): CelType {
    const type = this.check(value);
    if (!isOptional || isAny(type)) return type;
    return type.kind === 'optional' ? type.item : this.#mismatch(value.at, optionalOf(type), type);
  }

  /** The fields of objects have any type. */
  #construction({ at, name, fields }: Construction): CelType {
    const message = messageNamed(name);
    if (message) return this.#message(message, fields);
    const isPatch = name === 'JSONPatch';
    if (!this.#constructs || !(isPatch || CONSTRUCTED.test(name))) {
      return this.#undeclared(at, name);
    }
    for (const entry of fields) {
      const type = this.#memberType(entry.value, entry.isOptional);
      if (!isPatch || entry.key.kind !== 'literal') continue;
      const field = typeof entry.key.value === 'string' ? entry.key.value : '';
      if (!PATCH_FIELDS.has(field)) this.#fail(entry.key.at, `undefined field '${field}'`);
      else if (field !== 'value' && !this.#assign(STRING, type)) {
        this.#mismatch(entry.value.at, STRING, type);
      }
    }
    return { kind: 'opaque', name };
  }

  #message({ type, fields }: Message, entries: readonly MapEntry[]): CelType {
    for (const { key, value, isOptional } of entries) {
      const actual = this.#memberType(value, isOptional);
      const name = key.kind === 'literal' && typeof key.value === 'string' ? key.value : '';
      const expected = fields.get(name);
      // The colon after the field: the parser quotes its name.
      const at = key.at + name.length + 2;
      if (!expected) this.#fail(at, `undefined field '${name}'`);
      else if (!this.#assign(expected, actual)) {
        const types = [expected, actual].map((each) => `'${formatType(each)}'`);
        this.#fail(
          at,
          `expected type of field '${name}' is ${types[0]} but provided type is ${types[1]}`,
        );
      }
    }
    return type;
  }

  #fold(fold: Fold): CelType {
    const { range, variables, filter, step } = fold;
    const rangeType = this.check(range);
    if (fold.name === 'optMap' || fold.name === 'optFlatMap')
      return this.#optional(fold, rangeType);
    const [first = ERROR, second = ERROR] = this.#members(fold, rangeType);
    const [key = '', value = ''] = variables;
    const outer = this.#scope;
    this.#scope = new Map([
      ...outer,
      [key, first],
      ...(variables.length > 1 ? [[value, second] as const] : []),
    ]);
    if (filter) this.check(filter);
    const type = this.check(step);
    this.#scope = outer;
    switch (fold.name) {
      case 'all':
      case 'exists':
        return this.#isBool(step, type) ? BOOL : ERROR;
      case 'existsOne':
        this.#collect(fold, step, INT);
        return BOOL;
      case 'filter':
        return this.#collect(fold, step, listOf(first));
      case 'map':
      case 'transformList':
        return this.#collect(fold, filter, listOf(type));
      case 'transformMap':
        return this.#collect(fold, filter, mapOf(rangeType.kind === 'list' ? INT : first, type));
      case 'transformMapEntry':
        if (type.kind === 'map' || isAny(type)) return this.#collect(fold, filter, type);
        return this.#noOverload(fold.at, 'cel.@mapInsert', [type], false);
      case 'sortBy': {
        const keys = listOf(type);
        const isSortable = overloadsOf('sort').some((overload) => this.#resolve(overload, [keys]));
        if (isSortable) return rangeType;
        return this.#noOverload(fold.at, '@sortByAssociatedKeys', [rangeType, keys], true);
      }
    }
  }

  /** Returns the result of a macro that collects the members for which a condition holds. */
  #collect({ at }: Fold, condition: Expression | undefined, result: CelType): CelType {
    const type = (condition && this.types.get(condition)) ?? BOOL;
    if (this.#assign(BOOL, type)) return result;
    return this.#noOverload(at, '_?_:_', [type, result, result], false);
  }

  /** Returns the types of the variables of a macro. */
  #members({ range, variables }: Fold, type: CelType): readonly CelType[] {
    const pairs = variables.length > 1;
    switch (type.kind) {
      case 'list':
        return pairs ? [INT, type.item] : [type.item];
      case 'map':
        return [type.key, type.value];
      case 'param':
        this.#assign(DYN, type);
        return [DYN, DYN];
      default:
        if (isAny(type)) return [DYN, DYN];
        this.#fail(
          range.at,
          `expression of type '${formatType(type)}' cannot be range of a comprehension (must be list, map, or dynamic)`,
        );
        return [ERROR, ERROR];
    }
  }

  #optional({ name, at, range, variables, step }: Fold, type: CelType): CelType {
    if (type.kind !== 'optional' && !isAny(type)) {
      return this.#noOverload(range.at, 'hasValue', [type], true);
    }
    const outer = this.#scope;
    this.#scope = new Map([
      ...outer,
      [variables[0] ?? '', type.kind === 'optional' ? type.item : DYN],
    ]);
    const mapped = this.check(step);
    this.#scope = outer;
    if (name === 'optMap') return optionalOf(mapped);
    return mapped.kind === 'optional' || isAny(mapped)
      ? mapped
      : this.#noOverload(at, '_?_:_', [BOOL, mapped], false);
  }

  #expect(expression: Expression, type: CelType): void {
    const actual = this.check(expression);
    if (!this.#assign(type, actual)) this.#mismatch(expression.at, type, actual);
  }

  #isBool(step: Expression, type: CelType): boolean {
    if (this.#assign(BOOL, type)) return true;
    this.#mismatch(step.at, BOOL, type);
    return false;
  }

  #assign(to: CelType, from: CelType): boolean {
    return this.#bindings.try(() => isAssignable(to, from, this.#bindings));
  }

  #param(): CelType {
    return param(`_var${this.#params++}`);
  }

  #mismatch(at: number, expected: CelType, actual: CelType): CelType {
    return this.#fail(
      at,
      `expected type '${formatType(expected)}' but found '${formatType(actual)}'`,
    );
  }

  #undeclared(at: number, name: string): CelType {
    return this.#fail(at, `undeclared reference to '${name}' (in container '')`);
  }

  #noOverload(at: number, name: string, types: readonly CelType[], isMember: boolean): CelType {
    const names = types.map((type) => formatType(substitute(type, this.#bindings)));
    const [target = '', ...rest] = names;
    const signature = isMember ? `${target}.(${rest.join(', ')})` : `(${names.join(', ')})`;
    return this.#fail(at, `found no matching overload for '${name}' applied to '${signature}'`);
  }

  #fail(at: number, message: string): CelType {
    this.problems.push({ at, message });
    return ERROR;
  }
}

/** Types of constructed objects: `Object`, `Object.spec`. */
const CONSTRUCTED = /^Object(?:\.|$)/;

const PATCH_FIELDS: ReadonlySet<string> = new Set(['op', 'path', 'from', 'value']);

function literalType(value: Extract<Expression, { kind: 'literal' }>['value']): CelType {
  if (value === null) return NULL;
  if (value instanceof Uint) return UINT;
  if (value instanceof Uint8Array) return BYTES;
  switch (typeNameOf(value)) {
    case 'bool':
      return BOOL;
    case 'int':
      return INT;
    case 'double':
      return DOUBLE;
    default:
      return STRING;
  }
}
