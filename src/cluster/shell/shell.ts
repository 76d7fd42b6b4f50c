import { absolutePath, FileError } from './container-files.ts';
import type { ContainerFiles } from './container-files.ts';
import { runDate } from './date.ts';
import { echoOutput, printfOutput, testExpression } from './shell-builtins.ts';
import { durationMs, evaluate, sequence } from './shell-numbers.ts';
import { parseLines, parseScript } from './shell-parser.ts';
import type { ShellCommand, Script, Word, WordPart } from './shell-parser.ts';
import { Exit, LoopControl, PARSING, Serve } from './shell-steps.ts';
import type { ShellSession, ShellStep, Steps } from './shell-steps.ts';
import { OverBudget, WorkBudget } from './work-budget.ts';

const TERMINATION_LOG = '/dev/termination-log';

/** Time of one pass of a loop, so that a loop without `sleep` does not run without end in one instant. */
const PASS_MS = 1;

/** Maximum number of words of an expansion, and length of a variable. */
const MAX_WORDS = 10_000;
const MAX_VALUE = 65_536;

/** Maximum depth of commands in commands, and of an arithmetic expression. */
const MAX_DEPTH = 100;

/** Longer sleeps have no end, so that dates can be computed. */
const MAX_SLEEP_MS = 100 * 365 * 86_400_000;

/** Number of operations for an exception. */
const THROWN = 30;

/** Units of the budget for each line of the log. */
const LINE = 60;

/**
 * Interprets a command without running it. `sh -c SCRIPT` and the commands `echo`, `printf`, `sleep`,
 * `exit`, `true`, `false`, `:`, `test`, `[`, `seq`, `expr`, `export`, `set` and `date` are known. Any other command, and a
 * script with other syntax, runs until the container is stopped, as a server does. In a session it fails instead.
 *
 * @param startedMs returns the start of the container, in milliseconds since the epoch
 * @throws {OverBudget}
 */
export function* interpret(
  argv: readonly string[],
  environment: ReadonlyMap<string, string>,
  budget: WorkBudget = new WorkBudget(),
  startedMs: () => number = () => 0,
  session?: ShellSession,
): Generator<ShellStep, void, undefined> {
  budget.spend(0, environment.size);
  const shell = new Shell(new Map(environment), budget, startedMs, session);
  try {
    const status = yield* shell.call(argv);
    yield { kind: 'exit', code: status };
  } catch (signal) {
    if (signal instanceof Exit) yield { kind: 'exit', code: signal.code };
    else if (!(signal instanceof Serve)) throw signal;
    else if (session) {
      yield {
        kind: 'error',
        text: `sh: the simulated shell does not support this: ${signal.message}\n`,
      };
      yield { kind: 'exit', code: 2 };
    } else yield { kind: 'serve' };
  }
}

class Shell {
  #variables: Map<string, string>;
  readonly #budget: WorkBudget;
  readonly #startedMs: () => number;
  readonly #session: ShellSession | undefined;
  #folder = '/';
  #positional: readonly string[] = [];
  #status = 0;
  #elapsedMs = 0;
  /** Depth of scripts in scripts. */
  #depth = 0;
  /** `set -e`. */
  #exitsOnError = false;
  /** Depth of conditions, in which a failure is not an error. */
  #conditions = 0;

  constructor(
    variables: Map<string, string>,
    budget: WorkBudget,
    startedMs: () => number,
    session: ShellSession | undefined,
  ) {
    this.#variables = variables;
    this.#budget = budget;
    this.#startedMs = startedMs;
    this.#session = session;
  }

  /** Spends the work of an operation. Each step passes all scripts around it. */
  readonly #work = (characters: number): void => {
    this.#budget.spend(characters, 1 + this.#depth / 10);
  };

  get #nowMs(): number {
    return this.#startedMs() + this.#elapsedMs;
  }

  get #files(): { readonly files: ContainerFiles; readonly folder: string } | undefined {
    return this.#session && { files: this.#session.files, folder: this.#folder };
  }

  /** Runs a command with its arguments. */
  *call(argv: readonly string[]): Steps {
    this.#work(argv.length);
    const path = argv[0] ?? '';
    const args = argv.slice(1);
    const name = path.split('/').at(-1) ?? '';
    switch (name) {
      case ':':
      case 'true':
      case 'export':
      case 'unset':
        return name === 'export' ? this.#export(args) : 0;
      case 'false':
        return 1;
      case 'echo':
        yield this.#output(echoOutput(args, this.#work));
        return 0;
      case 'printf':
        yield this.#output(printfOutput(args, this.#work));
        return 0;
      case 'date':
        return yield* this.#date(args);
      case 'seq':
        yield this.#output(this.#sequence(args));
        return 0;
      case 'expr':
        yield this.#output(`${this.#evaluate(args.join(' '))}\n`);
        return 0;
      case 'sleep': {
        const ms = args.reduce((sum, text) => sum + durationMs(text), 0);
        if (args.length === 0 || !(this.#elapsedMs + ms < MAX_SLEEP_MS)) throw new Serve();
        if (ms > 0) yield this.#sleep(ms);
        return 0;
      }
      case 'exit':
        this.#budget.spend(0, THROWN);
        throw new Exit(args[0] === undefined ? this.#status : Number.parseInt(args[0], 10) || 0);
      case 'break':
      case 'continue':
        this.#budget.spend(0, THROWN);
        throw new LoopControl(name);
      case 'set':
        if (args.some((arg) => /^-\w*e/.test(arg))) this.#exitsOnError = true;
        return 0;
      case 'test':
        return testExpression(args, this.#files) ? 0 : 1;
      case '[':
        return testExpression(args.slice(0, -1), this.#files) ? 0 : 1;
      case 'exec':
        throw new Exit(yield* this.#nested(this.call(args)));
      case 'sh':
      case 'bash':
      case 'ash':
      case 'dash':
        return yield* this.#isolated(this.#shell(args));
      default:
        return yield* this.#other(name, args);
    }
  }

  *#date(args: readonly string[]): Steps {
    this.#work(args.join(' ').length);
    const result = runDate(args, this.#nowMs);
    if ('error' in result) {
      yield { kind: 'error', text: result.error };
      return 1;
    }
    yield this.#output(result.output);
    return 0;
  }

  /** Runs a command of the session. */
  *#other(name: string, args: readonly string[]): Steps {
    const session = this.#session;
    if (!session) throw new Serve(name);
    const steps = session.run(name, args, {
      variables: this.#variables,
      folder: this.#folder,
      nowMs: this.#nowMs,
      work: this.#work,
      changeFolder: (path) => {
        this.#folder = path;
      },
    });
    if (steps) return yield* steps;
    const text = `${name}: not found in the simulated container, which has ${session.commands}\n`;
    yield { kind: 'error', text };
    return 127;
  }

  /** Runs the commands that are typed, until the input ends. */
  *#interactive({ input, hasTerminal }: ShellSession): Steps {
    for (let text = ''; ;) {
      if (hasTerminal) yield this.#output(text === '' ? `${this.#folder} # ` : '> ');
      let line = input.takeLine();
      for (; line === undefined && !input.isEnded; line = input.takeLine()) {
        yield { kind: 'read', isPrompt: true };
      }
      if (line === undefined && text === '') return this.#status;
      text += `${line ?? ''}\n`;
      this.#work(PARSING * text.length);
      const parsed = parseLines(text);
      if (parsed === 'incomplete' && line !== undefined) continue;
      if (typeof parsed === 'string') {
        yield { kind: 'error', text: 'sh: the simulated shell does not support this syntax\n' };
        this.#status = 2;
      } else yield* this.#run(parsed);
      text = '';
    }
  }

  *#shell(args: readonly string[]): Steps {
    const flags = args.findIndex((arg) => !arg.startsWith('-'));
    const options = args.slice(0, flags < 0 ? args.length : flags);
    const script = args[flags];
    if (options.some((flag) => /^-\w*e/.test(flag))) this.#exitsOnError = true;
    if (script === undefined && this.#session) return yield* this.#interactive(this.#session);
    if (script === undefined || !options.some((flag) => /^-\w*c$/.test(flag))) throw new Serve();
    this.#work(PARSING * script.length);
    const parsed = parseScript(script);
    if (!parsed) throw new Serve();
    this.#positional = args.slice(flags + 1);
    return yield* this.#run(parsed);
  }

  #run(script: Script): Steps {
    return this.#nested(this.#runAll(script));
  }

  /** @throws {OverBudget} if there are too many commands in commands */
  *#nested(steps: Steps): Steps {
    if (++this.#depth > MAX_DEPTH) throw new OverBudget();
    try {
      return yield* steps;
    } finally {
      this.#depth--;
    }
  }

  #output(text: string): ShellStep {
    this.#work(text.length + LINE * (text.split('\n').length - 1));
    return { kind: 'output', text };
  }

  *#runAll(script: Script): Steps {
    for (const [index, { operator, command }] of script.entries()) {
      if (operator === '&&' && this.#status !== 0) continue;
      if (operator === '||' && this.#status === 0) continue;
      this.#status = yield* this.#execute(command);
      const next = script[index + 1];
      const isTested = next !== undefined && next.operator !== ';';
      if (this.#status !== 0 && this.#exitsOnError && this.#conditions === 0 && !isTested) {
        if (command.kind !== 'not') throw new Exit(this.#status);
      }
    }
    return script.length === 0 ? 0 : this.#status;
  }

  *#execute(command: ShellCommand): Steps {
    switch (command.kind) {
      case 'simple':
        return yield* this.#simple(command);
      case 'group':
        return yield* command.isSubshell
          ? this.#isolated(this.#run(command.body))
          : this.#run(command.body);
      case 'not':
        return (yield* this.#condition([{ operator: ';', command: command.command }])) === 0
          ? 1
          : 0;
      case 'if':
        for (const { condition, body } of command.branches) {
          if ((yield* this.#condition(condition)) === 0) return yield* this.#run(body);
        }
        return command.otherwise ? yield* this.#run(command.otherwise) : 0;
      case 'for':
        return yield* this.#loop(yield* this.#expand(command.words), command);
      case 'while':
        return yield* this.#loop(undefined, command);
    }
  }

  /** Runs steps as a process of their own: `exit` ends only it, and the caller keeps its variables. */
  *#isolated(steps: Steps): Steps {
    this.#budget.spend(0, this.#variables.size);
    const variables = new Map(this.#variables);
    const positional = this.#positional;
    const exitsOnError = this.#exitsOnError;
    try {
      return yield* steps;
    } catch (exit) {
      if (!(exit instanceof Exit)) throw exit;
      return exit.code;
    } finally {
      this.#variables = variables;
      this.#positional = positional;
      this.#exitsOnError = exitsOnError;
    }
  }

  *#condition(script: Script): Steps {
    this.#conditions++;
    try {
      return yield* this.#run(script);
    } finally {
      this.#conditions--;
    }
  }

  *#loop(
    values: readonly string[] | undefined,
    command: Extract<ShellCommand, { kind: 'for' | 'while' }>,
  ): Steps {
    let status = 0;
    const passes = values?.length ?? Infinity;
    for (let pass = 0; pass < passes; pass++) {
      this.#work(0);
      if (command.kind === 'for') this.#assign(command.variable, values?.[pass] ?? '');
      else if (((yield* this.#condition(command.condition)) !== 0) !== command.isUntil) break;
      try {
        status = yield* this.#run(command.body);
      } catch (control) {
        if (!(control instanceof LoopControl)) throw control;
        if (control.kind === 'break') break;
      }
      yield this.#sleep(PASS_MS);
    }
    return status;
  }

  *#simple({ assignments, words, output }: Extract<ShellCommand, { kind: 'simple' }>): Steps {
    const argv = yield* this.#expand(words);
    for (const { name, value } of assignments) this.#assign(name, yield* this.#join(value));
    if (argv.length === 0) return 0;
    if (!output) return yield* this.call(argv);
    const target = yield* this.#join(output.target);
    const files = target.startsWith('/dev/') ? undefined : this.#session?.files;
    const file = absolutePath(target, this.#folder);
    const steps = this.call(argv);
    try {
      if (!output.append) files?.write(file, new Uint8Array());
      for (;;) {
        const { done, value } = steps.next();
        if (done) return value;
        if (value.kind === 'data') files?.write(file, value.bytes, true);
        else if (value.kind !== 'output') yield value;
        else if (files) files.write(file, new TextEncoder().encode(value.text), true);
        else if (target === TERMINATION_LOG) yield { kind: 'message', text: value.text };
        else if (target === '/dev/stdout') yield value;
        else if (target === '/dev/stderr') yield { kind: 'error', text: value.text };
      }
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      yield { kind: 'error', text: `sh: can't create ${target}: ${error.message}\n` };
      return 1;
    }
  }

  /** Expands words; an expansion that is not quoted can become none or several. */
  *#expand(words: readonly Word[]): Generator<ShellStep, string[], undefined> {
    const expanded: string[] = [];
    for (const word of words) {
      const [first] = word;
      if (word.length === 1 && first?.kind === 'text') {
        this.#budget.spend(first.text.length);
        expanded.push(first.text);
        continue;
      }
      let current: string | undefined;
      for (const part of word) {
        const text = yield* this.#partOf(part);
        this.#work(text.length);
        const isSplit = (part.kind === 'variable' || part.kind === 'command') && !part.quoted;
        const pieces = isSplit ? text.split(/\s+/) : [text];
        this.#budget.spend(0, pieces.length);
        if (isSplit && text.trim() === '') continue;
        for (const [index, piece] of pieces.entries()) {
          if (index > 0) {
            if (current) expanded.push(current);
            current = undefined;
          }
          if (piece !== '' || !isSplit) current = (current ?? '') + piece;
        }
      }
      if (current !== undefined) expanded.push(current);
      if (expanded.length > MAX_WORDS) throw new Serve();
    }
    return expanded;
  }

  *#join(word: Word): Generator<ShellStep, string, undefined> {
    let text = '';
    for (const part of word) {
      const value = yield* this.#partOf(part);
      this.#work(value.length);
      text += value;
    }
    return text;
  }

  *#partOf(part: WordPart): Generator<ShellStep, string, undefined> {
    switch (part.kind) {
      case 'text':
        return part.text;
      case 'arithmetic':
        return String(this.#evaluate(part.expression));
      case 'variable': {
        const value = this.#valueOf(part.name);
        return value === '' && part.fallback ? yield* this.#join(part.fallback) : value;
      }
      case 'command':
        return yield* this.#capture(part.script);
    }
  }

  /** Returns the output of a command substitution. */
  *#capture(script: Script): Generator<ShellStep, string, undefined> {
    const steps = this.#isolated(this.#run(script));
    for (let output = ''; ;) {
      const { done, value } = steps.next();
      if (done) return withoutEnd(output);
      if (value.kind === 'output') output += value.text;
      else if (value.kind === 'data') output += new TextDecoder().decode(value.bytes);
      else yield value;
      if (output.length > MAX_VALUE) throw new Serve();
    }
  }

  #valueOf(name: string): string {
    if (name === '?') return String(this.#status);
    if (name === '$') return '1';
    if (name === '#') return String(Math.max(0, this.#positional.length - 1));
    if (name === '@' || name === '*') {
      this.#work(this.#positional.length);
      return this.#positional.slice(1).join(' ');
    }
    if (/^\d$/.test(name)) return this.#positional[Number(name)] ?? '';
    return this.#variables.get(name) ?? '';
  }

  #assign(name: string, value: string): void {
    if (value.length > MAX_VALUE) throw new Serve();
    this.#variables.set(name, value);
  }

  #export(args: readonly string[]): number {
    for (const arg of args) {
      const end = arg.indexOf('=');
      if (end >= 0) this.#assign(arg.slice(0, end), arg.slice(end + 1));
    }
    return 0;
  }

  /** Evaluates integers, variables, `+ - * / %`, comparisons and parentheses. */
  #evaluate(expression: string): number {
    this.#work(PARSING * expression.length);
    const value = evaluate(expression, (name) => this.#valueOf(name));
    if (value === undefined) throw new Serve();
    return value;
  }

  #sequence(args: readonly string[]): string {
    const numbers = sequence(args, MAX_WORDS);
    if (!numbers) throw new Serve();
    return numbers.map((number) => `${number}\n`).join('');
  }

  #sleep(ms: number): ShellStep {
    this.#elapsedMs += ms;
    return { kind: 'sleep', ms };
  }
}

/** Returns a text without its last newlines. */
function withoutEnd(text: string): string {
  let end = text.length;
  while (text[end - 1] === '\n') end--;
  return text.slice(0, end);
}
