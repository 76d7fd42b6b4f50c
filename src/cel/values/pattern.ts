import { RE2JS } from 're2js';
import { Memo } from '../../util/memo.ts';
import { messageOf } from '../../util/values.ts';

/** A compiled RE2 pattern, as in Kubernetes. Matching takes time linear in the text. */
export type Pattern =
  | {
      readonly matches: (text: string) => boolean;
      /** Returns the first `limit` matches, from left to right. */
      readonly findAll: (text: string, limit: number) => string[];
    }
  | { readonly error: string };

/** Bounded cache. A server has few schemas; evicted patterns are compiled again. */
const compiled = new Memo(1000, compile);

/** Compiles `source`, or returns the reason why it is invalid. */
export function pattern(source: string): Pattern {
  return compiled.get(source);
}

/** Whether `source` is in the cache. Compiling takes much longer than matching. */
export function isCompiled(source: string): boolean {
  return compiled.has(source);
}

function compile(source: string): Pattern {
  try {
    const expression = RE2JS.compile(source);
    return {
      matches: (text) => expression.test(text),
      findAll: (text, limit) => {
        const found: string[] = [];
        const matcher = expression.matcher(text);
        while (found.length < limit && matcher.find()) found.push(matcher.group() ?? '');
        return found;
      },
    };
  } catch (error) {
    return { error: messageOf(error) };
  }
}
