import { absolutePath } from './container-files.ts';
import type { ContainerFiles } from './container-files.ts';
import { COMPARISONS } from './shell-numbers.ts';
import { PARSING, Serve } from './shell-steps.ts';

/** Spends the work of an operation on a text of this length. Throws `OverBudget`. */
type Work = (characters: number) => void;

/** Returns the output of `echo`. */
export function echoOutput(args: readonly string[], work: Work): string {
  const [first] = args;
  if (first === '-n') return args.slice(1).join(' ');
  if (first === '-e') return `${unescape(args.slice(1).join(' '), work)}\n`;
  return `${args.join(' ')}\n`;
}

/** Returns the output of `printf`, with `%s`, `%d` and `%%`. The format is repeated while there are arguments. */
export function printfOutput([format = '', ...args]: readonly string[], work: Work): string {
  const pieces = unescape(format, work).split(/(%[sd%])/);
  const end = pieces.some((piece) => piece === '%s' || piece === '%d') ? args.length : 0;
  let text = '';
  let used = 0;
  do {
    for (const piece of pieces) {
      work(piece.length);
      if (piece === '%s' || piece === '%d') {
        const value = args[used++] ?? '';
        work(value.length);
        text += piece === '%s' ? value : String(Number.parseInt(value, 10) || 0);
      } else text += piece === '%%' ? '%' : piece;
    }
  } while (used < end);
  return text;
}

const ESCAPED: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\\': '\\' };

function unescape(text: string, work: Work): string {
  work(PARSING * text.length);
  return text.replace(/\\([ntr\\])/g, (_, name: string) => ESCAPED[name] ?? '');
}

/** The files that `test` can see, and the folder of relative paths. */
interface TestedFiles {
  readonly files: ContainerFiles;
  readonly folder: string;
}

/** Returns whether the expression of `test` is true. Throws `Serve` for other syntax. */
export function testExpression(args: readonly string[], tested: TestedFiles | undefined): boolean {
  let negations = 0;
  while (args[negations] === '!') negations++;
  return holds(args.slice(negations), tested) === (negations % 2 === 0);
}

function holds(args: readonly string[], tested: TestedFiles | undefined): boolean {
  const [a = '', operator = '', b = ''] = args;
  if (args.length <= 1) return a !== '';
  if (args.length === 2 && a === '-n') return operator !== '';
  if (args.length === 2 && a === '-z') return operator === '';
  if (args.length === 2 && /^-[def]$/.test(a) && tested) {
    const path = absolutePath(operator, tested.folder);
    const { files } = tested;
    return (a !== '-f' && files.isDirectory(path)) || (a !== '-d' && files.isFile(path));
  }
  const compare = COMPARISONS.get(operator);
  if (args.length !== 3 || !compare) throw new Serve();
  return compare(a, b);
}
