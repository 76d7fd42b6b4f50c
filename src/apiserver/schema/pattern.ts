import { RE2JS } from 're2js';
import { Memo } from '../../util/memo.ts';
import { messageOf } from '../../util/values.ts';

/** A pattern as Kubernetes reads it: RE2, whose matching time is linear in the text. */
export type Pattern =
  | {
      readonly matches: (text: string) => boolean;
      /** The first `limit` texts that it finds, from left to right. */
      readonly findAll: (text: string, limit: number) => string[];
    }
  | { readonly fault: string };

/** Patterns come from schemas, of which a server has few: what does not fit is compiled again. */
const compiled = new Memo(1000, compile);

/** Compiles `source`, or says why it cannot. */
export function pattern(source: string): Pattern {
  return compiled.get(source);
}

/** Whether `pattern` has `source` at hand: compiling takes much longer than matching. */
export function isCompiled(source: string): boolean {
  return compiled.has(source);
}

function compile(source: string): Pattern {
  try {
    const expression = RE2JS.compile(source);
    return {
      matches: (text) => expression.matcher(text).find(),
      findAll: (text, limit) => {
        const found: string[] = [];
        const matcher = expression.matcher(text);
        while (found.length < limit && matcher.find()) found.push(matcher.group() ?? '');
        return found;
      },
    };
  } catch (error) {
    return { fault: messageOf(error) };
  }
}
