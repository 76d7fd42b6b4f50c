/**
 * Assembles WebAssembly from its text format, for the few loops where SIMD instructions are worth it. Supports
 * one memory, exported functions and folded instructions with the operators below.
 */
export function assembleWasm(source: string): Uint8Array {
  const [root] = parse(source.match(TOKEN) ?? [], 0);
  const types: number[][] = [];
  const functions: number[][] = [];
  const exports: number[][] = [];
  const memories: number[][] = [];
  for (const item of lists(root)) {
    if (item[0] === 'memory') {
      exports.push([...exportName(item), 0x02, memories.length]);
      memories.push([0x00, ...unsigned(Number(item.at(-1)))]);
    } else if (item[0] === 'func') {
      exports.push([...exportName(item), 0x00, functions.length]);
      const { type, code } = functionOf(item);
      types.push(type);
      functions.push(code);
    } else {
      throw new SyntaxError(`Expected memory or func, got ${String(item[0])}`);
    }
  }
  return Uint8Array.from([
    ...HEADER,
    ...section(1, types),
    ...section(
      3,
      functions.map((_, index) => unsigned(index)),
    ),
    ...section(5, memories),
    ...section(7, exports),
    ...section(
      10,
      functions.map((code) => unsigned(code.length).concat(code)),
    ),
  ]);
}

type Expression = string | readonly Expression[];
type List = readonly Expression[];

/** Magic number and version. */
const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

const TOKEN = /[()]|"[^"]*"|[^\s()"]+/g;

const TYPES: Readonly<Record<string, number>> = { i32: 0x7f, i64: 0x7e, v128: 0x7b };

const OPERATORS: Readonly<Record<string, readonly number[]>> = {
  return: [0x0f],
  'i32.ne': [0x47],
  'i32.lt_s': [0x48],
  'i32.lt_u': [0x49],
  'i32.gt_s': [0x4a],
  'i32.le_s': [0x4c],
  'i32.ge_u': [0x4f],
  'i64.eqz': [0x50],
  'i64.lt_u': [0x54],
  'i32.add': [0x6a],
  'i32.sub': [0x6b],
  'i32.and': [0x71],
  'i32.or': [0x72],
  'i32.shr_u': [0x76],
  'i64.ctz': [0x7a],
  'i64.add': [0x7c],
  'i64.sub': [0x7d],
  'i64.and': [0x83],
  'i64.or': [0x84],
  'i64.xor': [0x85],
  'i64.shl': [0x86],
  'i64.shr_s': [0x87],
  'i32.wrap_i64': [0xa7],
  'i64.extend_i32_u': [0xad],
  'i8x16.splat': [0xfd, 0x0f],
  'i8x16.eq': [0xfd, 0x23],
  'v128.or': [0xfd, 0x50],
  'i8x16.bitmask': [0xfd, 0x64],
};

/** Operators with an address, and the logarithm of their alignment. */
const MEMORY_OPERATORS: Readonly<
  Record<string, readonly [opcode: readonly number[], align: number]>
> = {
  'i32.load': [[0x28], 2],
  'i64.load': [[0x29], 3],
  'i32.load8_u': [[0x2d], 0],
  'i32.store': [[0x36], 2],
  'i64.store': [[0x37], 3],
  'v128.load': [[0xfd, 0x00], 4],
};

const LOCAL_OPERATORS: Readonly<Record<string, number>> = { 'local.get': 0x20, 'local.set': 0x21 };
const BRANCHES: Readonly<Record<string, number>> = { br: 0x0c, br_if: 0x0d };
const BLOCKS: Readonly<Record<string, number>> = { block: 0x02, loop: 0x03 };
const NO_RESULT = 0x40;
const END = 0x0b;

function parse(tokens: readonly string[], at: number): readonly [Expression, next: number] {
  const token = tokens[at];
  if (token === undefined) throw new SyntaxError('Unexpected end of WebAssembly text');
  if (token !== '(') return [token, at + 1];
  const items: Expression[] = [];
  let next = at + 1;
  while (tokens[next] !== ')') {
    const [item, after] = parse(tokens, next);
    items.push(item);
    next = after;
  }
  return [items, next + 1];
}

/** Names of locals, and labels of the enclosing blocks with the outermost first. */
interface Scope {
  readonly locals: readonly string[];
  readonly labels: readonly string[];
}

function functionOf(func: List): { readonly type: number[]; readonly code: number[] } {
  const declared = (what: string) => lists(func).filter(([name]) => name === what);
  const params = declared('param');
  const variables = declared('local');
  const results = declared('result').map(([, type]) => typeOf(type));
  const locals = [...params, ...variables].map(([, name]) => String(name));
  const body = lists(func).filter(
    ([name]) => !['export', 'param', 'local', 'result'].includes(String(name)),
  );
  return {
    type: [0x60, ...vector(params.map((param) => [typeOf(param[2])])), results.length, ...results],
    code: [
      ...vector(variables.map((variable) => [1, typeOf(variable[2])])),
      ...body.flatMap((instruction) => encode(instruction, { locals, labels: [] })),
      END,
    ],
  };
}

function encode(instruction: Expression, scope: Scope): number[] {
  if (typeof instruction === 'string') throw new SyntaxError(`Unexpected ${instruction}`);
  const [name, ...operands] = instruction as [string, ...Expression[]];
  const all = (expressions: readonly Expression[]) =>
    expressions.flatMap((expression) => encode(expression, scope));
  const [first, ...others] = operands;
  if (name === 'i32.const' || name === 'i64.const') {
    return [
      name === 'i32.const' ? 0x41 : 0x42,
      ...signed(BigInt.asIntN(64, BigInt(String(first)))),
    ];
  }
  const local = LOCAL_OPERATORS[name];
  if (local !== undefined) {
    return [...all(others), local, ...unsigned(indexOf(scope.locals, first))];
  }
  const branch = BRANCHES[name];
  if (branch !== undefined) {
    const depth = scope.labels.length - 1 - indexOf(scope.labels, first);
    return [...all(others), branch, ...unsigned(depth)];
  }
  const block = BLOCKS[name];
  if (block !== undefined) {
    const inner = { ...scope, labels: [...scope.labels, String(first)] };
    return [block, NO_RESULT, ...others.flatMap((each) => encode(each, inner)), END];
  }
  if (name === 'if') {
    const inner = { ...scope, labels: [...scope.labels, ''] };
    const [then = [], otherwise] = lists(others).map(([, ...body]) =>
      body.flatMap((each) => encode(each, inner)),
    );
    const alternative = otherwise ? [0x05, ...otherwise] : [];
    return [...all(operands.slice(0, 1)), 0x04, NO_RESULT, ...then, ...alternative, END];
  }
  const memory = MEMORY_OPERATORS[name];
  if (memory) {
    const [opcode, align] = memory;
    const offset = typeof first === 'string' ? Number(first.replace('offset=', '')) : 0;
    const addresses = typeof first === 'string' ? others : operands;
    return [...all(addresses), ...opcode, align, ...unsigned(offset)];
  }
  const opcode = OPERATORS[name];
  if (!opcode) throw new SyntaxError(`Unknown WebAssembly instruction ${name}`);
  return [...all(operands), ...opcode];
}

function lists(expression: Expression): List[] {
  return Array.from(expression).filter((item): item is List => typeof item !== 'string');
}

function typeOf(name: Expression | undefined): number {
  const type = TYPES[String(name)];
  if (type === undefined) throw new SyntaxError(`Unknown WebAssembly type ${String(name)}`);
  return type;
}

function indexOf(names: readonly string[], name: Expression | undefined): number {
  const index = names.lastIndexOf(String(name));
  if (index < 0) throw new SyntaxError(`Unknown WebAssembly name ${String(name)}`);
  return index;
}

function exportName(item: List): number[] {
  const [, name = '""'] = lists(item).find(([what]) => what === 'export') ?? [];
  const bytes = [...Buffer.from(String(name).slice(1, -1))];
  return [...unsigned(bytes.length), ...bytes];
}

function section(id: number, entries: readonly (readonly number[])[]): number[] {
  const content = vector(entries);
  return [id, ...unsigned(content.length), ...content];
}

function vector(entries: readonly (readonly number[])[]): number[] {
  return [...unsigned(entries.length), ...entries.flat()];
}

/** Returns the LEB128 encoding of an unsigned number. */
function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

/** Returns the LEB128 encoding of a signed number. */
function signed(value: bigint): number[] {
  const low = Number(value & 0x7fn);
  const rest = value >> 7n;
  const isLast = (rest === 0n && (low & 0x40) === 0) || (rest === -1n && (low & 0x40) !== 0);
  return isLast ? [low] : [low | 0x80, ...signed(rest)];
}
