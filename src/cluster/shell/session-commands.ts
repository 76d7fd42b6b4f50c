import { absolutePath, FileError } from './container-files.ts';
import type { ShellSession, ShellState, Steps } from './shell-steps.ts';
import { TAR_END, TarReader, tarEntry } from './tar.ts';

/** Streams and files of the session in which a command runs. */
type SessionIo = Pick<ShellSession, 'input' | 'files'>;

interface CommandContext extends SessionIo, ShellState {
  readonly name: string;
  readonly args: readonly string[];
  /** Returns the absolute path of an argument. */
  readonly at: (path: string) => string;
}

type Command = (context: CommandContext) => Steps;

/** Commands that only sessions have, besides those of the shell. */
const COMMANDS: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['cat', cat],
  ['cd', changeFolder],
  ['env', environment],
  ['printenv', environment],
  ['hostname', ({ variables }) => print(variables.get('HOSTNAME') ?? '')],
  ['id', () => print('uid=0(root) gid=0(root) groups=0(root)')],
  ['whoami', () => print('root')],
  ['pwd', ({ folder }) => print(folder)],
  ['ls', list],
  ['mkdir', (context) => onFiles(context, ({ files }, path) => files.makeDirectory(path))],
  ['touch', (context) => onFiles(context, ({ files }, path) => files.write(path, NOTHING, true))],
  ['rm', remove],
  ['tar', tar],
]);

const NOTHING = new Uint8Array();

const SHELL_COMMANDS = ['[', 'date', 'echo', 'expr', 'printf', 'seq', 'sh', 'sleep', 'test'];

export const SESSION_COMMANDS: string = [...SHELL_COMMANDS, ...COMMANDS.keys()]
  .toSorted()
  .join(' ');

/** Runs a command of a session. Returns undefined if there is no such command. */
export function runCommand(
  name: string,
  args: readonly string[],
  io: SessionIo,
  state: ShellState,
): Steps | undefined {
  const command = COMMANDS.get(name);
  const at = (path: string) => absolutePath(path, state.folder);
  return command?.({ ...io, ...state, name, args, at });
}

function* print(line: string): Steps {
  yield { kind: 'output', text: `${line}\n` };
  return 0;
}

/** Reads the input until it ends. */
function* all({
  input,
  work,
}: CommandContext): Generator<
  { readonly kind: 'read' } | { readonly kind: 'data'; readonly bytes: Uint8Array },
  void,
  undefined
> {
  for (;;) {
    const bytes = input.take();
    work(bytes.length);
    if (bytes.length > 0) yield { kind: 'data', bytes };
    else if (input.isEnded) return;
    else yield { kind: 'read' };
  }
}

function* cat(context: CommandContext): Steps {
  const { args, files, work, at } = context;
  let status = 0;
  for (const path of args.length === 0 ? ['-'] : args) {
    if (path === '-') {
      yield* all(context);
      continue;
    }
    try {
      const bytes = files.read(at(path));
      work(bytes.length);
      yield { kind: 'data', bytes };
    } catch (error) {
      yield failure(context, path, error);
      status = 1;
    }
  }
  return status;
}

function* changeFolder(context: CommandContext): Steps {
  const { args, files, at, changeFolder } = context;
  const folder = at(args[0] ?? '/root');
  if (files.isDirectory(folder)) {
    changeFolder(folder);
    return 0;
  }
  yield failure(context, args[0] ?? '', new FileError('No such file or directory'));
  return 2;
}

function* environment({ args, variables, work }: CommandContext): Steps {
  const [wanted] = args;
  for (const [name, value] of variables) {
    work(name.length + value.length);
    if (wanted === undefined) yield { kind: 'output', text: `${name}=${value}\n` };
    else if (wanted === name) yield { kind: 'output', text: `${value}\n` };
  }
  return wanted === undefined || variables.has(wanted) ? 0 : 1;
}

function* list(context: CommandContext): Steps {
  const { args, files, work, folder, at } = context;
  const paths = args.filter((arg) => !arg.startsWith('-'));
  let status = 0;
  for (const path of paths.length === 0 ? [folder] : paths) {
    const full = at(path);
    if (files.isFile(full)) yield { kind: 'output', text: `${path}\n` };
    else if (files.isDirectory(full)) {
      const prefix = full === '/' ? '/' : `${full}/`;
      const known = files.paths();
      work(known.length * 10);
      const below = known.filter((each) => each.startsWith(prefix) && each !== prefix);
      const names = new Set(below.map((each) => each.slice(prefix.length).split('/')[0]));
      yield { kind: 'output', text: [...names].map((name) => `${name}\n`).join('') };
    } else {
      yield failure(context, path, new FileError('No such file or directory'));
      status = 1;
    }
  }
  return status;
}

function* remove(context: CommandContext): Steps {
  const { args, files, at, work } = context;
  let status = 0;
  const isForced = args.some((arg) => /^-\w*f/.test(arg));
  for (const path of args.filter((arg) => !arg.startsWith('-'))) {
    work(files.paths().length * 10);
    if (files.remove(at(path)) || isForced) continue;
    yield failure(context, path, new FileError('No such file or directory'));
    status = 1;
  }
  return status;
}

/** Calls `change` for each path. */
function* onFiles(
  context: CommandContext,
  change: (context: CommandContext, path: string) => void,
): Steps {
  let status = 0;
  for (const path of context.args.filter((arg) => !arg.startsWith('-'))) {
    context.work(100);
    try {
      change(context, context.at(path));
    } catch (error) {
      yield failure(context, path, error);
      status = 1;
    }
  }
  return status;
}

/** `tar cf - PATH…` and `tar xf -`, which `kubectl cp` uses, with `-C FOLDER`. */
function* tar(context: CommandContext): Steps {
  const { args, files, at } = context;
  const words = args.filter((arg) => !arg.startsWith('--'));
  const change = words.indexOf('-C');
  const folder = change < 0 ? context.folder : at(words[change + 1] ?? '');
  const [mode = '', ...rest] = change < 0 ? words : words.toSpliced(change, 2);
  const paths = rest.filter((word) => word !== '-' && !word.startsWith('-'));
  if (!/^-?[cvxmpfo]+$/.test(mode) || !rest.includes('-')) {
    yield {
      kind: 'error',
      text: 'tar: only c and x with f - are simulated, without compression\n',
    };
    return 2;
  }
  if (!files.isDirectory(folder)) {
    yield { kind: 'error', text: `tar: ${folder}: Cannot open: No such file or directory\n` };
    return 2;
  }
  return mode.includes('x')
    ? yield* extract(context, folder)
    : yield* archive(context, folder, paths);
}

function* archive(context: CommandContext, folder: string, paths: readonly string[]): Steps {
  const { files, work, nowMs } = context;
  let status = 0;
  if (paths.some((path) => path.startsWith('/'))) {
    yield { kind: 'error', text: "tar: Removing leading `/' from member names\n" };
  }
  for (const path of paths) {
    const full = absolutePath(path, folder);
    const found = files.paths().filter((each) => each === full || each.startsWith(`${full}/`));
    work(10 * files.paths().length);
    if (!files.isFile(full) && !files.isDirectory(full)) {
      const text = `tar: ${path}: Cannot stat: No such file or directory\n`;
      yield { kind: 'error', text };
      status = 2;
    }
    const name = path.replace(/^\/+/, '').replace(/\/+$/, '');
    for (const each of found) {
      const bytes = files.isFile(each) ? files.read(each) : undefined;
      work(bytes?.length ?? 0);
      const entry = { path: name + each.slice(full.length), bytes };
      yield { kind: 'data', bytes: tarEntry(entry, nowMs) };
    }
  }
  yield { kind: 'data', bytes: TAR_END };
  return status;
}

function* extract(context: CommandContext, folder: string): Steps {
  const { files } = context;
  const reader = new TarReader();
  let status = 0;
  for (const step of all(context)) {
    if (step.kind === 'read') {
      yield step;
      continue;
    }
    try {
      for (const { path, bytes } of reader.read(step.bytes)) {
        const target = absolutePath(path.replace(/^\/+/, ''), folder);
        if (!bytes) files.makeDirectory(target);
        else {
          files.makeDirectory(target.slice(0, target.lastIndexOf('/')));
          files.write(target, bytes);
        }
      }
    } catch (error) {
      yield failure(context, '-', error);
      return 2;
    }
    if (reader.isComplete) return status;
  }
  if (!reader.isComplete) {
    yield { kind: 'error', text: 'tar: Unexpected EOF in archive\n' };
    status = 2;
  }
  return status;
}

function failure(
  { name }: CommandContext,
  path: string,
  error: unknown,
): { readonly kind: 'error'; readonly text: string } {
  if (!(error instanceof FileError)) throw error;
  return { kind: 'error', text: `${name}: ${path}: ${error.message}\n` };
}
