/**
 * JavaScript of a TypeScript module, with the lines and columns of its source: types and comments are blank, as
 * Node.js makes types when it runs the source. A stack trace of the package therefore needs no source map. The doc comments are in the types.
 */
import { stripTypeScriptTypes } from 'node:module';
import type { ParserOptions } from 'prettier';
import { parsers } from 'prettier/plugins/acorn';

interface Range {
  readonly start: number;
  readonly end: number;
}

/** @throws {SyntaxError} if the code needs more than type stripping */
export function stripSource(source: string): string {
  const code = stripTypeScriptTypes(source);
  const { comments, specifiers } = parse(code);
  const edits = [
    ...comments.map(({ start, end }) => ({
      start,
      end,
      put: code.slice(start, end).replaceAll(/[^\n]/g, ' '),
    })),
    ...specifiers.map(({ start, end }) => ({
      start,
      end,
      put: code.slice(start, end).replace(/^(['"]\.{1,2}\/.*)\.ts(['"])$/, '$1.js$2'),
    })),
  ].toSorted((a, b) => a.start - b.start);
  let stripped = '';
  let at = 0;
  for (const { start, end, put } of edits) {
    stripped += code.slice(at, start) + put;
    at = end;
  }
  stripped += code.slice(at);
  const lines = source.split('\n');
  return stripped
    .split('\n')
    .map((line, index) => {
      // White space at the end of a line of the source is part of a template.
      const isBlanked = lines[index]?.trimEnd() === lines[index];
      return isBlanked ? line.trimEnd() : line;
    })
    .join('\n');
}

/** Returns the comments of a module, and the literals that name the modules it imports. */
function parse(code: string): { comments: readonly Range[]; specifiers: readonly Range[] } {
  // The first line of a program is not a comment.
  const hashbang = /^#!.*/.exec(code)?.[0].length ?? 0;
  const text = ' '.repeat(hashbang) + code.slice(hashbang);
  const root: unknown = parsers.acorn.parse(text, { filepath: 'module.mjs' } as ParserOptions);
  const specifiers: Range[] = [];
  const collect = (value: unknown) => {
    if (Array.isArray(value)) for (const item of value) collect(item);
    if (!isNode(value)) return;
    if (IMPORTING.has(value.type) && isNode(value['source'])) specifiers.push(value['source']);
    for (const [field, child] of Object.entries(value)) if (field !== 'comments') collect(child);
  };
  collect(root);
  const comments: unknown = isNode(root) ? root['comments'] : undefined;
  return { comments: Array.isArray(comments) ? comments.filter(isNode) : [], specifiers };
}

const IMPORTING: ReadonlySet<string> = new Set([
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'ImportExpression',
]);

interface SyntaxNode extends Range {
  readonly type: string;
  readonly [field: string]: unknown;
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}
