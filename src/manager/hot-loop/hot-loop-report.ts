import { isApiError } from '../../api/api-error.ts';
import { objectKey } from '../../api/object-key.ts';
import { objectPath } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import { withinTimeout } from '../../util/within-timeout.ts';
import type { EventRecorder, EventSubject } from '../../record/event-recorder.ts';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import type { LogFields, Logger } from '../../util/logger.ts';
import { formatPath, valueAt } from '../../api/field-path.ts';
import { HOT_LOOP_BACKOFF } from './hot-loop.ts';
import type { Mutators } from './mutators.ts';
import { mutatorsOf } from './mutators.ts';
import type { HotLoop } from './written-object.ts';
import { equalJson } from '../../api/equal.ts';
import { jsonIfValid } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';
import type { FieldPath } from '../../api/field-path.ts';

/** Timeout for reading the object, in milliseconds. */
const LOOKUP_TIMEOUT_MS = 5000;

/** Limits on field manager names, because clients choose them. */
const MAX_MANAGERS = 5;
const MAX_MANAGER_LENGTH = 128;

/** Dependencies of `reportHotLoop`. */
export interface HotLoopReportDeps {
  readonly client: Pick<Client, 'raw'>;
  readonly clock: Clock;
  /** Logger with the controller and the key. */
  readonly log: Logger;
  /** @default only the log contains the report */
  readonly recorder?: EventRecorder | undefined;
}

/**
 * Reports a new hot loop with a log line and a Warning event on `subject`. Both contain the changing
 * fields and their field managers. Caches omit managedFields, so the object is read from the API
 * server. If the read fails, the report has no managers.
 */
export async function reportHotLoop(
  deps: HotLoopReportDeps,
  loop: HotLoop,
  subject: EventSubject | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { owners, error } = await lookUpOwners(deps, loop, signal);
  const isAdmission = loop.changedBy === 'admission';
  const admission = isAdmission
    ? await mutatorsOf(deps, loop.resource, signal)
    : { names: [], error: undefined };
  const managers = loop.fieldManager === undefined ? owners : [loop.fieldManager, ...owners];
  deps.log.error(undefined, 'Hot loop detected; postponing the syncs of the key', {
    ...loopFields(loop),
    kind: loop.kind,
    ...(loop.changedBy !== undefined && { changedBy: loop.changedBy }),
    ...(isAdmission && { admission: admission.names }),
    ...(admission.error !== undefined && { admissionError: admission.error }),
    managers: [...new Set(managers)],
    ...(error !== undefined && { managersError: error }),
    times: loop.times,
    within: formatDuration(loop.withinMs),
  });
  if (subject)
    deps.recorder?.warning(subject, 'HotLoop', messageOf(loop, owners, admission, subject));
}

/** Returns a sentence about a hot loop that stays the same while it lasts, for a condition. */
export function describeHotLoop(loop: HotLoop): string {
  const { kind, changedBy, paths, resource, namespace, name } = loop;
  const object = `${resource.kind} ${objectKey(namespace, name)}`;
  const fields = paths.map(formatPath).join(', ');
  const details = 'the event HotLoop has the details';
  if (kind === 'disputed')
    return `Another client changes ${fields} of ${object} after each sync: ${details}`;
  if (kind === 'selfFed') return `Each sync changes ${fields} of ${object} again: ${details}`;
  return changedBy === 'deletion'
    ? `Another client deletes ${object} after each creation: ${details}`
    : `Each sync replaces ${object}: ${details}`;
}

/** Logs the end of a hot loop. */
export function reportHotLoopEnd(log: Logger, loop: HotLoop, postponedSyncs: number): void {
  log.info('Hot loop ended', { ...loopFields(loop), postponedSyncs });
}

function loopFields({ resource, namespace, name, paths }: HotLoop): LogFields {
  const kind = resource.kind.charAt(0).toLowerCase() + resource.kind.slice(1);
  return { [kind]: objectKey(namespace, name), fields: paths.map(formatPath) };
}

async function lookUpOwners(
  { client, clock }: HotLoopReportDeps,
  { resource, namespace, name, paths }: HotLoop,
  signal: AbortSignal,
): Promise<{ readonly owners: readonly string[]; readonly error?: unknown }> {
  const path = objectPath(resource, { namespace, name });
  try {
    // The client's `get` omits managedFields.
    const object = await withinTimeout({ clock, timeoutMs: LOOKUP_TIMEOUT_MS, signal }, (limit) =>
      client.raw({ path, signal: limit }),
    );
    const owners = new Set(paths.flatMap((field) => ownersOf(object, field)));
    return { owners: [...owners].slice(0, MAX_MANAGERS).map(truncate) };
  } catch (error) {
    return { owners: [], error };
  }
}

function messageOf(
  loop: HotLoop,
  owners: readonly string[],
  admission: Mutators,
  subject: EventSubject,
): string {
  const { kind, paths, times, withinMs, fieldManager, resource, namespace, name } = loop;
  const isSubject = subject.kind === resource.kind && subject.metadata.name === name;
  const whose = isSubject ? '' : ` of ${resource.kind} ${objectKey(namespace, name)}`;
  const fields = `${paths.map(formatPath).join(', ')}${whose}`;
  const often = `${times} times within ${formatDuration(withinMs)}`;
  const slowed = `Syncs are postponed by up to ${formatDuration(HOT_LOOP_BACKOFF.maxMs)} until this stops.`;
  if (kind === 'selfFed') {
    const writers = owners.length > 0 ? owners : fieldManager === undefined ? [] : [fieldManager];
    const as = writers.length > 0 ? ` (field manager ${quote(writers)})` : '';
    return `Each sync changes ${fields}${as}, and only that change triggers the next sync: ${often}. ${slowed}`;
  }
  if (kind === 'recreated') {
    const object = `${resource.kind} ${objectKey(namespace, name)}`;
    if (loop.changedBy === 'deletion')
      return `Another client deletes ${object} soon after its creation, and a sync creates it again: ${often}. The garbage collector does so if the owner does not exist. ${slowed}`;
    const change = changeOf(loop, owners, admission);
    return `Each sync deletes or releases ${object} and creates it again: ${often}. ${change} ${slowed}`;
  }
  const own =
    fieldManager === undefined ? 'this controller' : `this controller ("${fieldManager}")`;
  return `Conflicting writes to ${fields}: ${own} writes it and ${othersOf(loop, owners)} changes it again, ${often}. ${slowed}`;
}

/** Returns a sentence about the changes of an object that is created again. */
function changeOf(loop: HotLoop, owners: readonly string[], admission: Mutators): string {
  const fields = loop.paths.map(formatPath).join(', ');
  switch (loop.changedBy) {
    case 'admission': {
      const unread = isApiError(admission.error, 'forbidden')
        ? ' (this program may not list mutatingadmissionpolicies and mutatingwebhookconfigurations)'
        : '';
      const who = admission.names.join(', ') || `A mutating webhook or admission policy${unread}`;
      return `${who} changes ${fields} when the object is created.`;
    }
    case 'others':
      return `Then ${othersOf(loop, owners)} changes ${fields}.`;
    case 'key':
      return `The controller sends another value of ${fields} each time.`;
    default:
      return 'The object that is created is as the last one was.';
  }
}

function othersOf({ fieldManager }: HotLoop, owners: readonly string[]): string {
  const others = owners.filter((owner) => owner !== fieldManager);
  return others.length > 0 ? quote(others) : 'another client';
}

function quote(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ');
}

function truncate(name: string): string {
  return name.length > MAX_MANAGER_LENGTH ? `${name.slice(0, MAX_MANAGER_LENGTH)}…` : name;
}

/**
 * Returns the field managers that own the field at `path` or a field that contains it, by
 * `metadata.managedFields`. A removed field has no owners.
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

/** Follows `path` in a field set (`f:` members, `k:` elements by key) and in the object. */
function owns(fieldsV1: unknown, object: unknown, path: FieldPath): boolean {
  let fields = fieldsV1;
  let value = object;
  for (const [depth, step] of path.entries()) {
    if (!isRecord(fields)) return false;
    // A field without subfields is owned as a whole.
    if (depth > 0 && Object.keys(fields).every((name) => name === '.')) return true;
    value = valueAt(value, [step]);
    const name = typeof step === 'string' ? `f:${step}` : elementName(fields, value, step);
    if (name === undefined || !Object.hasOwn(fields, name)) return false;
    fields = fields[name];
  }
  return true;
}

/** Returns the entry of `fields` for a list element. */
function elementName(
  fields: Record<string, unknown>,
  element: unknown,
  index: number,
): string | undefined {
  return Object.keys(fields).find((name) => {
    if (name === `i:${index}`) return true;
    if (!name.startsWith('k:') && !name.startsWith('v:')) return false;
    const selector = jsonIfValid(name.slice(2));
    if (name.startsWith('v:')) return equalJson(selector, element);
    return (
      isRecord(selector) && Object.keys(selector).every((key) => isSame(selector, element, key))
    );
  });
}

function isSame(selector: unknown, element: unknown, key: string): boolean {
  return equalJson(valueAt(selector, [key]), valueAt(element, [key]));
}
