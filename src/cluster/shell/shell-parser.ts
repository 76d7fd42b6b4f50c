/** Part of a word: text, or an expansion, which is split into words unless it is quoted. */
export type WordPart =
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'variable';
      readonly name: string;
      /** Value of `${NAME:-value}`. */
      readonly fallback: Word | undefined;
      readonly quoted: boolean;
    }
  | { readonly kind: 'arithmetic'; readonly expression: string }
  | { readonly kind: 'command'; readonly script: Script; readonly quoted: boolean };

export type Word = readonly WordPart[];

export type ShellCommand =
  | {
      readonly kind: 'simple';
      readonly assignments: readonly { readonly name: string; readonly value: Word }[];
      readonly words: readonly Word[];
      /** Last redirection of the output. */
      readonly output: { readonly target: Word; readonly append: boolean } | undefined;
    }
  | { readonly kind: 'group'; readonly body: Script; readonly isSubshell: boolean }
  | { readonly kind: 'not'; readonly command: ShellCommand }
  | {
      readonly kind: 'for';
      readonly variable: string;
      readonly words: readonly Word[];
      readonly body: Script;
    }
  | {
      readonly kind: 'while';
      readonly condition: Script;
      /** Whether it is `until`: the loop runs while the condition fails. */
      readonly isUntil: boolean;
      readonly body: Script;
    }
  | {
      readonly kind: 'if';
      readonly branches: readonly { readonly condition: Script; readonly body: Script }[];
      readonly otherwise: Script | undefined;
    };

/** Commands of a script. A command after `&&` or `||` depends on the status of the one before. */
export type Script = readonly {
  readonly operator: ';' | '&&' | '||';
  readonly command: ShellCommand;
}[];

/** Maximum length of a script; a longer one is not interpreted. */
const MAX_LENGTH = 16_384;

/** Maximum depth of nested commands. */
const MAX_DEPTH = 50;

/**
 * Parses the part of the shell language that the simulated kubelet interprets: simple commands,
 * assignments, quotes, `$NAME`, `${NAME:-value}`, `$((…))`, `$(…)`, `;`, `&&`, `||`, `!`, `( )`, `{ }`, `if`, `for`,
 * `while` and `until`. Of redirections, only those to a file.
 *
 * @returns undefined if the script has other syntax, such as pipes, functions and here-documents
 */
export function parseScript(text: string): Script | undefined {
  const parsed = parseLines(text);
  return typeof parsed === 'string' ? undefined : parsed;
}

/** Like `parseScript`, for a script that arrives in lines. It is incomplete if more lines can make it valid. */
export function parseLines(text: string): Script | 'incomplete' | 'unsupported' {
  if (text.length > MAX_LENGTH) return 'unsupported';
  const parser = new Parser(text);
  try {
    const script = parser.script([]);
    parser.expectEnd();
    return script;
  } catch (error) {
    if (error instanceof Unsupported) return parser.isAtEnd ? 'incomplete' : 'unsupported';
    throw error;
  }
}

class Unsupported extends Error {}

const STDERR: Word = [{ kind: 'text', text: '/dev/stderr' }];

const NAME = /[A-Za-z_]\w*/y;
const KEYWORDS: ReadonlySet<string> = new Set([
  'if',
  'then',
  'elif',
  'else',
  'fi',
  'for',
  'in',
  'while',
  'until',
  'do',
  'done',
  'case',
  'esac',
  'function',
  'select',
]);

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Whether all of the text was read. */
  get isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  expectEnd(): void {
    if (!this.isAtEnd) throw new Unsupported();
  }

  /** Parses commands until a keyword of `ends`, `)` or the end. */
  script(ends: readonly string[]): Script {
    if (++this.#depth > MAX_DEPTH) throw new Unsupported();
    const commands: Script[number][] = [];
    let operator: ';' | '&&' | '||' = ';';
    for (;;) {
      this.#skipSeparators();
      if (this.#isAtEnd(ends)) {
        if (operator !== ';') throw new Unsupported();
        break;
      }
      commands.push({ operator, command: this.#command() });
      this.#skipBlanks();
      if (this.#take('&&')) operator = '&&';
      else if (this.#take('||')) operator = '||';
      else if (/[;\n]/.test(this.#peek())) operator = ';';
      else if (this.#isAtEnd(ends)) break;
      else throw new Unsupported();
    }
    this.#depth--;
    return commands;
  }

  #command(): ShellCommand {
    if (this.#takeKeyword('!')) {
      if (++this.#depth > MAX_DEPTH) throw new Unsupported();
      const command = this.#command();
      this.#depth--;
      return { kind: 'not', command };
    }
    if (this.#take('(')) return this.#group(')');
    if (this.#takeKeyword('{')) return this.#group('}');
    const keyword = this.#peekKeyword();
    if (keyword === undefined) return this.#simple();
    this.#at += keyword.length;
    switch (keyword) {
      case 'if':
        return this.#if();
      case 'for':
        return this.#for();
      case 'while':
      case 'until': {
        const condition = this.script(['do']);
        return { kind: 'while', condition, isUntil: keyword === 'until', body: this.#doBody() };
      }
      default:
        throw new Unsupported();
    }
  }

  #group(end: string): ShellCommand {
    const body = this.script([end]);
    if (!this.#take(end)) throw new Unsupported();
    this.#refuseRedirection();
    return { kind: 'group', body, isSubshell: end === ')' };
  }

  #if(): ShellCommand {
    const branches: { condition: Script; body: Script }[] = [];
    let otherwise: Script | undefined;
    do {
      const condition = this.script(['then']);
      this.#expectKeyword('then');
      branches.push({ condition, body: this.script(['elif', 'else', 'fi']) });
    } while (this.#takeKeyword('elif'));
    if (this.#takeKeyword('else')) otherwise = this.script(['fi']);
    this.#expectKeyword('fi');
    this.#refuseRedirection();
    return { kind: 'if', branches, otherwise };
  }

  #for(): ShellCommand {
    this.#skipBlanks();
    const variable = this.#match(NAME);
    if (variable === undefined) throw new Unsupported();
    this.#skipBlanks();
    const words: Word[] = [];
    this.#expectKeyword('in');
    for (this.#skipBlanks(); !/^[;\n]?$/.test(this.#peek()); this.#skipBlanks()) {
      words.push(this.#word());
    }
    return { kind: 'for', variable, words, body: this.#doBody() };
  }

  #doBody(): Script {
    this.#skipSeparators();
    this.#expectKeyword('do');
    const body = this.script(['done']);
    this.#expectKeyword('done');
    this.#refuseRedirection();
    return body;
  }

  #simple(): ShellCommand {
    const assignments: { name: string; value: Word }[] = [];
    const words: Word[] = [];
    let output: { target: Word; append: boolean } | undefined;
    for (this.#skipBlanks(); !this.#isAtCommandEnd(); this.#skipBlanks()) {
      const redirection = this.#match(/\d?>{1,2}(?!&)|\d?>&\d|&>/y);
      if (redirection !== undefined) {
        if (/^1?>&2$/.test(redirection)) output = { target: STDERR, append: true };
        if (redirection.includes('>&')) continue;
        this.#skipBlanks();
        const target = this.#word();
        if (!redirection.startsWith('2')) output = { target, append: redirection.endsWith('>>') };
        continue;
      }
      const assigned = words.length === 0 ? this.#match(/[A-Za-z_]\w*=/y) : undefined;
      if (assigned === undefined) words.push(this.#word());
      else assignments.push({ name: assigned.slice(0, -1), value: this.#word(true) });
    }
    if (words.length + assignments.length === 0) throw new Unsupported();
    return { kind: 'simple', assignments, words, output };
  }

  /** @param mayBeEmpty as the value of an assignment */
  #word(mayBeEmpty = false): Word {
    const parts: WordPart[] = [];
    const start = this.#at;
    while (this.#at < this.#text.length && !/[\s;&|()<>]/.test(this.#peek())) {
      const char = this.#peek();
      if (char === '`' || char === '*' || char === '?') throw new Unsupported();
      this.#at++;
      if (char === "'") {
        const end = this.#text.indexOf("'", this.#at);
        if (end < 0) {
          this.#at = this.#text.length;
          throw new Unsupported();
        }
        addText(parts, this.#text.slice(this.#at, end));
        this.#at = end + 1;
      } else if (char === '"') this.#doubleQuoted(parts);
      else if (char === '\\') {
        const next = this.#text[this.#at++] ?? '';
        if (next !== '\n') addText(parts, next);
      } else if (char === '$') parts.push(this.#expansion(false));
      else addText(parts, char);
    }
    if (this.#at === start && !mayBeEmpty) throw new Unsupported();
    return parts;
  }

  #doubleQuoted(parts: WordPart[]): void {
    addText(parts, '');
    for (;;) {
      const char = this.#text[this.#at++];
      if (char === undefined || char === '`') throw new Unsupported();
      if (char === '"') return;
      if (char === '$') parts.push(this.#expansion(true));
      else if (char === '\\' && /[$`"\\\n]/.test(this.#peek())) {
        const next = this.#text[this.#at++] ?? '';
        if (next !== '\n') addText(parts, next);
      } else addText(parts, char);
    }
  }

  /** Parses what follows `$`. */
  #expansion(quoted: boolean): WordPart {
    if (this.#take('((')) {
      const end = this.#text.indexOf('))', this.#at);
      if (end < 0) throw new Unsupported();
      const expression = this.#text.slice(this.#at, end);
      this.#at = end + 2;
      return { kind: 'arithmetic', expression };
    }
    if (this.#take('(')) {
      const script = this.script([')']);
      if (!this.#take(')')) throw new Unsupported();
      return { kind: 'command', script, quoted };
    }
    const isBraced = this.#take('{');
    const name = this.#match(/[A-Za-z_]\w*|[?#@*$]|\d/y);
    if (name === undefined) {
      if (isBraced) throw new Unsupported();
      return { kind: 'text', text: '$' };
    }
    let fallback: Word | undefined;
    if (isBraced && (this.#take(':-') || this.#take('-'))) {
      const end = this.#text.indexOf('}', this.#at);
      const text = this.#text.slice(this.#at, end);
      if (end < 0 || /[$`'"\\]/.test(text)) throw new Unsupported();
      fallback = [{ kind: 'text', text }];
      this.#at = end;
    }
    if (isBraced && !this.#take('}')) throw new Unsupported();
    return { kind: 'variable', name, fallback, quoted };
  }

  #isAtCommandEnd(): boolean {
    const char = this.#peek();
    if (char === '' || char === ';' || char === '\n' || char === ')') return true;
    if (char === '|') {
      if (this.#text[this.#at + 1] === '|') return true;
      throw new Unsupported();
    }
    if (char !== '&' || this.#text[this.#at + 1] === '>') return false;
    if (this.#text[this.#at + 1] === '&') return true;
    throw new Unsupported();
  }

  #isAtEnd(ends: readonly string[]): boolean {
    if (this.#at >= this.#text.length || this.#peek() === ')') return true;
    return ends.some((end) => (end === '}' ? this.#peek() === '}' : this.#peekKeyword() === end));
  }

  #refuseRedirection(): void {
    this.#skipBlanks();
    if (/[<>]/.test(this.#peek())) throw new Unsupported();
  }

  #peekKeyword(): string | undefined {
    const word = /[a-z]+(?=[\s;()]|$)/y;
    word.lastIndex = this.#at;
    const [found] = word.exec(this.#text) ?? [];
    return found !== undefined && KEYWORDS.has(found) ? found : undefined;
  }

  #takeKeyword(word: string): boolean {
    const next = this.#text[this.#at + word.length] ?? ' ';
    return /[\s;()]/.test(next) && this.#take(word);
  }

  #expectKeyword(word: string): void {
    this.#skipBlanks();
    if (!this.#takeKeyword(word)) throw new Unsupported();
  }

  #skipBlanks(): void {
    this.#match(/(?:[ \t]|\\\n)+/y);
    if (this.#peek() === '#' && /[\s;]|^$/.test(this.#text[this.#at - 1] ?? '')) {
      this.#match(/#[^\n]*/y);
    }
  }

  #skipSeparators(): void {
    for (;;) {
      const before = this.#at;
      this.#skipBlanks();
      this.#match(/[;\n\s]+/y);
      if (this.#at === before) return;
    }
  }

  #peek(): string {
    return this.#text[this.#at] ?? '';
  }

  #take(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [];
    if (found !== undefined) this.#at += found.length;
    return found;
  }
}

/** Adds a text to the end of a word. */
function addText(parts: WordPart[], text: string): void {
  const last = parts.at(-1);
  if (last?.kind === 'text') parts[parts.length - 1] = { kind: 'text', text: last.text + text };
  else parts.push({ kind: 'text', text });
}
