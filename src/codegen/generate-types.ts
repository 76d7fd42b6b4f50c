import { customShape } from '../api/field-shape.ts';
import { assertNever, isRecord } from '../util/values.ts';
import { wrapWords } from '../util/wrap-words.ts';
import type { ParsedResource } from './crd-parser.ts';
import type { LibraryType } from './declarations.ts';
import { declarationsOf } from './declarations.ts';
import { constantOf, wordsOf } from './kind-names.ts';
import type { Declaration, TypeField } from './type-node.ts';
import { printType, quote } from './type-node.ts';

/** Options of `generateTypes`. */
export interface GenerateTypesOptions {
  /** Source of the definition, for the first line: `crds/counts.demo.mark8s.io.yaml`. */
  readonly source: string;
  /** Command that generates the module, for the first line. */
  readonly command: string;
  /** The module of each imported type of the library. */
  readonly modules: Readonly<Record<LibraryType, string>>;
}

const WIDTH = 100;

const MARK = '// Generated from ';

/** Reports whether the text is a generated module or manifest, which may be overwritten. */
export function isGenerated(text: string): boolean {
  return text.startsWith(MARK) || text.startsWith(MARK.replace('//', '#'));
}

/**
 * Generates the TypeScript module of a custom resource: its interfaces, and the resource descriptor for
 * typed clients, informers and listers. The output is deterministic and formatted like prettier's.
 */
export function generateTypes(resource: ParsedResource, options: GenerateTypesOptions): string {
  const { all, root, imports } = declarationsOf(resource);
  return `${[
    `${MARK}${onOneLine(options.source)} by ${options.command}. Do not edit.`,
    printImports(imports, options.modules),
    ...all.map(printDeclaration),
    printDescriptor(resource, root),
  ].join('\n\n')}\n`;
}

/** Returns the file name of a module without extension: `web-app`, or `web-app-v1beta1` if it is not the main version. */
export function moduleNameOf({
  kind,
  version,
  isMain,
}: Pick<ParsedResource, 'kind' | 'version' | 'isMain'>): string {
  const name = wordsOf(kind).join('-').toLowerCase();
  return isMain ? name : `${name}-${version}`;
}

/** Replaces line breaks and control characters, so that a file name cannot end its comment. */
function onOneLine(text: string): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
}

function printImports(
  imports: ReadonlySet<LibraryType>,
  modules: GenerateTypesOptions['modules'],
): string {
  const byModule = Map.groupBy([...imports].toSorted(), (name) => modules[name]);
  return [...byModule]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([module, names]) => `import type { ${names.join(', ')} } from ${quote(module)};`)
    .join('\n');
}

function printDeclaration(declaration: Declaration): string {
  const head = printDoc(declaration.doc, '');
  switch (declaration.kind) {
    case 'alias': {
      const options = declaration.type.kind === 'union' ? declaration.type.of : [declaration.type];
      const start = `${head}export type ${declaration.name} =`;
      const line = `${options.map(printType).join(' | ')};`;
      if (start.length - head.length + 1 + line.length <= WIDTH) return `${start} ${line}`;
      if (2 + line.length <= WIDTH) return `${start}\n  ${line}`;
      return `${start}${options.map((option) => `\n  | ${printType(option)}`).join('')};`;
    }
    case 'interface': {
      const { name, fields, open } = declaration;
      const base = declaration.extends ? ` extends ${declaration.extends}` : '';
      const body = [...fields.map(printField), ...(open ? ['  [field: string]: unknown;\n'] : [])];
      return `${head}export interface ${name}${base} {\n${body.join('')}}`;
    }
    default:
      return assertNever(declaration);
  }
}

function printField({ name, type, optional, doc }: TypeField): string {
  return `${printDoc(doc, '  ')}  ${printName(name)}${optional ? '?' : ''}: ${printType(type)};\n`;
}

/** Returns the doc comment with wrapped lines and a final line break, or an empty string without lines. */
function printDoc(doc: readonly string[], indent: string): string {
  const width = WIDTH - indent.length - ' * '.length;
  // Prevents a description from ending the comment.
  const text = doc.flatMap((line) => wrapWords(line.replaceAll('*/', String.raw`*\/`), width));
  const [first = ''] = text;
  if (text.length === 0) return '';
  if (text.length === 1 && first.length <= width - ' */'.length - 1) {
    return `${indent}/** ${first} */\n`;
  }
  const body = text.map((line) => `${indent} * ${line}`.trimEnd()).join('\n');
  return `${indent}/**\n${body}\n${indent} */\n`;
}

/** Returns a JSON value as a literal on one line. */
function printLiteral(value: unknown): string {
  if (!isRecord(value)) return typeof value === 'string' ? quote(value) : JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${printName(name)}: ${printLiteral(member)}`,
  );
  return members.length > 0 ? `{ ${members.join(', ')} }` : '{}';
}

function printName(name: string): string {
  return /^[A-Za-z_$][A-Za-z0-9_$]*$/.test(name) ? name : quote(name);
}

function printDescriptor(resource: ParsedResource, root: string): string {
  const { group, version, plural, kind, namespaced, schema } = resource;
  const fields = customShape(schema);
  const constant = constantOf(resource.kind, resource.plural);
  return [
    `/** Resource descriptor for typed clients, informers and listers: \`informers.for(${constant})\`. */`,
    `export const ${constant}: Resource<${root}> = {`,
    `  group: ${quote(group)},`,
    `  version: ${quote(version)},`,
    `  plural: ${quote(plural)},`,
    `  kind: ${quote(kind)},`,
    `  namespaced: ${namespaced},`,
    ...(fields ? [`  fields: ${printLiteral(fields)},`] : []),
    '};',
  ].join('\n');
}
