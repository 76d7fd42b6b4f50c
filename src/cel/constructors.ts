import { CelSyntaxError } from './expression.ts';

/** A source with constructors (`Object{a: 1}`) and optional entries and items (`{?a: b}`, `[?a]`) in a form that the parser accepts. */
export interface Rewritten {
  /** `Object({"a": 1})`, `{!-a: b}`, `[!-a]` */
  readonly text: string;
  /** Offsets of the maps in `text` that are the fields of a constructor. */
  readonly fields: ReadonlySet<number>;
  /** Returns the offset in the source for an offset in `text`. */
  readonly placeOf: (at: number) => number;
}

const TOKENS = new RegExp(
  [
    String.raw`\/\/[^\n]*`,
    String.raw`[bB]?[rR](?:'''[^]*?'''|"""[^]*?"""|'[^']*'|"[^"]*")`,
    String.raw`[bB]?(?:'''(?:\\[^]|[^\\])*?'''|"""(?:\\[^]|[^\\])*?"""|'(?:\\[^]|[^'\\])*'|"(?:\\[^]|[^"\\])*")`,
    String.raw`[A-Za-z_]\w*`,
    String.raw`\s+`,
    '[^]',
  ].join('|'),
  'g',
);

/** Texts in which a constructor, an optional item, a name of the root or a raw string can be. */
const REWRITTEN = /\{|[[,]\s*\?|(?:^|[^\w\s)\]}'"])\s*\.|[rR]["']|\f/;

/**
 * Rewrites constructors, optional entries and items. Each becomes a text that is never valid in another meaning. Also
 * removes the dot of names of the root (`.a`) and the prefix of raw strings, and completes `.5`.
 *
 * @throws {CelSyntaxError} if a constructor has a field without name
 */
export function withConstructors(source: string): Rewritten {
  if (!REWRITTEN.test(source)) return { text: source, fields: new Set(), placeOf: (at) => at };
  const fields = new Set<number>();
  const inserted: number[] = [];
  /** Enclosing brackets: `#` for a constructor, `@` for a list and not an index. */
  const open: string[] = [];
  let text = '';
  let previous = '';
  const insert = (added: string) => {
    for (let index = 0; index < added.length; index++) inserted.push(text.length + index);
    text += added;
  };
  for (const { 0: token, index } of source.matchAll(TOKENS)) {
    const inside = open.at(-1);
    const isSpace = /^(?:\s|\/\/)/.test(token);
    const starts = ['{', ',', '?'].includes(previous) || (inside === '@' && previous === '[');
    if (inside === '#' && starts && !isSpace) {
      const isField = isName(token) && isKey(source, index + token.length);
      const isEnd = token === '}' && previous !== '?';
      if (!isField && !isEnd && (token !== '?' || previous === '?')) {
        throw new CelSyntaxError(index, `Syntax error: mismatched input '${token}'`);
      }
    }
    const isOfRoot = token === '.' && previous !== '.' && !isOperand(previous);
    if (isOfRoot && /\d/.test(source.charAt(index + 1))) {
      insert('0');
      text += token;
    } else if (isOfRoot && /^\.\s*[A-Za-z_]\w*(?!["'\w])/.test(source.slice(index, index + 100))) {
      text += ' ';
    } else if (/^[bB]?[rR]["']/.test(token)) {
      const [prefix = ''] = /^\w+/.exec(token) ?? [];
      text += prefix.replaceAll(/[rR]/g, '').padStart(prefix.length);
      for (const part of token.slice(prefix.length).split(/(\\)/)) {
        if (part === '\\') insert(part);
        text += part;
      }
    } else if (token === '{') {
      const constructs = isName(previous) && previous !== 'in';
      if (constructs) {
        insert('(');
        fields.add(text.length);
      }
      open.push(constructs ? '#' : token);
      text += token;
    } else if (token === '}' && open.pop() === '#') {
      text += token;
      insert(')');
    } else if (token === '?' && ['#', '@', '{'].includes(inside ?? '') && starts) {
      insert('!');
      text += '-';
    } else if (isSpace) {
      text += token.replaceAll('\f', ' ');
    } else if (inside === '#' && starts) {
      // Quoted, because reserved words are valid names of fields.
      insert('"');
      text += token;
      insert('"');
    } else {
      if (token === '[') open.push(isOperand(previous) ? token : '@');
      else if (token === '(') open.push(token);
      else if (token === ')' || token === ']') open.pop();
      text += token;
    }
    if (!isSpace) previous = token;
  }
  return { text, fields, placeOf: (at) => at - inserted.filter((each) => each < at).length };
}

/** Whether an index can follow the token. */
function isOperand(token: string): boolean {
  return (isName(token) && token !== 'in') || /[)\]}\d'"]$/.test(token);
}

function isName(token: string): boolean {
  return /^[A-Za-z_]\w*$/.test(token);
}

function isKey(source: string, from: number): boolean {
  return /\s*:/y.test(source.slice(from, from + 100));
}
