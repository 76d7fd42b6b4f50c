import { controllerOf } from '../api/metadata.ts';
import type { KubernetesObject } from '../api/object.ts';
import { isRecord } from '../util/values.ts';
import { isBackgroundResource } from './api-call.ts';
import type { StateComparison } from './faults.ts';
import type { ChangeRecord, History } from './history.ts';
import { keyIn } from './history.ts';
import { copiesIn, MARK } from './other-client.ts';

/** Fields whose values differ between runs. */
const VOLATILE: ReadonlySet<string> = new Set([
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'managedFields',
  'generation',
  'containerID',
  // Texts for people can contain durations.
  'message',
]);

const DEFINITIONS: ReadonlySet<string> = new Set([
  'apiextensions.k8s.io/customresourcedefinitions',
  'apiregistration.k8s.io/apiservices',
]);

/** Maximum number of differences that are shown. */
const MAX_DIFFERENCES = 6;

const TIMES = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g;
const ADDRESSES = /\b\d{1,3}(\.\d{1,3}){3}\b/g;
const UIDS = /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;

/** The objects that a run left, without identities and times, each as one line. */
export interface FinalState {
  readonly lines: readonly string[];
  /** The existing ones with the objects of the scenario, without those whose owner does not exist. */
  readonly living: readonly string[];
  /** Those whose owner does not exist. The garbage collector deletes them sooner or later. */
  readonly garbage: readonly string[];
  /** Names of the objects that were created in the run, and of those that were deleted. */
  readonly created: ReadonlySet<string>;
  readonly deleted: ReadonlySet<string>;
}

/** Returns the final state of a run. Copies that other clients made are no part of it. */
export function finalStateOf(history: History): FinalState {
  const lines: string[] = [];
  const living: string[] = [];
  const garbage: string[] = [];
  const uids = new Set([...history.objects()].map(({ object }) => object.metadata.uid));
  const copies = copiesIn(history.changes);
  const generated = new Set(
    history.changes.flatMap(({ object: { metadata } }) =>
      metadata.generateName ? [metadata.name] : [],
    ),
  );
  for (const [key, object] of history.changed()) {
    const [resource = ''] = key.split(' ', 1);
    if (isBackgroundResource(resource) || copies.has(object?.metadata.uid ?? '')) continue;
    const line = `${nameOf(key, object)} ${contentOf(object, generated)}`;
    lines.push(line);
    const owner = object && controllerOf(object);
    if (owner && !uids.has(owner.uid)) garbage.push(line);
    else if (object && !isDefinition(resource)) living.push(line);
  }
  const namesOf = (verb: ChangeRecord['verb']) =>
    new Set(
      history.changes.flatMap(({ verb: done, resource, object }) =>
        done === verb ? [nameOf(keyIn(resource, object), object)] : [],
      ),
    );
  return {
    lines: lines.toSorted(),
    living: living.toSorted(),
    garbage,
    created: namesOf('create'),
    deleted: namesOf('delete'),
  };
}

/** Whether objects of the resource exist before the scenario, and come with a CRD. */
function isDefinition(resource: string): boolean {
  return DEFINITIONS.has(resource);
}

/** Describes how a final state differs from the expected one; undefined if it does not. */
export function differenceOf(
  expected: FinalState,
  actual: FinalState,
  comparison: StateComparison,
): string | undefined {
  const difference = () => {
    switch (comparison) {
      case 'none':
        return '';
      case 'equal': {
        const garbage = garbageIn(expected, actual);
        const isKept = (line: string) => !isNamedIn(line, garbage);
        return stateDifference(expected.lines.filter(isKept), actual.lines.filter(isKept));
      }
      case 'living':
        return stateDifference(expected.living, actual.living);
      case 'contains': {
        // An object that existed before can be about all objects of a kind, and others count.
        const living = expected.living.filter((line) => expected.created.has(splitLine(line)[0]));
        if (without(living, actual.living).length === 0) return '';
        return stateDifference(
          living,
          actual.living.filter((line) => isNamedIn(line, living)),
        );
      }
    }
  };
  const text = difference();
  return text === '' ? undefined : text;
}

/**
 * Returns the garbage of the expected state, and that of the actual state which was deleted in the expected one: its owner was
 * deleted before a controller deleted the object.
 */
function garbageIn(expected: FinalState, actual: FinalState): readonly string[] {
  const deleted = actual.garbage.filter((line) => expected.deleted.has(splitLine(line)[0]));
  return [...expected.garbage, ...deleted];
}

function isNamedIn(line: string, lines: readonly string[]): boolean {
  const [name] = splitLine(line);
  return lines.some((other) => splitLine(other)[0] === name);
}

/** The name in a state: that of a generated one is its prefix. */
function nameOf(key: string, object: KubernetesObject | undefined): string {
  const { generateName, name } = object?.metadata ?? {};
  return generateName && name ? key.slice(0, -name.length) + `${generateName}*` : key;
}

/** Returns the content of an object without identities, times and messages. */
export function contentOf(
  object: KubernetesObject | undefined,
  generatedNames: ReadonlySet<string> = new Set(),
): string {
  if (!object) return 'deleted';
  const generation = object.metadata.generation;
  const text = JSON.stringify(object, (field, value: unknown) => {
    if (VOLATILE.has(field)) return undefined;
    if (field === 'annotations') return withoutMark(value);
    if (field === 'conditions') return byType(value);
    if (field === 'observedGeneration') return value === generation ? 'current' : 'outdated';
    return typeof value === 'string' && generatedNames.has(value) ? '*' : value;
  });
  return text.replaceAll(TIMES, 'TIME').replaceAll(ADDRESSES, 'ADDRESS').replaceAll(UIDS, 'UID');
}

/** Returns conditions in the order of their types. The list is a map. */
function byType(value: unknown): unknown {
  if (!Array.isArray(value) || !value.every(isRecord)) return value;
  const textOf = ({ type }: Readonly<Record<string, unknown>>) => String(type);
  return value.toSorted((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
}

/** Returns annotations without the one that another client adds. */
function withoutMark(annotations: unknown): unknown {
  if (!isRecord(annotations) || !(MARK in annotations)) return annotations;
  const { [MARK]: _, ...rest } = annotations;
  return Object.keys(rest).length === 0 ? undefined : rest;
}

/** Describes how a state differs from the expected one: objects that are missing or not expected, and fields. */
function stateDifference(expected: readonly string[], actual: readonly string[]): string {
  const missing = without(expected, actual);
  const unexpected = without(actual, expected);
  const lines: string[] = [];
  for (const line of missing) {
    const [name, content] = splitLine(line);
    const at = unexpected.findIndex((other) => splitLine(other)[0] === name);
    if (at < 0) lines.push(`missing: ${name}`);
    else lines.push(...fieldDifferences(name, content, splitLine(unexpected.splice(at, 1)[0])[1]));
  }
  lines.push(...unexpected.map((line) => `not expected: ${splitLine(line)[0]}`));
  return lines.slice(0, MAX_DIFFERENCES).join('\n');
}

/** Splits a line of a state into the name of the object and its content. */
function splitLine(line: string = ''): readonly [string, string] {
  const end = line.indexOf(' ', line.indexOf(' ') + 1);
  return [line.slice(0, end), line.slice(end + 1)];
}

function fieldDifferences(name: string, expected: string, actual: string): string[] {
  if (expected === 'deleted' || actual === 'deleted')
    return [`${name}: expected ${expected === 'deleted' ? expected : 'the object'}`];
  const before = fieldsOf(JSON.parse(expected), '');
  const after = fieldsOf(JSON.parse(actual), '');
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths]
    .filter((path) => before.get(path) !== after.get(path))
    .map((path) => `${name} ${path}: ${after.get(path)}, expected ${before.get(path)}`);
}

/** Returns the values of an object by their paths. */
function fieldsOf(
  value: unknown,
  path: string,
  fields: Map<string, string> = new Map(),
): Map<string, string> {
  if (typeof value !== 'object' || value === null) return fields.set(path, JSON.stringify(value));
  for (const [name, field] of Object.entries(value)) fieldsOf(field, `${path}.${name}`, fields);
  return fields;
}

/** Returns the lines of `lines` that `others` does not contain, each as often as it is missing. */
function without(lines: readonly string[], others: readonly string[]): string[] {
  const left = new Map<string, number>();
  for (const line of others) left.set(line, (left.get(line) ?? 0) + 1);
  return lines.filter((line) => {
    const count = left.get(line) ?? 0;
    left.set(line, count - 1);
    return count <= 0;
  });
}
