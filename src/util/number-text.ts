import { CopyOnWrite, mapItems } from './json-value.ts';
import { isRecord } from './values.ts';

const { rawJSON } = JSON as typeof JSON & { rawJSON: (this: void, text: string) => object };

/** A number that Go does not decode to an integer because of its text, such as `1.0`, `1e2` and `1e400`. */
export class NumberText extends Number {
  readonly text: string;

  constructor(text: string) {
    super(text);
    this.text = text;
  }

  toJSON(): object {
    return rawJSON(this.text);
  }
}

/** Returns a JSON value with numbers for the texts of numbers in it. */
export function withoutNumberTexts(value: unknown): unknown {
  if (value instanceof NumberText) return Number(value);
  if (Array.isArray(value)) return mapItems(value, withoutNumberTexts);
  if (!isRecord(value)) return value;
  const draft = new CopyOnWrite(value);
  for (const key of Object.keys(value)) draft.set(key, withoutNumberTexts(value[key]));
  return draft.value;
}

/** A number with a fraction or an exponent, where JSON has a value. */
const CANDIDATE = /(?:^|[:[,])\s*-?\d+(?:\.\d+(?:e[+-]?\d+)?|e[+-]?\d+)\s*(?:$|[,\]}])|\d{19}/i;

type Reviver = (
  key: string,
  value: unknown,
  context?: { readonly source?: string | undefined },
) => unknown;

const withTexts: Reviver = (_key, value, context) => {
  const source = context?.source;
  if (typeof value !== 'number' || source === undefined) return value;
  return isInt64(source, value) ? value : new NumberText(source);
};

function isInt64(text: string, value: number): boolean {
  if (/[.e]/i.test(text)) return false;
  return Number.isSafeInteger(value) || BigInt.asIntN(64, BigInt(text)) === BigInt(text);
}

/** Parses JSON, and keeps the texts of numbers that are not integers to Go. */
export function parseWithNumberTexts(text: string): unknown {
  return CANDIDATE.test(text) ? JSON.parse(text, withTexts) : JSON.parse(text);
}
