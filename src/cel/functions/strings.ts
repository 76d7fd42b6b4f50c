import { ESCAPES } from '../../util/go-quote.ts';
import type { Pattern } from '../values/pattern.ts';
import { isCompiled, pattern } from '../values/pattern.ts';
import type { CostMeter, Overload, Size } from '../values/overload.ts';
import {
  costs,
  sizedAs,
  global,
  int,
  listParameter,
  member,
  memberWithOptional,
  stringParameter,
} from '../values/overload.ts';
import { BOOL, DYN, INT, STRING, listOf } from '../values/type.ts';
import type { Result } from '../values/value.ts';
import { EvaluationError, List, textSize } from '../values/value.ts';
import { formatText } from './text-format.ts';

const TEXTS = listOf(STRING);
const texts = listParameter(STRING);

/** Functions of strings: the standard library, the strings extension, and regular expressions (RE2). */
export function strings(): Overload[] {
  const whole = { cost: costs.traverse(0), size: ([text]: readonly Size[]) => text ?? sizedAs(0) };
  return [
    member(
      'contains',
      [stringParameter, stringParameter],
      BOOL,
      (text, part) => text.includes(part),
      {
        cost: (sizes) => costs.traverse(0)(sizes) * costs.traverse(1)(sizes),
      },
    ),
    member(
      'startsWith',
      [stringParameter, stringParameter],
      BOOL,
      (text, part) => text.startsWith(part),
      {
        cost: costs.traverse(1),
      },
    ),
    member(
      'endsWith',
      [stringParameter, stringParameter],
      BOOL,
      (text, part) => text.endsWith(part),
      {
        cost: costs.traverse(1),
      },
    ),
    member(
      'lowerAscii',
      [stringParameter],
      STRING,
      (text) => mapAscii(text, /[A-Z]+/g, 'toLowerCase'),
      whole,
    ),
    member(
      'upperAscii',
      [stringParameter],
      STRING,
      (text) => mapAscii(text, /[a-z]+/g, 'toUpperCase'),
      whole,
    ),
    member('trim', [stringParameter], STRING, (text) => text.trim(), whole),
    global('strings.quote', [stringParameter], STRING, quote, {
      cost: costs.traverse(0),
      size: ([text]) => ({ ...sizedAs((text?.count ?? 0) * 2 + 2), min: (text?.min ?? 0) + 2 }),
    }),
    member('format', [stringParameter, listParameter(DYN)], STRING, formatText, {
      cost: costs.traverse(0),
    }),
    ...positions(),
    ...cuts(),
    ...expressions(),
  ];
}

function mapAscii(text: string, letters: RegExp, change: 'toLowerCase' | 'toUpperCase'): string {
  return text.replace(letters, (found) => found[change]());
}

function quote(text: string): string {
  return `"${text.replace(/[\p{Cc}\\"]/gu, (found) => ESCAPES.get(found) ?? found)}"`;
}

/** Returns a text indexed by code point; most texts need no conversion. */
function points(text: string): string | readonly string[] {
  return textSize(text) === text.length ? text : Array.from(text);
}

function slice(text: string | readonly string[], start: number, end?: number): string {
  const part = text.slice(start, end);
  return typeof part === 'string' ? part : part.join('');
}

function positions(): Overload[] {
  const outOfRange = (index: bigint) => new EvaluationError(`index out of range: ${index}`);
  const find = (last: boolean) => (text: string, part: string, from: bigint | undefined) => {
    const size = textSize(text);
    if (from !== undefined && (from < 0n || from > BigInt(size))) return outOfRange(from);
    const whole = points(text);
    const start = Number(from ?? (last ? size : 0));
    if (typeof whole === 'string') {
      return BigInt(last ? whole.lastIndexOf(part, start) : whole.indexOf(part, start));
    }
    const unit = slice(whole, 0, start).length;
    const found = last ? text.lastIndexOf(part, unit) : text.indexOf(part, unit);
    return found < 0 ? -1n : BigInt(textSize(text.slice(0, found)));
  };
  const cost = { cost: costs.traverse(0) };
  return [
    member('charAt', [stringParameter, int], STRING, (text, index) => {
      const whole = points(text);
      if (index < 0n || index > BigInt(whole.length)) return outOfRange(index);
      return whole[Number(index)] ?? '';
    }),
    ...memberWithOptional(
      'indexOf',
      [stringParameter, stringParameter],
      int,
      INT,
      find(false),
      cost,
    ),
    ...memberWithOptional(
      'lastIndexOf',
      [stringParameter, stringParameter],
      int,
      INT,
      find(true),
      cost,
    ),
    ...memberWithOptional(
      'substring',
      [stringParameter, int],
      int,
      STRING,
      (text, start, end) => {
        const whole = points(text);
        if (end !== undefined && start > end)
          return new EvaluationError(`invalid substring range. start: ${start}, end: ${end}`);
        if (start < 0n || start > BigInt(whole.length)) return outOfRange(start);
        if (end !== undefined && (end < 0n || end > BigInt(whole.length))) return outOfRange(end);
        return slice(whole, Number(start), end === undefined ? undefined : Number(end));
      },
      { cost: costs.traverse(0), size: ([text]) => text ?? sizedAs(0) },
    ),
  ];
}

function cuts(): Overload[] {
  const twice = { cost: costs.traverse(0, 2) };
  const parts = {
    ...twice,
    size: ([text, , limit]: readonly Size[]) => ({
      ...sizedAs(limit?.value ?? text?.count ?? 0),
      min: 0,
    }),
  };
  const replaced = { ...twice, size: replacedSize };
  const joined = {
    cost: ([items, separator]: readonly Size[]) => Math.ceil(joinedSize(items, separator) * 0.1),
    size: ([items, separator]: readonly Size[]) => ({
      ...sizedAs(joinedSize(items, separator)),
      min: 0,
    }),
  };
  return [
    ...memberWithOptional('split', [stringParameter, stringParameter], int, TEXTS, split, parts),
    ...memberWithOptional(
      'replace',
      [stringParameter, stringParameter, stringParameter],
      int,
      STRING,
      replace,
      replaced,
    ),
    ...memberWithOptional('join', [texts], stringParameter, STRING, join, joined),
  ];
}

/** Size of a text in which parts are replaced: as many as possible, or as few. */
function replacedSize([text, part, by]: readonly Size[]): Size {
  const [whole, found, put] = [rangeOf(text), rangeOf(part), rangeOf(by)];
  let [most, least] = [whole.max, whole.min];
  if (found.min === 0) most += (whole.max + 1) * put.max;
  else if (put.max > found.min) most = Math.ceil(whole.max / found.min) * put.max;
  if (found.max === 0) least += (whole.min + 1) * put.min;
  else if (found.max > put.min) least = Math.ceil(whole.min / found.max) * put.min;
  return { ...sizedAs(most), min: least };
}

function rangeOf({ count, min = count }: Size = sizedAs(0)): { min: number; max: number } {
  return { min, max: count };
}

function joinedSize(items: Size | undefined, separator: Size | undefined): number {
  const count = items?.count ?? 0;
  const size = count * (items?.item ?? 0) + Math.max(0, count - 1) * (separator?.count ?? 0);
  return Math.min(2 ** 64, size);
}

function split(text: string, by: string, limit: bigint = -1n): List {
  const all = by === '' ? Array.from(text) : text.split(by);
  if (limit < 0n || BigInt(all.length) <= limit) return List.of(all);
  if (limit === 0n) return List.of([]);
  const count = Number(limit) - 1;
  return List.of([...all.slice(0, count), all.slice(count).join(by)]);
}

function replace(
  text: string,
  part: string,
  by: string,
  limit: bigint = -1n,
  meter: CostMeter,
): string {
  const parts = part === '' ? ['', ...Array.from(text), ''] : text.split(part);
  const count = limit < 0n ? parts.length - 1 : Math.min(Number(limit), parts.length - 1);
  // Charged before the result is created, because it may be much larger than the text.
  meter.spend((text.length + count * by.length) * 0.01);
  return (
    parts.slice(0, count + 1).join(by) +
    parts
      .slice(count + 1)
      .map((rest) => part + rest)
      .join('')
  );
}

function join(items: List, separator: string = '', meter: CostMeter): Result {
  const read: string[] = [];
  for (const item of items) {
    if (item instanceof EvaluationError) return item;
    if (typeof item !== 'string') return new EvaluationError('no such overload');
    meter.spend((item.length + separator.length) * 0.1);
    read.push(item);
  }
  return read.join(separator);
}

function expressions(): Overload[] {
  const regex = { cost: costs.regex };
  const partial = {
    ...regex,
    size: ([text]: readonly Size[]) => ({ ...sizedAs(text?.count ?? 0), min: 0 }),
  };
  const searched = [stringParameter, stringParameter] as const;
  const matches = (text: string, source: string, meter: CostMeter): Result => {
    const compiled = compile(text, source, meter);
    return compiled instanceof EvaluationError ? compiled : compiled.matches(text);
  };
  const find = (text: string, source: string, meter: CostMeter): Result => {
    const compiled = compile(text, source, meter);
    return compiled instanceof EvaluationError ? compiled : (compiled.findAll(text, 1)[0] ?? '');
  };
  const findAll = (text: string, source: string, limit: bigint = -1n, meter: CostMeter): Result => {
    const compiled = compile(text, source, meter);
    if (compiled instanceof EvaluationError) return compiled;
    return List.of(compiled.findAll(text, limit < 0n ? Infinity : Number(limit)));
  };
  return [
    member('matches', searched, BOOL, matches, regex),
    global('matches', searched, BOOL, matches, regex),
    member('find', searched, STRING, find, partial),
    ...memberWithOptional('findAll', searched, int, TEXTS, findAll, partial),
  ];
}

/** Length from which a text is charged for, because this engine is slower than upstream's. */
const LONG = 1000;

/** Cost of compiling a pattern that is not a literal, in total and for each character. */
const COMPILATION = 2000;
const COMPILATION_EACH = 5;

function compile(
  text: string,
  source: string,
  meter: CostMeter,
): Exclude<Pattern, { error: string }> | EvaluationError {
  if (!isCompiled(source)) meter.spend(COMPILATION + source.length * COMPILATION_EACH);
  if (text.length > LONG) meter.spend(costs.regex([sizedAs(text.length), sizedAs(source.length)]));
  const compiled = pattern(source);
  return 'error' in compiled ? new EvaluationError(compiled.error) : compiled;
}
