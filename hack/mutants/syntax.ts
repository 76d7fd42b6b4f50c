/**
 * The syntax tree of a source file, and names of places that survive renames: the enclosing symbol, and a
 * fingerprint of the surrounding code without variable names.
 */
import { createHash } from 'node:crypto';
import type { ParserOptions } from 'prettier';
import { parsers } from 'prettier/plugins/babel';

export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** A node with its context. */
export interface Place {
  readonly node: SyntaxNode;
  /** From the file down to the parent of the node. */
  readonly ancestors: readonly SyntaxNode[];
  /** The field of the parent that contains the node. */
  readonly field: string;
}

export interface Fingerprint {
  readonly hash: string;
  /** The variables and private members around the node, by placeholder: `$0`, `$1`, `$p0`. */
  readonly names: ReadonlyMap<string, string>;
}

export class SourceFile {
  readonly text: string;
  /** Every executed node, in order of the text. */
  readonly places: readonly Place[];
  readonly #comments: readonly SyntaxNode[];

  /** @throws {SyntaxError} if the text is not TypeScript */
  constructor(text: string, path: string) {
    this.text = text;
    const root: unknown = parsers['babel-ts'].parse(text, { filepath: path } as ParserOptions);
    if (!isNode(root)) throw new Error(`The parser returned no syntax tree for ${path}`);
    this.#comments = nodesIn(root['comments']);
    const places: Place[] = [];
    collect(root, [], '', places);
    this.places = places;
  }

  textOf(node: SyntaxNode): string {
    const [start, end] = spanOf(node);
    return this.text.slice(start, end);
  }

  /**
   * Returns the hash of the enclosing statement or property, with the node marked. It ignores names of
   * variables, parameters, imports and private members, types, comments, white space and the bodies of blocks.
   * It includes public members, literals and operators.
   */
  fingerprint({ node, ancestors }: Place): Fingerprint {
    const anchor = [...ancestors, node].findLast(isAnchor) ?? node;
    const [from, to] = spanOf(anchor);
    const names = new Map<string, string>();
    const edits: Edit[] = [];
    const rename = (name: SyntaxNode, prefix: string) => {
      const old = this.textOf(name).replace(/[?!]?:[\s\S]*$|\?$/, '');
      const known = names.entries().find(([, value]) => value === old)?.[0];
      const placeholder =
        known ??
        prefix +
          String(
            names
              .keys()
              .filter((key) => isOf(key, prefix))
              .toArray().length,
          );
      names.set(placeholder, old);
      const [start] = spanOf(name);
      edits.push({ start, end: start + old.length, put: placeholder });
    };
    const walk = (current: SyntaxNode, parent: SyntaxNode | undefined, field: string) => {
      const [start, end] = spanOf(current);
      if (current === node) edits.push({ start, end: start, put: '«' });
      if (current.type === 'BlockStatement' && current !== anchor) {
        edits.push({ start, end, put: '{}' });
      } else if (isType(current)) {
        edits.push({ start, end, put: '' });
      } else if (current.type === 'PrivateName') {
        rename(current, '$p');
      } else if (current.type === 'Identifier') {
        if (!isPublicName(current, parent, field)) rename(current, '$');
        for (const [name, child] of childrenOf(current)) walk(child, current, name);
      } else {
        for (const [name, child] of childrenOf(current)) {
          // The shorthand `{ name }` is one text with two nodes.
          if (!(current['shorthand'] === true && name === 'value')) walk(child, current, name);
        }
      }
      if (current === node) edits.push({ start: end, end, put: '»' });
    };
    walk(anchor, undefined, '');
    for (const { start, end } of this.#comments) {
      if (start >= from && end <= to) edits.push({ start, end, put: '' });
    }
    const normal = applyEdits(this.text, edits, from, to)
      .replaceAll(/\s+/g, '')
      .replaceAll(/,(?=[)\]}])/g, '');
    return { hash: createHash('sha256').update(normal).digest('hex').slice(0, 8), names };
  }
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly put: string;
}

/** Returns a part of the text with edits applied; of overlapping edits, the outer one. */
function applyEdits(text: string, edits: readonly Edit[], from: number, to: number): string {
  let result = '';
  let at = from;
  for (const { start, end, put } of edits.toSorted((a, b) => a.start - b.start)) {
    if (start < at) continue;
    result += text.slice(at, start) + put;
    at = end;
  }
  return result + text.slice(at, to);
}

/** Returns the named declarations around a place, the outermost first: `WorkQueue.add`. */
export function symbolOf({ ancestors, node }: Place): string {
  const names = [...ancestors, node].flatMap((current) => {
    const name = NAMED[current.type];
    const id = name === undefined ? undefined : current[name];
    if (!isNode(id)) return [];
    if (id.type === 'PrivateName' && isNode(id['id'])) return [`#${String(id['id']['name'])}`];
    return id.type === 'Identifier' ? [String(id['name'])] : [];
  });
  return names.length > 0 ? names.join('.') : '(module)';
}

/** Declarations that name a symbol, with the field of their name. */
const NAMED: Readonly<Record<string, string>> = {
  ClassDeclaration: 'id',
  FunctionDeclaration: 'id',
  VariableDeclarator: 'id',
  ClassMethod: 'key',
  ClassPrivateMethod: 'key',
  ClassProperty: 'key',
  ClassPrivateProperty: 'key',
  ObjectMethod: 'key',
};

export function spanOf(node: SyntaxNode): readonly [number, number] {
  // Only this range is correct where prettier regroups a chain of && or ||.
  const range = node['range'];
  return Array.isArray(range) ? [Number(range[0]), Number(range[1])] : [node.start, node.end];
}

export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}

export function nodesIn(value: unknown): SyntaxNode[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

function collect(
  node: SyntaxNode,
  ancestors: readonly SyntaxNode[],
  field: string,
  into: Place[],
): void {
  if (isType(node) || node.type === 'ImportDeclaration') return;
  into.push({ node, ancestors, field });
  const path = [...ancestors, node];
  for (const [name, child] of childrenOf(node)) collect(child, path, name, into);
}

/** Returns the children of a node with their fields, in order of the text. */
function childrenOf(node: SyntaxNode): [field: string, child: SyntaxNode][] {
  return Object.entries(node)
    .filter(([field]) => !/comments$/i.test(field))
    .flatMap(([field, value]): [string, SyntaxNode][] =>
      (isNode(value) ? [value] : nodesIn(value)).map((child) => [field, child]),
    )
    .sort(([, a], [, b]) => a.start - b.start);
}

function isAnchor({ type }: SyntaxNode): boolean {
  return (
    /(Statement|Declaration|Property|SwitchCase|CatchClause)$/.test(type) &&
    type !== 'BlockStatement'
  );
}

/**
 * Returns whether a node is a type, which is not executed. Expressions with a type around them are executed.
 */
function isType({ type }: SyntaxNode): boolean {
  if (type.startsWith('TS')) return !/^TS(As|Satisfies|NonNull)/.test(type);
  return false;
}

/** Returns whether a name is visible to other files or in requests: that of a member or a property. */
function isPublicName(
  { name }: SyntaxNode,
  parent: SyntaxNode | undefined,
  field: string,
): boolean {
  if (name === 'undefined') return true;
  if (parent?.['computed'] === true) return false;
  return field === 'property' || field === 'key';
}

function isOf(placeholder: string, prefix: string): boolean {
  return placeholder.startsWith('$p') === (prefix === '$p');
}
