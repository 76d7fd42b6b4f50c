import { isSet, numberIn, textIn } from '../../util/json-value.ts';
import type { ReceivedRequest } from './received-request.ts';
import { valueAtPath } from '../objects/field-path.ts';
import { goTypeOf, notRegistered } from '../json/go-json.ts';
import { isDryRun, isTrue } from './request-info.ts';
import { hasBody, readObject } from './request-body.ts';
import { fieldError } from '../../api/field-error.ts';
import { isRecord } from '../../util/values.ts';
import { parseInteger } from './list-options.ts';
import { badRequest, invalidError } from '../objects/status-error.ts';
import { dryRunErrors } from './write-options.ts';

/** The `meta/v1` DeleteOptions of a request. */
export interface DeletionOptions {
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: string | undefined;
  readonly dryRun: boolean;
}

const DELETE_OPTIONS = { group: 'meta.k8s.io', version: 'v1', kind: 'DeleteOptions' };
const POLICIES: ReadonlySet<string> = new Set(['Orphan', 'Background', 'Foreground']);

/**
 * Reads the options of a deletion from its body, or from its query if it has no body. As upstream, a body makes the
 * query count for nothing, also `dryRun`.
 *
 * @throws {StatusError} 400 if they are malformed, 422 if they are invalid
 */
export function deleteOptions(call: ReceivedRequest): DeletionOptions {
  const { request, info } = call;
  return checked(
    hasBody(request) ? fromBody(readObject(request, DELETE_OPTIONS)) : fromQuery(info.query),
  );
}

/** Reads the options of an eviction: a member of its body. A dry run may also be in the query. */
export function deleteOptionsOf(
  call: ReceivedRequest,
  body: Record<string, unknown>,
): DeletionOptions {
  const options = checked(fromBody(body));
  return isDryRun(call) ? { ...options, dryRun: true } : options;
}

function checked(given: DeletionOptions): DeletionOptions {
  const { propagationPolicy } = given;
  if (propagationPolicy !== undefined && !POLICIES.has(propagationPolicy)) {
    throw invalidError(DELETE_OPTIONS, '', [
      fieldError.notSupported('propagationPolicy', propagationPolicy, [
        'Foreground',
        'Background',
        'Orphan',
        'nil',
      ]),
    ]);
  }
  const { gracePeriodSeconds } = given;
  return {
    ...given,
    gracePeriodSeconds:
      gracePeriodSeconds !== undefined && gracePeriodSeconds < 0 ? 1 : gracePeriodSeconds,
  };
}

function fromBody(body: Record<string, unknown>): DeletionOptions {
  requireKind(body);
  requireTypes(body);
  const preconditions = isRecord(body['preconditions']) ? body['preconditions'] : {};
  // An empty string is a precondition that no object meets.
  const required = (field: string) =>
    isSet(preconditions, field) ? textIn(preconditions, field) : undefined;
  return {
    uid: required('uid'),
    resourceVersion: required('resourceVersion'),
    gracePeriodSeconds: numberIn(body, 'gracePeriodSeconds'),
    propagationPolicy: policy(textIn(body, 'propagationPolicy'), body['orphanDependents']),
    dryRun: dryRunOf(body['dryRun']),
  };
}

/** The fields, with the types of Go and of JSON. */
const FIELDS: readonly (readonly [path: string, goType: string, type: string])[] = [
  ['gracePeriodSeconds', 'int64', 'number'],
  ['orphanDependents', 'bool', 'bool'],
  ['propagationPolicy', 'v1.DeletionPropagation', 'string'],
  ['preconditions', 'v1.Preconditions', 'object'],
  ['preconditions.uid', 'types.UID', 'string'],
  ['preconditions.resourceVersion', 'string', 'string'],
  ['dryRun', '[]string', 'array'],
];

/** @throws {StatusError} 400 if a field has another type, with the message of Go's decoder */
function requireTypes(body: Record<string, unknown>): void {
  for (const [path, goType, type] of FIELDS) {
    const value = valueAtPath(body, path.split('.'));
    const found = goTypeOf(value);
    if (value === undefined || found === 'null') continue;
    if (found === type && (goType !== 'int64' || Number.isSafeInteger(value))) continue;
    const shown = found === 'number' ? `number ${JSON.stringify(value)}` : found;
    throw badRequest(
      `json: cannot unmarshal ${goType === 'int64' ? shown : found} into Go struct field DeleteOptions.${path} of type ${goType}`,
    );
  }
}

/** Checks the kind. DeleteOptions exist in every group. */
function requireKind({ apiVersion, kind }: Record<string, unknown>): void {
  if (kind === undefined || kind === '' || kind === DELETE_OPTIONS.kind) return;
  throw badRequest(notRegistered(kind, apiVersion ?? ''));
}

function fromQuery(query: URLSearchParams): DeletionOptions {
  const orphan = query.get('orphanDependents');
  return {
    uid: query.get('uid') || undefined,
    resourceVersion: undefined,
    gracePeriodSeconds: parseInteger(query.get('gracePeriodSeconds')),
    propagationPolicy: policy(
      query.get('propagationPolicy') ?? '',
      orphan === null ? undefined : isTrue(orphan),
    ),
    dryRun: dryRunOf(query.getAll('dryRun')),
  };
}

/** Returns the propagation policy; `orphanDependents` is its deprecated form. */
function policy(given: string, orphan: unknown): string | undefined {
  const isOld = orphan !== undefined && orphan !== null;
  if (given && isOld) {
    throw invalidError(DELETE_OPTIONS, '', [
      fieldError.invalid(
        'propagationPolicy',
        given,
        'orphanDependents and deletionPropagation cannot be both set',
      ),
    ]);
  }
  if (given) return given;
  return !isOld ? undefined : orphan === true ? 'Orphan' : 'Background';
}

/** @throws {StatusError} 422 for any value except `All` */
function dryRunOf(given: unknown): boolean {
  const stages = Array.isArray(given) ? given : [];
  const errors = dryRunErrors(stages);
  if (errors.length > 0) throw invalidError(DELETE_OPTIONS, '', errors);
  return stages.length > 0;
}
