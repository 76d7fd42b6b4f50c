/** Maximum depth of an arithmetic expression. */
const MAX_DEPTH = 100;

type Apply = (a: number, b: number) => number;

/** Binary operators, weakest first. */
const LEVELS: readonly ReadonlyMap<string, Apply>[] = [
  new Map<string, Apply>([
    ['==', (a, b) => Number(a === b)],
    ['!=', (a, b) => Number(a !== b)],
    ['<', (a, b) => Number(a < b)],
    ['>', (a, b) => Number(a > b)],
    ['<=', (a, b) => Number(a <= b)],
    ['>=', (a, b) => Number(a >= b)],
  ]),
  new Map<string, Apply>([
    ['+', (a, b) => a + b],
    ['-', (a, b) => a - b],
  ]),
  new Map<string, Apply>([
    ['*', (a, b) => a * b],
    ['/', (a, b) => Math.trunc(a / b)],
    ['%', (a, b) => a % b],
  ]),
];

/** Thrown for an expression with other syntax. */
class Malformed extends Error {}

/**
 * Evaluates integers, variables, `+ - * / %`, comparisons and parentheses.
 *
 * @returns undefined if the expression has other syntax, or no finite value
 */
export function evaluate(
  expression: string,
  valueOf: (name: string) => string,
): number | undefined {
  const tokens = expression.match(/\d+|[A-Za-z_]\w*|[<>=!]=|[-+*/%()<>]|\S/g) ?? [];
  let at = 0;
  let depth = 0;
  const primary = (): number => {
    if (++depth > MAX_DEPTH) throw new Malformed();
    const value = operand();
    depth--;
    return value;
  };
  const operand = (): number => {
    const token = tokens[at++] ?? '';
    if (token === '(') {
      const value = binary(0);
      if (tokens[at++] !== ')') throw new Malformed();
      return value;
    }
    if (token === '-') return -primary();
    if (/^\d+$/.test(token)) return Number(token);
    if (token === '$') return primary();
    if (/^[A-Za-z_]/.test(token)) return Number.parseInt(valueOf(token), 10) || 0;
    throw new Malformed();
  };
  const binary = (level: number): number => {
    const operators = LEVELS[level];
    if (!operators) return primary();
    let value = binary(level + 1);
    for (let apply; (apply = operators.get(tokens[at] ?? ''));) {
      at++;
      value = apply(value, binary(level + 1));
    }
    return value;
  };
  try {
    const value = binary(0);
    return at < tokens.length || !Number.isFinite(value) ? undefined : value;
  } catch (error) {
    if (error instanceof Malformed) return undefined;
    throw error;
  }
}

const number = (compare: (a: number, b: number) => boolean) => (a: string, b: string) =>
  compare(Number.parseInt(a, 10), Number.parseInt(b, 10));

/** Operators of `test` with two operands. */
export const COMPARISONS: ReadonlyMap<string, (a: string, b: string) => boolean> = new Map([
  ['=', (a: string, b: string) => a === b],
  ['==', (a: string, b: string) => a === b],
  ['!=', (a: string, b: string) => a !== b],
  ['-eq', number((a, b) => a === b)],
  ['-ne', number((a, b) => a !== b)],
  ['-lt', number((a, b) => a < b)],
  ['-le', number((a, b) => a <= b)],
  ['-gt', number((a, b) => a > b)],
  ['-ge', number((a, b) => a >= b)],
]);

/** Returns the numbers that `seq` prints, or undefined if there are more than `limit`. */
export function sequence(args: readonly string[], limit: number): readonly number[] | undefined {
  const numbers = args.map(Number);
  const [first, step, last] =
    numbers.length === 1
      ? [1, 1, numbers[0]]
      : numbers.length === 2
        ? [numbers[0], 1, numbers[1]]
        : numbers;
  if (first === undefined || step === undefined || last === undefined || !step) return undefined;
  const count = Math.floor((last - first) / step) + 1;
  if (Number.isNaN(count) || count > limit) return undefined;
  return Array.from({ length: Math.max(0, count) }, (_, n) => first + n * step);
}

/** Returns NaN for `infinity` and malformed durations. */
export function durationMs(text: string): number {
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?|\.\d+)([smhd]?)$/.exec(text) ?? [];
  if (amount === undefined) return Number.NaN;
  const seconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
  return Math.round(Number(amount) * (seconds[unit || 's'] ?? 1) * 1000);
}
