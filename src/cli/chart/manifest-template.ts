import { isCollection, isMap, isScalar, isSeq, parseDocument, Scalar, YAMLSeq } from 'yaml';
import type { Document, YAMLMap } from 'yaml';
import { FORMAT as MANIFEST_FORMAT } from '../program/installation.ts';

/** Location of a node in a document: keys of mappings and indexes of sequences. */
type Path = readonly (string | number)[];

/** Returns the lines that replace the line of a mark, given its indentation and its key with the colon. */
type Lines = (indent: string, key: string) => readonly string[];

/** Format of the templates. */
const FORMAT = { ...MANIFEST_FORMAT, lineWidth: 100 };

/** A text that no manifest contains. It is written as a plain scalar. */
const MARK = /__chart_(\d+)__/;
const MARKS = new RegExp(MARK, 'g');

/**
 * A manifest that becomes a template of Helm. The manifest keeps its comments and its order. Expressions are those of Helm:
 * `.Values.replicas`.
 */
export class ManifestTemplate {
  readonly #document: Document;
  readonly #marks: (string | Lines)[] = [];

  constructor(manifest: string) {
    this.#document = parseDocument(manifest);
    const [error] = this.#document.errors;
    if (error) throw error;
  }

  get(path: Path): unknown {
    const node = this.#document.getIn(path);
    return isCollection(node) ? node.toJS(this.#document) : node;
  }

  /** Returns the text or the number at a path, or an empty text. */
  textAt(path: Path): string {
    const value = this.#document.getIn(path);
    return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  }

  has(path: Path): boolean {
    return this.#document.hasIn(path);
  }

  /** Sets the value at a path. */
  set(path: Path, value: unknown): void {
    this.#document.setIn(path, this.#document.createNode(value));
  }

  /** Replaces the value at a path by a text with expressions: `{{ .Values.replicas }}`. */
  setText(path: Path, text: string): void {
    this.#set(path, this.#mark(text));
  }

  /** Replaces the object or list at a path by the value of an expression. */
  setValue(path: Path, expression: string): void {
    this.#set(
      path,
      this.#mark((indent, key) => [
        `${indent}${key}`,
        `${indent}  {{- toYaml ${expression} | nindent ${indent.length + 2} }}`,
      ]),
    );
  }

  /** Replaces the value at a path by the text of a file of the chart. */
  setFile(path: Path, file: string): void {
    this.#set(
      path,
      this.#mark((indent, key) => [
        `${indent}${key} |`,
        `${indent}  {{- .Files.Get ${JSON.stringify(file)} | nindent ${indent.length + 2} }}`,
      ]),
    );
  }

  /** Adds a field to the object at a path, if the value of an expression is not empty. The field has that value. */
  addOptional(path: Path, name: string, expression: string): void {
    this.setValue([...path, name], '.');
    this.#surround([...path, name], `with ${expression}`);
  }

  /** Adds the entries of an expression to the annotations in the metadata at a path. */
  addAnnotations(metadata: Path, expression: string): void {
    const path = [...metadata, 'annotations'];
    if (this.has(path)) this.addEntries(path, expression);
    else this.addOptional(metadata, 'annotations', expression);
  }

  /** Adds a field with a single value, if the value of an expression is not empty. */
  addOptionalText(path: Path, name: string, expression: string): void {
    this.setText([...path, name], '{{ . }}');
    this.#surround([...path, name], `with ${expression}`);
  }

  /** Adds the entries of an expression to the object or list at a path, if there are some. */
  addEntries(path: Path, expression: string): void {
    const mark = this.#mark((indent) => [
      `${indent}{{- with ${expression} }}`,
      `${indent}{{- toYaml . | nindent ${indent.length} }}`,
      `${indent}{{- end }}`,
    ]);
    const collection = this.#collection(path);
    if (isSeq(collection)) collection.items.push(new Scalar(mark));
    else collection.set(mark, '');
  }

  /** Returns a value for `addItem` that becomes a text with expressions. */
  text(text: string): string {
    return this.#mark(text);
  }

  /** Adds an item to the list at a path, if a condition holds. */
  addItem(path: Path, item: unknown, condition: string): void {
    if (!this.has(path)) this.set(path, []);
    const { items } = this.#collection(path) as YAMLSeq;
    items.push(this.#document.createNode(item));
    this.only([...path, items.length - 1], condition);
  }

  /** Adds a text with expressions to the list at a path, if a condition holds. */
  addText(path: Path, text: string, condition: string): void {
    this.addItem(path, this.#mark(text), condition);
  }

  /** Leaves out the field or item at a path unless a condition holds. */
  only(path: Path, condition: string): void {
    this.#surround(path, `if ${condition}`);
  }

  /** Returns the paths of all scalars with a value. */
  pathsOf(value: string): Path[] {
    const found: Path[] = [];
    const search = (node: unknown, path: Path) => {
      if (isScalar(node) && node.value === value) found.push(path);
      if (isSeq(node))
        for (const [index, item] of node.items.entries()) search(item, [...path, index]);
      if (isMap(node))
        for (const pair of node.items) search(pair.value, [...path, String(pair.key)]);
    };
    search(this.#document.contents, []);
    return found;
  }

  toString(): string {
    // What looks like an expression in the manifest is text.
    const text = this.#document.toString(FORMAT).replaceAll('{{', '{{ "{{" }}');
    return text
      .split('\n')
      .flatMap((line) => {
        const mark = this.#replacement(line);
        if (typeof mark !== 'function')
          return [line.replaceAll(MARKS, (found) => String(this.#replacement(found)))];
        const [, indent = '', key = ''] = /^( *)(?:- )?(.*?:)? ?__chart_/.exec(line) ?? [];
        return mark(indent, key);
      })
      .join('\n');
  }

  #replacement(text: string): string | Lines | undefined {
    const [, index] = MARK.exec(text) ?? [];
    return index === undefined ? undefined : this.#marks[Number(index)];
  }

  #mark(replacement: string | Lines): string {
    this.#marks.push(replacement);
    return `__chart_${this.#marks.length - 1}__`;
  }

  #set(path: Path, mark: string): void {
    const node = this.#document.getIn(path, true);
    if (isScalar(node)) {
      node.value = mark;
      node.type = Scalar.PLAIN;
    } else {
      this.#document.setIn(path, new Scalar(mark));
    }
    this.#collection(path.slice(0, -1));
  }

  #surround(path: Path, control: string): void {
    const parent = this.#collection(path.slice(0, -1));
    const key = path.at(-1);
    const open = this.#mark((indent) => [`${indent}{{- ${control} }}`]);
    const close = this.#mark((indent) => [`${indent}{{- end }}`]);
    if (isSeq(parent)) {
      parent.items.splice(Number(key) + 1, 0, new Scalar(close));
      parent.items.splice(Number(key), 0, new Scalar(open));
    } else {
      const index = parent.items.findIndex((pair) => String(pair.key) === key);
      parent.items.splice(index + 1, 0, this.#document.createPair(close, ''));
      parent.items.splice(index, 0, this.#document.createPair(open, ''));
    }
  }

  /** Returns the collection at a path. It and those around it get the layout with a line for each entry. */
  #collection(path: Path): YAMLMap | YAMLSeq {
    for (let length = 0; length <= path.length; length++) {
      const node =
        length === 0 ? this.#document.contents : this.#document.getIn(path.slice(0, length), true);
      if (!isCollection(node)) throw new TypeError(`${path.join('.')} is not an object or list`);
      node.flow = false;
    }
    const found = path.length === 0 ? this.#document.contents : this.#document.getIn(path, true);
    return found as YAMLMap | YAMLSeq;
  }
}
