import { parseDocuments } from './manifest-yaml.ts';
import type { ManifestDocument } from './manifest-yaml.ts';
import { isRecord } from '../../util/values.ts';
import { MAX_JSON_DEPTH } from '../json.ts';

/** An object as a manifest describes it: the fields that the author sets. */
export interface ManifestObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>> & {
    readonly name: string;
    readonly namespace?: string;
  };
  readonly [field: string]: unknown;
}

/** The location of a manifest or problem in a file. */
export interface ManifestPlace {
  /** Path or URL, or `standard input`. */
  readonly source: string;
  /** From 1, in the order of the file. */
  readonly document: number;
  /** From 1. */
  readonly line: number;
  /** From 1; only for errors at a single character. */
  readonly column?: number;
  /** Position in a list: `items[2]`. */
  readonly item?: string;
}

/** An object of a manifest, and its place. */
export interface Manifest {
  readonly place: ManifestPlace;
  readonly object: ManifestObject;
}

/** An error in a manifest, and its place. */
export interface ManifestProblem {
  /** Absent if the source could not be read. */
  readonly place?: ManifestPlace;
  /** Never quotes a value, which can be part of a Secret. */
  readonly message: string;
}

/** Manifests could not be read. The message has one line for each problem. */
export class ManifestError extends Error {
  override readonly name = 'ManifestError';
  readonly problems: readonly ManifestProblem[];

  constructor(problems: readonly ManifestProblem[]) {
    super(problems.map(describeProblem).join('\n'));
    this.problems = problems;
  }
}

/** The text of a source, with the source's name for messages. */
export interface ManifestText {
  readonly source: string;
  readonly text: string;
}

/** Maximum nesting of lists in lists; kubectl prints one level. */
const MAX_LIST_DEPTH = 4;

/**
 * Parses the objects in YAML or JSON texts: any number of documents, and the items of lists. Like kubectl, it
 * reads YAML 1.1 (`0644` is octal, `yes` is true), but keys are always strings.
 *
 * @throws {ManifestError} with all problems; a text with a problem yields no objects
 *
 * @example
 * ```ts
 * import { parseManifests } from 'crd-controller/apply';
 *
 * const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: settings }\n';
 * const [manifest] = parseManifests([{ source: 'settings.yaml', text }]);
 * console.log(manifest?.object.kind); // prints: ConfigMap
 * ```
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
  /** Path from the document to the item; empty for the document itself. */
  readonly path: readonly (string | number)[];
}

/** Returns the items of a list, or the value itself. */
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

/** @throws {ValueError} with the field that is wrong */
function manifestObject(value: unknown): ManifestObject {
  if (!isRecord(value)) {
    throw new ValueError(`expected an object with apiVersion and kind, found ${typeName(value)}`);
  }
  const apiVersion = requireText(value, 'apiVersion', 'as in apps/v1');
  const kind = requireText(value, 'kind', 'as in Deployment');
  const metadata = value['metadata'];
  if (!isRecord(metadata)) {
    throw new ValueError(`metadata: expected a mapping with a name, ${found(metadata)}`);
  }
  const { name, namespace, generateName } = metadata;
  if ((name === undefined || name === null) && typeof generateName === 'string') {
    throw new ValueError(
      `metadata.name: ${kind} has a generateName, which apply does not support because each apply would create another object; set a name`,
    );
  }
  if (typeof name !== 'string' || !isSegment(name)) {
    throw new ValueError(`metadata.name: expected the name of one object, ${found(name)}`);
  }
  if (namespace !== undefined && namespace !== null && typeof namespace !== 'string') {
    throw new ValueError(`metadata.namespace: expected a name, ${found(namespace)}`);
  }
  if (typeof namespace === 'string' && namespace !== '' && !isSegment(namespace)) {
    throw new ValueError('metadata.namespace: expected a name without "/" and "%"');
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

/** Reports whether a name can be a segment of a path. */
function isSegment(name: string): boolean {
  return /^(?!\.\.?$)[^/%]{1,253}$/.test(name);
}

function requireText(value: Record<string, unknown>, field: string, example: string): string {
  const text = value[field];
  if (typeof text === 'string' && text !== '') return text;
  throw new ValueError(`${field}: expected a string, ${example}, ${found(text)}`);
}

function found(value: unknown): string {
  return value === undefined ? 'but it is missing' : `found ${typeName(value)}`;
}

/** Returns the type of a value, without the value itself. */
function typeName(value: unknown): string {
  if (value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (value === '') return 'an empty string';
  switch (typeof value) {
    case 'object':
      return 'a mapping';
    case 'string':
      return 'another string';
    case 'boolean':
      return 'a boolean; quote it';
    default:
      return 'a number; quote it';
  }
}

/** A value cannot be converted to JSON, or is too large. The message names the field but not the value. */
class ValueError extends Error {
  override readonly name = 'ValueError';
}

/** Maximum size of a request that an API server accepts. */
const MAX_CHARACTERS = 3 * 1024 * 1024;

/**
 * Copies a parsed document into a JSON tree. Values that YAML aliases share are repeated, so size and depth are
 * limited here. Integers, parsed as bigint, become numbers, or raw JSON where a number would round them.
 *
 * @throws {ValueError} with the field that is wrong
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
      throw new ValueError(`${display(path)}: JSON has no NaN or infinity`);
    }
    if (Array.isArray(value)) {
      return value.map((item: unknown, index) => this.#inside(item, `[${index}]`, path));
    }
    return isRecord(value) ? this.record(value, path) : value;
  }

  #inside(value: unknown, step: string, path: string[]): unknown {
    if (path.length >= MAX_JSON_DEPTH) {
      throw new ValueError(`${display(path)}: nested deeper than ${MAX_JSON_DEPTH} levels`);
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
        `the object is larger than the ${MAX_CHARACTERS / 1024 / 1024} MiB that an API server accepts; the limit is exceeded in ${display(path)}`,
      );
    }
  }
}

function display(path: readonly string[]): string {
  const steps = path.slice(0, 8).map((step) => (step.startsWith('[') ? step : `.${step}`));
  return `${steps.join('').replace(/^\./, '')}${path.length > 8 ? '…' : ''}`;
}

// V8 has rawJSON since 11.4, but TypeScript does not declare it.
const json: Pick<typeof JSON, 'stringify'> & {
  readonly rawJSON?: (text: string) => unknown;
} = JSON;

function integer(value: bigint): unknown {
  const rounded = Number(value);
  if (BigInt(rounded) === value || !json.rawJSON) return rounded;
  return json.rawJSON(value.toString());
}
