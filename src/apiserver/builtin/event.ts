import type { ApiObject, ResourceDefinition, StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../schema/field-error.ts';
import { EVENT_COLUMNS } from '../table/builtin-columns.ts';
import { builtin } from './definition.ts';
import { isSet, objectIn, setDefault, textIn } from './fields.ts';
import { Findings } from './findings.ts';

export const EVENT: ResourceDefinition = builtin({
  kind: 'Event',
  plural: 'events',
  shortNames: ['ev'],
  columns: EVENT_COLUMNS,
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
  hooks: { applyDefaults, validate },
});

/** In the older form these are there without a value. */
function applyDefaults(event: ApiObject): void {
  setDefault(event, 'reportingComponent', '');
  setDefault(event, 'reportingInstance', '');
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
    if (textIn(event, field) === '') findings.required(field);
  }
  for (const [field, limit] of Object.entries(MAX_BYTES)) {
    if (Buffer.byteLength(textIn(event, field)) <= limit) continue;
    findings.invalid(field, '', `can have at most ${limit} characters`);
  }
}
