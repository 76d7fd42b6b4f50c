import type { Checked } from './check.ts';
import type {
  CallExpression,
  Conditional,
  MapEntry,
  Expression,
  Fold,
  FoldName,
  Logical,
  Select,
} from './expression.ts';
import { messageNamed } from './messages.ts';
import { typeNameIn, typeOfName } from './type-names.ts';
import { found } from './functions/optionals.ts';
import { noSuchKey } from './functions/operators.ts';
import { CostMeter, sizedAs } from './values/overload.ts';
import type { Dictionary, Result, Value } from './values/value.ts';
import {
  EvaluationError,
  isDictionary,
  List,
  Constructed,
  LiteralMap,
  NO_OVERLOAD,
  Optional,
  sizeOf,
  TypeValue,
  Uint,
} from './values/value.ts';
import { sortBy } from './functions/lists.ts';

/**
 * A compiled expression.
 *
 * @param variables values of the variables by name
 * @throws {CostExceeded} when the meter reaches its limit
 */
export type CompiledProgram = (variables: ReadonlyMap<string, Value>, meter: CostMeter) => Result;

/** Returns the program, or the error of a constant. */
export function compile(checked: Checked): CompiledProgram | EvaluationError {
  const compiler = new Compiler(checked);
  const run = compiler.step(checked.expression);
  return compiler.failure ?? ((variables, meter) => run({ variables, parent: undefined }, meter));
}

/** Functions that are called once, when the expression is compiled, if their argument is a constant. */
const CONVERSIONS = new Set('bool bytes double duration dyn int string timestamp uint'.split(' '));

/** Variables in scope, innermost first. */
interface Frame {
  readonly variables: ReadonlyMap<string, Value>;
  readonly parent: Frame | undefined;
}

const NO_VARIABLES: Frame = { variables: new Map(), parent: undefined };

type Step = (frame: Frame, meter: CostMeter) => Result;

class Compiler {
  /** The first error of a constant. */
  failure: EvaluationError | undefined;
  readonly #checked: Checked;
  readonly #constants = new Set<Expression>();

  constructor(checked: Checked) {
    this.#checked = checked;
  }

  step(expression: Expression): Step {
    switch (expression.kind) {
      case 'literal': {
        const { value } = expression;
        return () => value;
      }
      case 'identifier': {
        const { name } = expression;
        if (this.#checked.typeOf.get(expression)?.kind === 'type') return this.#typeName(name);
        return (frame, meter) => {
          meter.spend(1);
          return lookUp(frame, name);
        };
      }
      case 'select':
        return this.#select(expression);
      case 'call':
        return this.#call(expression);
      case 'and':
      case 'or':
        return this.#logical(expression);
      case 'conditional':
        return this.#conditional(expression);
      case 'list': {
        const { optional } = expression;
        const items = expression.items.map((item) => this.step(item));
        return (frame, meter) => {
          const values = evaluateAll(items, frame, meter);
          meter.spend(LIST_COST);
          if (values instanceof EvaluationError) return values;
          return optional.size === 0 ? List.of(values) : present(values, optional);
        };
      }
      case 'map':
        return this.#entries(expression.entries, () => new LiteralMap(), MAP_COST);
      case 'construction': {
        const { name, fields } = expression;
        const step = this.#entries(fields, () => new Constructed(name), OBJECT_COST);
        const message = messageNamed(name);
        if (!message) return step;
        return (frame, meter) => {
          const result = step(frame, meter);
          return result instanceof Constructed ? message.value(result) : result;
        };
      }
      case 'fold':
        return this.#fold(expression);
    }
  }

  #entries(entries: readonly MapEntry[], create: () => LiteralMap, cost: number): Step {
    const steps = entries.map(({ key, value, isOptional }) => ({
      parts: [this.step(key), this.step(value)],
      isOptional,
    }));
    return (frame, meter) => {
      const map = create();
      for (const { parts, isOptional } of steps) {
        const values = evaluateAll(parts, frame, meter);
        if (values instanceof EvaluationError) return values;
        const [key = null, given = null] = values;
        if (isOptional && !(given instanceof Optional)) return NO_OVERLOAD;
        const value = isOptional && given instanceof Optional ? given.value : given;
        const failure = value === undefined ? undefined : insert(map, key, value);
        if (failure) return failure;
      }
      meter.spend(cost);
      return map;
    };
  }

  /** As upstream, any variable whose value is a type is the name of that type. */
  #typeName(name: string): Step {
    if (!(messageNamed(name)?.isTypeOfValues ?? typeOfName(name))) {
      this.failure ??= new EvaluationError(`reference to undefined type: ${name}`);
    }
    const value = new TypeValue(name);
    return () => value;
  }

  #select(expression: Select): Step {
    const { operand, field, mode } = expression;
    const isType = this.#checked.typeOf.get(expression)?.kind === 'type';
    const name = isType ? typeNameIn(expression) : undefined;
    if (name !== undefined) return this.#typeName(name);
    const step = this.step(operand);
    return (frame, meter) => {
      const whole = step(frame, meter);
      if (whole instanceof EvaluationError) return whole;
      if (mode !== 'test') meter.spend(1);
      const isOptional = whole instanceof Optional;
      const value = isOptional ? whole.value : whole;
      if (value === undefined) return mode === 'test' ? false : Optional.none;
      if (!isDictionary(value)) return NO_OVERLOAD;
      const member = value.get(field);
      // As upstream, the presence of a value of the wrong type is an error.
      if (mode === 'test') return member instanceof EvaluationError ? member : member !== undefined;
      if (isOptional || mode === 'optional') return found(member);
      return member === undefined ? noSuchKey(field) : member;
    };
  }

  #call(expression: CallExpression): Step {
    const overloads = this.#checked.overloadsOf.get(expression) ?? [];
    const { target, args } = expression;
    const steps = [...(target ? [target] : []), ...args].map((argument) => this.step(argument));
    const call: Step = (frame, meter) => {
      const values = evaluateAll(steps, frame, meter);
      if (values instanceof EvaluationError) return values;
      const sizes = values.map((value) => {
        const size = sizeOf(value);
        if (typeof value === 'string' || value instanceof Uint8Array) meter.work(size);
        return sizedAs(size, value instanceof List && value.size > 0 ? itemSize(value) : 1);
      });
      for (const overload of overloads) {
        const result = overload.call(values, sizes, meter);
        if (result !== undefined) return result;
      }
      return NO_OVERLOAD;
    };
    if (CONVERSIONS.has(expression.name) && args.every((argument) => this.#isConstant(argument))) {
      this.#constants.add(expression);
      const result = call(NO_VARIABLES, new CostMeter(Infinity));
      if (result instanceof EvaluationError) this.failure ??= result;
    }
    return call;
  }

  #isConstant(expression: Expression): boolean {
    return expression.kind === 'literal' || this.#constants.has(expression);
  }

  /** One deciding term determines the result, even if other terms fail. */
  #logical({ kind, terms }: Logical): Step {
    const decides = kind === 'or';
    const steps = terms.map((term) => this.step(term));
    return (frame, meter) => {
      let failure: EvaluationError | undefined;
      for (const step of steps) {
        const value = step(frame, meter);
        if (value === decides) return decides;
        if (value instanceof EvaluationError) failure ??= value;
        else if (typeof value !== 'boolean') failure ??= NO_OVERLOAD;
      }
      return failure ?? !decides;
    };
  }

  #conditional({ condition, yes, no }: Conditional): Step {
    const [test, then, otherwise] = [condition, yes, no].map((part) => this.step(part));
    return (frame, meter) => {
      const value = test?.(frame, meter) ?? null;
      if (value instanceof EvaluationError) return value;
      if (typeof value !== 'boolean') return NO_OVERLOAD;
      return (value ? then : otherwise)?.(frame, meter) ?? null;
    };
  }

  #fold(fold: Fold): Step {
    const { name, variables } = fold;
    const range = this.step(fold.range);
    const filter = fold.filter && this.step(fold.filter);
    const step = this.step(fold.step);
    if (name === 'optMap' || name === 'optFlatMap')
      return optional(name, range, variables[0] ?? '', step);
    return (frame, meter) => {
      const members = range(frame, meter);
      if (members instanceof EvaluationError) return members;
      if (!(members instanceof List) && !isDictionary(members)) return NO_OVERLOAD;
      const collected = new Collector(name);
      meter.work(members.size);
      for (const values of bindings(members, variables)) {
        meter.spend(collected.iterationCost);
        if (values instanceof EvaluationError) return values;
        const inner: Frame = { variables: values, parent: frame };
        const passed = filter?.(inner, meter) ?? true;
        if (passed instanceof EvaluationError) return passed;
        if (typeof passed !== 'boolean') return NO_OVERLOAD;
        if (passed && collected.add(step(inner, meter), values, variables, meter)) break;
      }
      return collected.result(members);
    };
  }
}

function optional(name: 'optMap' | 'optFlatMap', range: Step, variable: string, step: Step): Step {
  return (frame, meter) => {
    const whole = range(frame, meter);
    if (whole instanceof EvaluationError) return whole;
    if (!(whole instanceof Optional)) return NO_OVERLOAD;
    if (whole.value === undefined) return whole;
    const result = step({ variables: new Map([[variable, whole.value]]), parent: frame }, meter);
    return result instanceof EvaluationError || name === 'optFlatMap'
      ? result
      : new Optional(result);
  };
}

function lookUp(frame: Frame, name: string): Result {
  for (let at: Frame | undefined = frame; at; at = at.parent) {
    const value = at.variables.get(name);
    if (value !== undefined) return value;
  }
  return new EvaluationError(`no such attribute(s): ${name}`);
}

/** Returns a list without the optional items that have no value. */
function present(values: readonly Value[], optional: ReadonlySet<number>): Result {
  const items: Value[] = [];
  for (const [index, given] of values.entries()) {
    if (optional.has(index) && !(given instanceof Optional)) return NO_OVERLOAD;
    const isUnwrapped = optional.has(index) && given instanceof Optional;
    const value = isUnwrapped ? given.value : given;
    if (value !== undefined) items.push(value);
  }
  return List.of(items);
}

function evaluateAll(
  steps: readonly Step[],
  frame: Frame,
  meter: CostMeter,
): Value[] | EvaluationError {
  const values: Value[] = [];
  for (const step of steps) {
    const value = step(frame, meter);
    if (value instanceof EvaluationError) return value;
    values.push(value);
  }
  return values;
}

function itemSize(list: List): number {
  const first = list.at(0);
  return first instanceof EvaluationError ? 1 : sizeOf(first);
}

/** Yields the variables of each iteration over a list or a map. */
function* bindings(
  members: List | Dictionary,
  [first = '', second]: readonly string[],
): Generator<ReadonlyMap<string, Value> | EvaluationError> {
  const isList = members instanceof List;
  const keys = isList ? indices(members.size) : members.keys();
  for (const key of keys) {
    const value = isList
      ? members.at(Number(key))
      : second === undefined
        ? null
        : (members.get(key) ?? null);
    if (value instanceof EvaluationError) yield value;
    else if (second !== undefined)
      yield new Map([
        [first, key],
        [second, value],
      ]);
    else yield new Map([[first, isList ? value : key]]);
  }
}

function* indices(size: number): Generator<bigint> {
  for (let index = 0n; index < size; index++) yield index;
}

/** Cost of creating a list, a map or an object. */
const LIST_COST = 10;
const MAP_COST = 30;
const OBJECT_COST = 40;

/** Adds an entry. Returns a failure if the key is invalid or present. */
function insert(map: LiteralMap, key: Value, value: Value): EvaluationError | undefined {
  const isKey = ['string', 'bigint', 'boolean', 'number'].includes(typeof key);
  if (!isKey && !(key instanceof Uint)) return new EvaluationError('unsupported key type');
  return map.add(key, value) ? undefined : new EvaluationError('Failed with repeated key');
}

/** The accumulator of a macro. */
class Collector {
  readonly #name: FoldName;
  readonly #items: Value[] = [];
  readonly #entries = new LiteralMap();
  #count = 0;
  #decided: boolean | undefined;
  #failure: EvaluationError | undefined;

  constructor(name: FoldName) {
    this.#name = name;
  }

  /** Cost of one iteration in addition to the step: reading, testing and changing the accumulator. */
  get iterationCost(): number {
    switch (this.#name) {
      case 'all':
      case 'exists':
        return 3;
      case 'existsOne':
        return 2;
      case 'filter':
        return LIST_COST + 3;
      case 'transformMap':
      case 'transformMapEntry':
        return MAP_COST + 2;
      default:
        return LIST_COST + 2;
    }
  }

  /** Adds one result. Returns true if no further iteration can change the result. */
  add(
    value: Result,
    variables: ReadonlyMap<string, Value>,
    names: readonly string[],
    meter: CostMeter,
  ): boolean {
    switch (this.#name) {
      case 'all':
      case 'exists': {
        const decides = this.#name === 'exists';
        if (value === decides) this.#decided = decides;
        else if (value instanceof EvaluationError) this.#failure ??= value;
        else if (typeof value !== 'boolean') this.#failure ??= NO_OVERLOAD;
        return this.#decided !== undefined;
      }
      case 'transformMapEntry':
        return this.#addEntries(value, meter);
      default:
    }
    if (value instanceof EvaluationError) {
      this.#failure = value;
      return true;
    }
    const [first = ''] = names;
    switch (this.#name) {
      case 'existsOne':
        if (value === true) this.#count++;
        return false;
      case 'filter':
        if (value === true) this.#items.push(variables.get(first) ?? null);
        return false;
      case 'transformMap':
        this.#failure = insert(this.#entries, variables.get(first) ?? null, value);
        return this.#failure !== undefined;
      default:
        this.#items.push(value);
        return false;
    }
  }

  #addEntries(value: Result, meter: CostMeter): boolean {
    if (!isDictionary(value)) {
      this.#failure = value instanceof EvaluationError ? value : NO_OVERLOAD;
      return true;
    }
    meter.spend(value.size);
    for (const key of value.keys()) {
      const member = value.get(key) ?? null;
      this.#failure =
        member instanceof EvaluationError ? member : insert(this.#entries, key, member);
      if (this.#failure) return true;
    }
    return false;
  }

  result(range: List | Dictionary): Result {
    switch (this.#name) {
      case 'all':
      case 'exists':
        return this.#decided ?? this.#failure ?? this.#name === 'all';
      default:
    }
    if (this.#failure) return this.#failure;
    switch (this.#name) {
      case 'existsOne':
        return this.#count === 1;
      case 'transformMap':
      case 'transformMapEntry':
        return this.#entries;
      case 'sortBy':
        return range instanceof List ? sortBy(range, List.of(this.#items)) : NO_OVERLOAD;
      default:
        return List.of(this.#items);
    }
  }
}
