import { objectKey } from '../../api/object-key.ts';
import { objectPath } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import { withinTimeout } from '../../client/within-timeout.ts';
import type { EventRecorder, EventSubject } from '../../record/event-recorder.ts';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import type { LogFields, Logger } from '../../util/logger.ts';
import { formatPath, valueAt } from '../../api/field-path.ts';
import { DAMPING } from './hot-loop.ts';
import type { HotLoop } from './written-object.ts';
import { equalJson } from '../../api/equal.ts';
import { isRecord } from '../../util/values.ts';
import type { FieldPath } from '../../api/field-path.ts';

/** How long a report may wait for the object whose writers it is to name, in milliseconds. */
const LOOKUP_TIMEOUT_MS = 5000;

/** Of names that others have chosen, so much is shown. */
const MOST_OWNERS = 5;
const LONGEST_OWNER = 128;

/** Dependencies of `HotLoopReport`. */
export interface HotLoopReportDeps {
  readonly client: Pick<Client, 'raw'>;
  readonly clock: Clock;
  /** Names the controller and the key. */
  readonly log: Logger;
  /** @default only the log is told */
  readonly recorder?: EventRecorder | undefined;
}

/**
 * Tells of a loop that was found: one log line, and one Warning event on `subject`, both with the
 * fields that flap and the managers that wrote them. Caches know no managers, so the object is read
 * once, live; if that fails, they stay unnamed.
 */
export async function reportHotLoop(
  deps: HotLoopReportDeps,
  loop: HotLoop,
  subject: EventSubject | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { owners, unknown } = await lookUpOwners(deps, loop, signal);
  const managers = loop.fieldManager === undefined ? owners : [loop.fieldManager, ...owners];
  deps.log.error(undefined, 'Hot loop; the key is slowed down', {
    ...loopFields(loop),
    kind: loop.kind,
    managers: [...new Set(managers)],
    ...(unknown !== undefined && { managersUnknown: unknown }),
    times: loop.times,
    within: formatDuration(loop.withinMs),
  });
  if (subject) deps.recorder?.warning(subject, 'HotLoop', messageOf(loop, owners, subject));
}

/** Tells that a loop is over. */
export function reportEnd(log: Logger, loop: HotLoop, dampedRuns: number): void {
  log.info('Hot loop is over', { ...loopFields(loop), dampedRuns });
}

function loopFields({ resource, namespace, name, paths }: HotLoop): LogFields {
  const kind = resource.kind.charAt(0).toLowerCase() + resource.kind.slice(1);
  return { [kind]: objectKey(namespace, name), fields: paths.map(formatPath) };
}

async function lookUpOwners(
  { client, clock }: HotLoopReportDeps,
  { resource, namespace, name, paths }: HotLoop,
  signal: AbortSignal,
): Promise<{ readonly owners: readonly string[]; readonly unknown?: unknown }> {
  const path = objectPath(resource, { namespace, name });
  try {
    // A client's `get` may strip managedFields.
    const object = await withinTimeout({ clock, timeoutMs: LOOKUP_TIMEOUT_MS, signal }, (limit) =>
      client.raw({ path, signal: limit }),
    );
    const owners = new Set(paths.flatMap((field) => ownersOf(object, field)));
    return { owners: [...owners].slice(0, MOST_OWNERS).map(cut) };
  } catch (error) {
    return { owners: [], unknown: error };
  }
}

function messageOf(loop: HotLoop, owners: readonly string[], subject: EventSubject): string {
  const { kind, paths, times, withinMs, fieldManager, resource, namespace, name } = loop;
  const isSubject = subject.kind === resource.kind && subject.metadata.name === name;
  const whose = isSubject ? '' : ` of ${resource.kind} ${objectKey(namespace, name)}`;
  const fields = `${paths.map(formatPath).join(', ')}${whose}`;
  const often = `${times} times within ${formatDuration(withinMs)}`;
  const slowed = `Runs are put off, by up to ${formatDuration(DAMPING.maxMs)}, until this stops.`;
  if (kind === 'selfFed') {
    const writers = owners.length > 0 ? owners : fieldManager === undefined ? [] : [fieldManager];
    const as = writers.length > 0 ? ` (written by ${quoted(writers)})` : '';
    return `Each run changes ${fields}${as} and is woken by that change alone: ${often}. ${slowed}`;
  }
  const us = fieldManager === undefined ? 'this controller' : `this controller ("${fieldManager}")`;
  const others = owners.filter((owner) => owner !== fieldManager);
  const them = others.length > 0 ? quoted(others) : 'somebody else';
  return `A dispute over ${fields}: ${us} writes it and ${them} changes it again, ${often}. ${slowed}`;
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ');
}

function cut(name: string): string {
  return name.length > LONGEST_OWNER ? `${name.slice(0, LONGEST_OWNER)}…` : name;
}

/**
 * The managers that, by an object's `metadata.managedFields`, have set the field at `path`, or what it
 * is a part of. Of a field that is gone nobody knows who removed it.
 */
export function ownersOf(object: unknown, path: FieldPath): string[] {
  const entries = valueAt(object, ['metadata', 'managedFields']);
  if (!Array.isArray(entries)) return [];
  const owners = new Set<string>();
  for (const entry of entries as unknown[]) {
    const manager = valueAt(entry, ['manager']);
    if (typeof manager === 'string' && owns(valueAt(entry, ['fieldsV1']), object, path)) {
      owners.add(manager);
    }
  }
  return [...owners];
}

/** Follows `path` down a set of fields (`f:` members, `k:` elements by key) and the object itself. */
function owns(fieldsV1: unknown, object: unknown, path: FieldPath): boolean {
  let fields = fieldsV1;
  let value = object;
  for (const [depth, step] of path.entries()) {
    if (!isRecord(fields)) return false;
    // Nothing is told apart below: it is set as a whole.
    if (depth > 0 && Object.keys(fields).every((name) => name === '.')) return true;
    value = valueAt(value, [step]);
    const name = typeof step === 'string' ? `f:${step}` : elementName(fields, value, step);
    if (name === undefined || !Object.hasOwn(fields, name)) return false;
    fields = fields[name];
  }
  return true;
}

/** The member of `fields` that stands for this element of a list. */
function elementName(
  fields: Record<string, unknown>,
  element: unknown,
  index: number,
): string | undefined {
  return Object.keys(fields).find((name) => {
    if (name === `i:${index}`) return true;
    if (!name.startsWith('k:') && !name.startsWith('v:')) return false;
    const told = parsed(name.slice(2));
    if (name.startsWith('v:')) return equalJson(told, element);
    return isRecord(told) && Object.keys(told).every((key) => isSame(told, element, key));
  });
}

function isSame(told: unknown, element: unknown, key: string): boolean {
  return equalJson(valueAt(told, [key]), valueAt(element, [key]));
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
