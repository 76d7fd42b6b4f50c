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
    String.raw`(?:[rR][bB]?|[bB][rR])(?:'''[^]*?'''|"""[^]*?"""|'[^']*'|"[^"]*")`,
    String.raw`[bB]?(?:'''(?:\\[^]|[^\\])*?'''|"""(?:\\[^]|[^\\])*?"""|'(?:\\[^]|[^'\\])*'|"(?:\\[^]|[^"\\])*")`,
    String.raw`[A-Za-z_]\w*`,
    String.raw`\s+`,
    '[^]',
  ].join('|'),
  'g',
);

/** Rewrites constructors, optional entries and items. Each becomes a text that is never valid in another meaning. */
export function withConstructors(source: string): Rewritten {
  if (!/\{|[[,]\s*\?/.test(source)) return { text: source, fields: new Set(), placeOf: (at) => at };
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
    const starts = ['{', ',', '?'].includes(previous) || (inside === '@' && previous === '[');
    if (token === '{') {
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
    } else if (inside === '#' && starts && isName(token) && isKey(source, index + token.length)) {
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
    if (!/^(?:\s|\/\/)/.test(token)) previous = token;
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
