import { parseDocuments } from './manifest-yaml.ts';
import type { ManifestDocument } from './manifest-yaml.ts';
import { isRecord } from '../../util/values.ts';
import { MAX_DEPTH } from '../json.ts';

/** What a file says an object should be: the fields its author has an opinion about. */
export interface ManifestObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>> & {
    readonly name: string;
    readonly namespace?: string;
  };
  readonly [field: string]: unknown;
}

/** Where in which file something stands. */
export interface ManifestPlace {
  /** Path or URL, or `standard input`. */
  readonly source: string;
  /** From 1, in the order of the file. */
  readonly document: number;
  /** From 1. */
  readonly line: number;
  /** From 1; only where a single character is meant. */
  readonly column?: number;
  /** Of a list: `items[2]`. */
  readonly item?: string;
}

/** An object of a manifest, and its place. */
export interface Manifest {
  readonly place: ManifestPlace;
  readonly object: ManifestObject;
}

/** An error in a manifest, and its place. */
export interface ManifestProblem {
  /** Absent: the source as a whole could not be read. */
  readonly place?: ManifestPlace;
  /** Never quotes a value: it may be a Secret's. */
  readonly message: string;
}

/** Manifests that cannot be read. The message names every problem, one a line. */
export class ManifestError extends Error {
  override readonly name = 'ManifestError';
  readonly problems: readonly ManifestProblem[];

  constructor(problems: readonly ManifestProblem[]) {
    super(problems.map(describeProblem).join('\n'));
    this.problems = problems;
  }
}

/** A text, and what messages call it. */
export interface ManifestText {
  readonly source: string;
  readonly text: string;
}

/** As deep as lists of lists are looked into: what kubectl prints is one level. */
const MAX_LIST_DEPTH = 4;

/**
 * The objects in a text of YAML or JSON, in its order: any number of documents, and the items of
 * lists. YAML is read as kubectl reads it, 1.1 (`0644` is octal, `yes` is true), save that keys
 * are always strings.
 *
 * @throws {ManifestError} naming all that is wrong: nothing of a text that is half right is used
 */
export function parseManifests(texts: readonly ManifestText[]): Manifest[] {
  const problems: ManifestProblem[] = [];
  const manifests = texts.flatMap((text) =>
    parseDocuments(text.text).flatMap((document) => {
      const found = manifestsIn(text.source, document);
      for (const problem of found.problems) problems.push(problem);
      return found.manifests;
    }),
  );
  if (problems.length > 0) throw new ManifestError(problems);
  return manifests;
}

/** `web.yaml: document 2, line 14, items[0]` */
export function describePlace({ source, document, line, column, item }: ManifestPlace): string {
  const exactly = column === undefined ? '' : `, column ${column}`;
  return `${source}: document ${document}, line ${line}${exactly}${item ? `, ${item}` : ''}`;
}

export function describeProblem({ place, message }: ManifestProblem): string {
  return place ? `${describePlace(place)}: ${message}` : message;
}

interface Findings {
  readonly manifests: readonly Manifest[];
  readonly problems: readonly ManifestProblem[];
}

function manifestsIn(source: string, document: ManifestDocument): Findings {
  const place = { source, document: document.number, line: document.line };
  if (document.kind === 'malformed') {
    const { line, column, message } = document;
    return { manifests: [], problems: [{ place: { ...place, line, column }, message }] };
  }
  const manifests: Manifest[] = [];
  const problems: ManifestProblem[] = [];
  for (const { value, path } of itemsOf(document.value)) {
    const at: ManifestPlace =
      path.length === 0
        ? place
        : { ...place, line: document.lineAt(path) ?? place.line, item: itemName(path) };
    try {
      manifests.push({ place: at, object: manifestObject(value) });
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      problems.push({ place: at, message: error.message });
    }
  }
  return { manifests, problems };
}

interface Item {
  readonly value: unknown;
  /** From the document to the item; empty for the document itself. */
  readonly path: readonly (string | number)[];
}

/** The value itself, or the items of a list. */
function itemsOf(value: unknown, path: Item['path'] = []): Item[] {
  if (!isRecord(value) || !isList(value) || path.length >= 2 * MAX_LIST_DEPTH) {
    return [{ value, path }];
  }
  return value.items.flatMap((item, index) => itemsOf(item, [...path, 'items', index]));
}

function isList(
  value: Record<string, unknown>,
): value is Record<string, unknown> & { items: readonly unknown[] } {
  const { kind, items } = value;
  return typeof kind === 'string' && kind.endsWith('List') && Array.isArray(items);
}

function itemName(path: Item['path']): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
    .join('')
    .slice(1);
}

/** @throws {ValueError} saying which field is wrong */
function manifestObject(value: unknown): ManifestObject {
  if (!isRecord(value)) {
    throw new ValueError(`expected an object with apiVersion and kind, found ${typeName(value)}`);
  }
  const apiVersion = requireText(value, 'apiVersion', 'as in apps/v1');
  const kind = requireText(value, 'kind', 'as in Deployment');
  const metadata = value['metadata'];
  if (!isRecord(metadata)) {
    throw new ValueError(`metadata: ${kind} needs a mapping with a name, ${found(metadata)}`);
  }
  const { name, namespace, generateName } = metadata;
  if ((name === undefined || name === null) && typeof generateName === 'string') {
    throw new ValueError(
      `metadata.name: ${kind} has a generateName, which apply cannot use: it would make another object each time`,
    );
  }
  if (typeof name !== 'string' || !isSegment(name)) {
    throw new ValueError(`metadata.name: ${kind} needs the name of one object, ${found(name)}`);
  }
  if (namespace !== undefined && namespace !== null && typeof namespace !== 'string') {
    throw new ValueError(`metadata.namespace: expected a name, ${found(namespace)}`);
  }
  if (typeof namespace === 'string' && namespace !== '' && !isSegment(namespace)) {
    throw new ValueError('metadata.namespace: expected a name, which has neither "/" nor "%"');
  }
  const { namespace: _, ...rest } = metadata;
  const placed = typeof namespace === 'string' && namespace !== '' ? { namespace } : {};
  const plain = plainJson({ ...value, metadata: { ...rest, ...placed } });
  return {
    ...plain,
    apiVersion,
    kind,
    metadata: { ...asRecord(plain['metadata']), name, ...placed },
  };
}

function asRecord(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}

/** One that can stand in a path. */
function isSegment(name: string): boolean {
  return /^(?!\.\.?$)[^/%]{1,253}$/.test(name);
}

function requireText(value: Record<string, unknown>, field: string, example: string): string {
  const text = value[field];
  if (typeof text === 'string' && text !== '') return text;
  throw new ValueError(`${field}: expected a text, ${example}, ${found(text)}`);
}

function found(value: unknown): string {
  return value === undefined ? 'and there is none' : `found ${typeName(value)}`;
}

/** Without the value itself. */
function typeName(value: unknown): string {
  if (value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (value === '') return 'an empty text';
  switch (typeof value) {
    case 'object':
      return 'a mapping';
    case 'string':
      return 'another text';
    case 'boolean':
      return 'a truth value; quote it';
    default:
      return 'a number; quote it';
  }
}

/** A value that is no JSON, or too much of it. The message names the field and not the value. */
class ValueError extends Error {
  override readonly name = 'ValueError';
}

/** What an API server takes in one request. */
const MAX_CHARACTERS = 3 * 1024 * 1024;

/**
 * A copy of a parsed document that is a tree, as JSON has it: what YAML's aliases shared is there
 * several times, so its size and depth are bounded here, where anchors cannot hide them. Integers
 * (they come as bigint) become numbers, or, where a number would round them, their own digits.
 *
 * @throws {ValueError} naming the field
 */
function plainJson(object: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const copy = new Copy();
  return copy.record(object, []);
}

class Copy {
  #left = MAX_CHARACTERS;

  record(value: Readonly<Record<string, unknown>>, path: string[]): Record<string, unknown> {
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => {
        this.#spend(name.length, path);
        return [name, this.#inside(member, name, path)];
      }),
    );
  }

  #value(value: unknown, path: string[]): unknown {
    this.#spend(typeof value === 'string' ? value.length + 1 : 1, path);
    if (typeof value === 'bigint') return integer(value);
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw new ValueError(`${display(path)}: JSON has no such number`);
    }
    if (Array.isArray(value)) {
      return value.map((item: unknown, index) => this.#inside(item, `[${index}]`, path));
    }
    return isRecord(value) ? this.record(value, path) : value;
  }

  #inside(value: unknown, step: string, path: string[]): unknown {
    if (path.length >= MAX_DEPTH) {
      throw new ValueError(`${display(path)}: nested deeper than ${MAX_DEPTH} levels`);
    }
    path.push(step);
    const copy = this.#value(value, path);
    path.pop();
    return copy;
  }

  #spend(characters: number, path: readonly string[]): void {
    this.#left -= characters;
    if (this.#left < 0) {
      throw new ValueError(
        `the object is larger than the ${MAX_CHARACTERS / 1024 / 1024} MiB that an API server takes; that is exceeded in ${display(path)}`,
      );
    }
  }
}

function display(path: readonly string[]): string {
  const steps = path.slice(0, 8).map((step) => (step.startsWith('[') ? step : `.${step}`));
  return `${steps.join('').replace(/^\./, '')}${path.length > 8 ? '…' : ''}`;
}

// Since V8 11.4; TypeScript does not know of it.
const json: Pick<typeof JSON, 'stringify'> & {
  readonly rawJSON?: (text: string) => unknown;
} = JSON;

function integer(value: bigint): unknown {
  const rounded = Number(value);
  if (BigInt(rounded) === value || !json.rawJSON) return rounded;
  return json.rawJSON(value.toString());
}
