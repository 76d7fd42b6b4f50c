import { equalJson } from '../../api/equal.ts';
import { qualifiedNameProblems } from '../object-names.ts';
import type { StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import type { KindTraits } from './definition.ts';
import { isSet, numberIn, objectIn, textIn } from './fields.ts';
import { Findings } from './findings.ts';

export const EVENT: KindTraits = {
  createOnUpdate: true,
  selectableFields: {
    'involvedObject.kind': involved('kind'),
    'involvedObject.namespace': involved('namespace'),
    'involvedObject.name': involved('name'),
    'involvedObject.uid': involved('uid'),
    'involvedObject.apiVersion': involved('apiVersion'),
    'involvedObject.resourceVersion': involved('resourceVersion'),
    'involvedObject.fieldPath': involved('fieldPath'),
    reason: (event) => textIn(event, 'reason'),
    reportingComponent: (event) => textIn(event, 'reportingComponent'),
    source: (event) =>
      textIn(objectIn(event, 'source'), 'component') || textIn(event, 'reportingComponent'),
    type: (event) => textIn(event, 'type'),
  },
  hooks: { validate },
};

/** Fields of events.k8s.io and of the stored event with other names. */
const RENAMED = [
  ['note', 'message'],
  ['regarding', 'involvedObject'],
  ['reportingController', 'reportingComponent'],
  ['deprecatedSource', 'source'],
  ['deprecatedFirstTimestamp', 'firstTimestamp'],
  ['deprecatedLastTimestamp', 'lastTimestamp'],
  ['deprecatedCount', 'count'],
] as const;

/** Events of events.k8s.io are another representation of the events of the core group. */
export const EVENTS_EVENT: KindTraits = {
  createOnUpdate: true,
  selectableFields: {
    ...Object.fromEntries(
      ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map(
        (field) => [`regarding.${field}`, involved(field)],
      ),
    ),
    reason: (event) => textIn(event, 'reason'),
    reportingController: (event) => textIn(event, 'reportingComponent'),
    type: (event) => textIn(event, 'type'),
  },
  hooks: {
    validate: (event, previous) => {
      const findings = new Findings();
      if (!equalJson(event['series'], previous?.['series'])) validateSeries(event, findings);
      if (previous) requireImmutable(event, previous, findings);
      else validateNew(event, findings);
      return findings.errors;
    },
  },
  storedAs: { kind: 'v1/events', toStored, fromStored },
};

const UNSET = RENAMED.filter(([own]) => own.startsWith('deprecated'));

function validateNew(event: StoredObject, findings: Findings): void {
  if (!isSet(event, 'eventTime')) findings.required('eventTime');
  const type = textIn(event, 'type');
  if (type !== 'Normal' && type !== 'Warning') {
    findings.invalid('type', '', `has invalid value: ${type}`);
  }
  for (const [own, stored] of UNSET) {
    // The default of the source is an empty one.
    const isUnset = !isSet(event, own) || equalJson(event[own], {});
    if (!isUnset) findings.invalid(stored, '', 'needs to be unset');
  }
}

const IMMUTABLE = ['reason', 'type', 'eventTime', 'action', 'related', 'reportingInstance'];

/** Only the series and the metadata of an event can change. */
function requireImmutable(event: StoredObject, previous: StoredObject, findings: Findings): void {
  for (const [own, stored] of [...RENAMED, ...IMMUTABLE.map((field) => [field, field] as const)]) {
    const value = event[own];
    if (equalJson(value, previous[own])) continue;
    findings.invalid(stored, value ?? '', 'field is immutable');
  }
}

function validateSeries(event: StoredObject, findings: Findings): void {
  const series = objectIn(event, 'series');
  if (!series) return;
  if ((numberIn(series, 'count') ?? 0) < 2) {
    findings.invalid('series.count', '', 'should be at least 2');
  }
  if (!isSet(series, 'lastObservedTime')) findings.required('series.lastObservedTime');
}

function toStored<T extends StoredObject>(event: T): T {
  return renamed(event, 'v1', RENAMED);
}

function fromStored(event: StoredObject): StoredObject {
  const back = RENAMED.map(([own, stored]) => [stored, own] as const);
  return renamed(event, 'events.k8s.io/v1', back);
}

function renamed<T extends StoredObject>(
  event: T,
  apiVersion: string,
  names: readonly (readonly [from: string, to: string])[],
): T {
  const to = new Map(names);
  const fields = Object.entries(event).map(([name, value]) => [to.get(name) ?? name, value]);
  return { ...(Object.fromEntries(fields) as T), apiVersion };
}

function involved(field: string): (event: StoredObject) => string {
  return (event) => textIn(objectIn(event, 'involvedObject'), field);
}

/** An event with `eventTime` follows the newer rules; one without, those of before. */
function validate(event: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const isNew = isSet(event, 'eventTime');
  validateNamespace(event, isNew, findings);
  if (isNew) validateReport(event, findings);
  return findings.errors;
}

/** An event lives beside its object; where that has no namespace, in a well-known one. */
function validateNamespace(event: StoredObject, isNew: boolean, findings: Findings): void {
  const own = event.metadata.namespace ?? '';
  const theirs = textIn(objectIn(event, 'involvedObject'), 'namespace');
  const fits =
    theirs === '' ? own === 'default' || (isNew && own === 'kube-system') : isNew || theirs === own;
  if (fits) return;
  findings.invalid('involvedObject.namespace', theirs, 'does not match event.namespace');
}

const REQUIRED = ['reportingComponent', 'reportingInstance', 'action', 'reason'] as const;
const MAX_BYTES = { reportingInstance: 128, action: 128, reason: 128, message: 1024 } as const;

function validateReport(event: StoredObject, findings: Findings): void {
  for (const field of REQUIRED) {
    const value = textIn(event, field);
    if (value === '') findings.required(field);
    if (field !== 'reportingComponent') continue;
    for (const problem of qualifiedNameProblems(value)) findings.invalid(field, value, problem);
  }
  for (const [field, limit] of Object.entries(MAX_BYTES)) {
    if (Buffer.byteLength(textIn(event, field)) <= limit) continue;
    findings.invalid(field, '', `can have at most ${limit} characters`);
  }
}
