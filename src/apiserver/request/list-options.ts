import type { FieldRequirement } from '../../api/field-selector.ts';
import { matchesFields, parseFieldSelector } from '../../api/field-selector.ts';
import type { Requirement } from '../../api/label-selector.ts';
import { matchesLabels, parseLabelSelector } from '../../api/label-selector.ts';
import { continueAt } from './continue-token.ts';
import { toRequestedVersion } from './negotiation.ts';
import type { RequestInfo } from './request-info.ts';
import { isTrue } from './request-info.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';
import { StatusError, badRequest, invalidError } from '../objects/status-error.ts';

/** The query of a list, a watch or a collection's deletion. */
export interface RequestedList {
  readonly selection: ListSelection;
  /** Undefined without a resourceVersion; `0` for any state. */
  readonly revision: number | undefined;
  readonly exact: boolean;
  /** Maximum number of objects of a page; 0 for all. */
  readonly limit: number;
  readonly continueToken: string | undefined;
  /** Undefined if the resourceVersion decides. */
  readonly sendInitialEvents: boolean | undefined;
  readonly allowBookmarks: boolean;
  /** Whether a bookmark follows the initial events; not by default for a legacy watch. */
  readonly marksInitialEvents: boolean;
  readonly timeoutSeconds: number | undefined;
}

/** The selected objects of a resource. */
export interface ListSelection {
  readonly namespace: string | undefined;
  /** Whether the selectors match all objects; the namespace may still restrict them. */
  readonly everything: boolean;
  /** Whether `matches` needs the objects of a CRD with a conversion webhook in the requested version. */
  readonly converts: boolean;
  /** Whether the server reads the object: as upstream, all of the namespace unless a name or an index selects them. */
  readonly isFound: ((object: StoredObject) => boolean) | undefined;
  /** Whether the selectors match; does not check the namespace. */
  readonly matches: (object: StoredObject) => boolean;
}

/** @throws {StatusError} 400 or 422 with the name of the invalid option */
export function listOptions(info: RequestInfo, definition: ResourceDefinition): RequestedList {
  const { query } = info;
  // In the order of upstream: what can be parsed, then what fits together.
  const { limit, timeoutSeconds, ...selectors } = parsedOptions(query);
  requireConsistent(info);
  // As upstream, in the order of the fields.
  const names = selectors.fields.map(({ field }) => field).sort();
  for (const name of names) requireSelectable(name, definition);
  const fields = fieldsOf(info, selectors.fields);
  const selection = selectionOf(info, definition, { ...selectors, fields });
  if (info.verb !== 'watch') requireContinuable(query);
  const allowBookmarks = isTrue(query.get('allowWatchBookmarks'));
  return {
    selection,
    revision: parseRevision(info),
    exact: query.get('resourceVersionMatch') === 'Exact',
    limit,
    continueToken: query.get('continue') || undefined,
    sendInitialEvents:
      query.get('sendInitialEvents') === null ? undefined : isTrue(query.get('sendInitialEvents')),
    allowBookmarks,
    marksInitialEvents: allowBookmarks && isTrue(query.get('watch')),
    timeoutSeconds,
  };
}

/**
 * Returns the only name that a list or watch can select, for authorization, or ''. As upstream, it is '' if an option is
 * malformed, or if no object can have the name.
 */
export function selectedName(query: URLSearchParams): string {
  if (!query.get('fieldSelector')?.includes('metadata.name')) return '';
  try {
    const { fields } = parsedOptions(query);
    const term = fields.find(
      ({ field, operator }) => field === 'metadata.name' && operator === '=',
    );
    const name = term?.value ?? '';
    return name === '.' || name === '..' || /[/%]/.test(name) ? '' : name;
  } catch (error) {
    if (error instanceof StatusError) return '';
    throw error;
  }
}

/** @throws {StatusError} 400 if an option is malformed */
function parsedOptions(query: URLSearchParams): {
  readonly limit: number;
  readonly timeoutSeconds: number | undefined;
  readonly labels: readonly Requirement[];
  readonly fields: readonly FieldRequirement[];
} {
  return {
    limit: Math.max(0, parseInteger(query.get('limit')) ?? 0),
    timeoutSeconds: parseInteger(query.get('timeoutSeconds')) || undefined,
    labels: parsed(parseLabelSelector, query.get('labelSelector') ?? ''),
    fields: parsed(parseFieldSelector, query.get('fieldSelector') ?? ''),
  };
}

/**
 * Returns the field selector of a request, which is the name for a legacy watch of one object.
 *
 * @throws {StatusError} 400 if the request also has a selector that does not require this name
 */
function fieldsOf(
  { legacyWatch }: RequestInfo,
  fields: readonly FieldRequirement[],
): readonly FieldRequirement[] {
  const name = legacyWatch?.name;
  if (name === undefined) return fields;
  const isOfName = ({ field, operator, value }: FieldRequirement) =>
    field === 'metadata.name' && operator === '=' && value === name;
  if (fields.length === 0) return [{ field: 'metadata.name', operator: '=', value: name }];
  if (fields.some(isOfName)) return fields;
  throw badRequest("fieldSelector metadata.name doesn't match requested name");
}

function selectionOf(
  { namespace }: RequestInfo,
  definition: ResourceDefinition,
  {
    labels,
    fields,
  }: { readonly labels: readonly Requirement[]; readonly fields: readonly FieldRequirement[] },
): ListSelection {
  const { custom, conversion } = definition;
  const isByValue = fields.some(({ field }) => !field.startsWith('metadata.'));
  const converts = conversion !== undefined && (isByValue || labels.length > 0);
  const matches = (object: StoredObject) =>
    matchesLabels(labels, object.metadata.labels) &&
    matchesFields(fields, (field) => fieldValue(object, field, definition));
  const place = namespace ?? namespaceIn(fields);
  const isKey = place !== undefined || !definition.namespaced;
  const indexed = fields.filter(
    ({ field, operator }) =>
      operator === '=' &&
      ((field === 'metadata.name' && isKey) ||
        (field === 'spec.nodeName' && definition.plural === 'pods')),
  );
  return {
    namespace: place,
    isFound:
      indexed.length > 0
        ? (object) => matchesFields(indexed, (field) => fieldValue(object, field, definition))
        : undefined,
    everything: labels.length === 0 && fields.length === 0,
    converts,
    matches:
      converts || (custom && isByValue)
        ? (object) => matches(toRequestedVersion(object, definition))
        : matches,
  };
}

/** Returns the namespace of `metadata.namespace=a`, which is as fast as the path of namespace a. */
function namespaceIn(fields: readonly FieldRequirement[]): string | undefined {
  const term = fields.find(
    ({ field, operator }) => field === 'metadata.namespace' && operator === '=',
  );
  return term?.value || undefined;
}

/** @throws {StatusError} 400 if a selector must not have the field */
function requireSelectable(field: string, definition: ResourceDefinition): void {
  const { selectableFields = {}, custom, namespaced } = definition;
  const hasNamespace = custom || namespaced || Object.keys(selectableFields).length === 0;
  if (field === 'metadata.name' || (hasNamespace && field === 'metadata.namespace')) return;
  if (Object.hasOwn(selectableFields, field)) return;
  if (definition.group === 'batch' && definition.kind === 'Job') {
    throw badRequest(`field label ${JSON.stringify(field)} not supported for ${definition.kind}`);
  }
  throw badRequest(
    custom || Object.keys(selectableFields).length > 0
      ? `field label not supported: ${field}`
      : `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
  );
}

function fieldValue(
  object: StoredObject,
  field: string,
  { selectableFields = {} }: ResourceDefinition,
): string {
  if (field === 'metadata.name') return object.metadata.name;
  if (field === 'metadata.namespace') return object.metadata.namespace ?? '';
  return Object.hasOwn(selectableFields, field) ? (selectableFields[field]?.(object) ?? '') : '';
}

/** As upstream, a legacy watch has the rules of a list. */
function requireConsistent({ verb, query }: RequestInfo): void {
  const isWatch = verb === 'watch' && isTrue(query.get('watch'));
  const errors = isWatch ? watchErrors(query) : listErrors(query);
  if (errors.length > 0) {
    throw invalidError({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', errors);
  }
}

function requireContinuable(query: URLSearchParams): void {
  const token = query.get('continue');
  if (!token) return;
  continueAt(token);
  const version = query.get('resourceVersion');
  if (version && version !== '0') {
    throw badRequest('specifying resource version is not allowed when using continue');
  }
}

const MATCH = 'resourceVersionMatch';

function listErrors(query: URLSearchParams): FieldError[] {
  const errors: FieldError[] = [];
  const match = query.get(MATCH);
  if (match) {
    if (!query.get('resourceVersion')) {
      errors.push(
        fieldError.forbidden(MATCH, `${MATCH} is forbidden unless resourceVersion is provided`),
      );
    }
    if (query.get('continue')) {
      errors.push(fieldError.forbidden(MATCH, `${MATCH} is forbidden when continue is provided`));
    }
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      errors.push(fieldError.notSupported(MATCH, match, ['Exact', 'NotOlderThan', '']));
    }
    if (match === 'Exact' && query.get('resourceVersion') === '0') {
      errors.push(
        fieldError.forbidden(MATCH, `${MATCH} "exact" is forbidden for resourceVersion "0"`),
      );
    }
  }
  if (query.get('sendInitialEvents') !== null) {
    errors.push(
      fieldError.forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'),
    );
  }
  return errors;
}

function watchErrors(query: URLSearchParams): FieldError[] {
  const errors: FieldError[] = [];
  const match = query.get(MATCH);
  const initial = query.get('sendInitialEvents') !== null;
  if (initial && match !== 'NotOlderThan') {
    errors.push(
      fieldError.forbidden(MATCH, `sendInitialEvents requires setting ${MATCH} to NotOlderThan`),
    );
  }
  if (match && !initial) {
    errors.push(
      fieldError.forbidden(
        MATCH,
        `${MATCH} is forbidden for watch unless sendInitialEvents is provided`,
      ),
    );
  }
  if (match && match !== 'NotOlderThan') {
    errors.push(fieldError.notSupported(MATCH, match, ['NotOlderThan']));
  }
  // Without a version, upstream sets the match for initial events.
  const version = query.get('resourceVersion') || '0';
  if ((match || version === '0') && query.get('continue')) {
    errors.push(fieldError.forbidden(MATCH, `${MATCH} is forbidden when continue is provided`));
  }
  return errors;
}

function parsed<T>(parse: (text: string) => T, text: string): T {
  try {
    return parse(text);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw badRequest(cause.message);
  }
}

/**
 * Returns the requested resourceVersion.
 *
 * @throws {StatusError} if it is malformed: 400 for a list and for an Event, of which upstream has no watch cache, else 500
 */
export function parseRevision({ query, verb, group, resource }: RequestInfo): number | undefined {
  const text = query.get('resourceVersion');
  if (!text) return undefined;
  const revision = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(revision)) return revision;
  const quoted = JSON.stringify(text);
  const message = `resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: invalid syntax`;
  const isEvent = resource === 'events' && (group === '' || group === 'events.k8s.io');
  if (verb === 'list' || (verb === 'get' && isEvent)) {
    throw badRequest(`invalid resource version: ${message}`);
  }
  throw StatusError.failure({ code: 500, message });
}

/** @throws {StatusError} 400 if `text` is not an integer */
export function parseInteger(text: string | null): number | undefined {
  if (text === null || text === '') return undefined;
  if (!/^-?\d{1,15}$/.test(text)) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  }
  return Number(text);
}
