/** Names that a module imports from another one: `B`, or `A as B`. */
export interface NamedImport {
  readonly from: string;
  readonly names: readonly string[];
}

/** Width of the lines of a project, which prettier keeps. */
const PRINT_WIDTH = 100;

/**
 * Returns a module with further imports: in the statement that imports from the same module, or after the last import. Names
 * that it imports already are not added.
 */
export function withImports(text: string, imports: readonly NamedImport[]): string {
  let changed = text;
  for (const { from, names } of imports) {
    const statements = importsOf(changed);
    const missing = names.filter((name) => !statements.some(([each]) => isImportOf(each, name)));
    if (missing.length === 0) continue;
    const same = statements.find(
      ([each]) => each.startsWith('import {') && sourceOf(each) === from,
    );
    const [, own = ''] = /\{([^}]*)\}/.exec(same?.[0] ?? '') ?? [];
    const all = [...own.split(','), ...missing].map((name) => name.trim()).filter(Boolean);
    const at = same?.index ?? endOfImports(changed);
    const end = at + (same?.[0].length ?? 0);
    const added = importText(all, from);
    const line = same ? added : at > 0 ? `\n${added}` : `${added}\n`;
    changed = `${changed.slice(0, at)}${line}${changed.slice(end)}`;
  }
  return changed;
}

/** Returns an import as prettier formats it. */
export function importText(names: readonly string[], from: string): string {
  const line = `import { ${names.join(', ')} } from '${from}';`;
  if (line.length <= PRINT_WIDTH || names.length === 1) return line;
  return `import {\n${names.map((name) => `  ${name},\n`).join('')}} from '${from}';`;
}

/**
 * Returns a module with calls of methods of an expression, before those that it has, as prettier formats them.
 *
 * @param calls `.method(…)`, as they are after an expression in a line of its own
 * @throws {RangeError} if the module does not have the expression
 */
export function withCalls(
  text: string,
  path: string,
  expression: string,
  calls: readonly string[],
): string {
  const index = text.indexOf(expression);
  if (index < 0)
    throw new RangeError(`${path} has no "${expression}": add ${calls.join('')} by hand`);
  const at = index + expression.length;
  const rest = text.slice(at);
  // A single call is in the line of the expression. A template literal in it would change by another indentation.
  const [own = ''] = /^\.[^`]*?\n\}?\]?\)(?=;)|^\.[^`\n]*(?=;)/.exec(rest) ?? [];
  const chain = [...calls, ...(own ? [own] : [])];
  const isAlone = chain.length === 1 && rest.startsWith(';');
  const added = isAlone ? chain.join('') : chain.map((call) => `\n${indented(call)}`).join('');
  return `${text.slice(0, at)}${added}${rest.slice(own.length)}`;
}

/** Returns the place after the last import of a module. */
export function endOfImports(text: string): number {
  const last = importsOf(text).at(-1);
  return last ? last.index + last[0].length : 0;
}

function importsOf(text: string): RegExpExecArray[] {
  return [...text.matchAll(/^import\b[^;]*;/gm)];
}

function indented(text: string): string {
  return text.replaceAll(/^(?=.)/gm, '  ');
}

function sourceOf(statement: string): string | undefined {
  return /from '([^']*)'|from "([^"]*)"/.exec(statement)?.slice(1).find(Boolean);
}

/** Whether a statement imports the name: `B` of `A as B`. */
function isImportOf(statement: string, name: string): boolean {
  const local = name.split(' as ').at(-1) ?? name;
  const [, names = ''] = /\{([^}]*)\}/.exec(statement) ?? [];
  return names.split(',').some((each) => {
    const [own] = each
      .trim()
      .replace(/^type /, '')
      .split(' as ')
      .slice(-1);
    return own === local;
  });
}
