import type { Call } from './call.ts';
import { isDryRun } from './call.ts';
import { isTrue } from './request-info.ts';
import { hasBody, readObject } from './request-body.ts';
import { fieldError } from './schema/field-error.ts';
import { isRecord } from '../util/values.ts';
import { badRequest, invalid } from './status-error.ts';
import { dryRunErrors } from './write-options.ts';

/** The `meta/v1` DeleteOptions of a request. */
export interface DeleteOptions {
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: string | undefined;
  readonly dryRun: boolean;
}

const DELETE_OPTIONS = { group: 'meta.k8s.io', version: 'v1', kind: 'DeleteOptions' };
const POLICIES: ReadonlySet<string> = new Set(['Orphan', 'Background', 'Foreground']);

/**
 * Reads the options of a deletion from its body, or from its query if it has no body.
 *
 * @throws {StatusError} 400 if they are malformed, 422 if they are invalid
 */
export function deleteOptions(call: Call): DeleteOptions {
  return checked(
    call,
    hasBody(call.request) ? fromBody(readObject(call.request, DELETE_OPTIONS)) : fromQuery(call),
  );
}

/** Reads the options of a deletion from a member of another body. */
export function deleteOptionsOf(call: Call, body: Record<string, unknown>): DeleteOptions {
  return checked(call, fromBody(body));
}

function checked(call: Call, given: DeleteOptions): DeleteOptions {
  const { propagationPolicy } = given;
  if (propagationPolicy !== undefined && !POLICIES.has(propagationPolicy)) {
    throw invalid(DELETE_OPTIONS, '', [
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
    dryRun: given.dryRun || isDryRun(call),
  };
}

function fromBody(body: Record<string, unknown>): DeleteOptions {
  requireKind(body);
  const preconditions = isRecord(body['preconditions']) ? body['preconditions'] : {};
  const { gracePeriodSeconds, dryRun } = body;
  return {
    uid: text('preconditions.uid', preconditions['uid']),
    resourceVersion: text('preconditions.resourceVersion', preconditions['resourceVersion']),
    gracePeriodSeconds: seconds(gracePeriodSeconds),
    propagationPolicy: policy(
      text('propagationPolicy', body['propagationPolicy']),
      body['orphanDependents'] ?? undefined,
    ),
    dryRun: dryRunOf(dryRun),
  };
}

/** Checks the kind. DeleteOptions exist in every group. */
function requireKind({ apiVersion, kind }: Record<string, unknown>): void {
  if (kind === undefined || kind === '' || kind === DELETE_OPTIONS.kind) return;
  throw badRequest(
    `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion ?? '')} in scheme "pkg/runtime/scheme.go:111"`,
  );
}

function fromQuery({ info: { query } }: Call): DeleteOptions {
  const grace = query.get('gracePeriodSeconds');
  const orphan = query.get('orphanDependents');
  return {
    uid: undefined,
    resourceVersion: undefined,
    gracePeriodSeconds: grace === null ? undefined : seconds(Number(grace)),
    propagationPolicy: policy(
      query.get('propagationPolicy') ?? undefined,
      orphan === null ? undefined : isTrue(orphan),
    ),
    dryRun: dryRunOf(query.getAll('dryRun')),
  };
}

/** Returns the propagation policy; `orphanDependents` is its deprecated form. */
function policy(given: string | undefined, orphan: unknown): string | undefined {
  if (given && orphan !== undefined) {
    throw invalid(DELETE_OPTIONS, '', [
      fieldError.invalid(
        'propagationPolicy',
        given,
        'orphanDependents and deletionPropagation cannot be both set',
      ),
    ]);
  }
  if (given) return given;
  return orphan === undefined ? undefined : orphan === true ? 'Orphan' : 'Background';
}

/** @throws {StatusError} 422 for any value except `All` */
function dryRunOf(given: unknown): boolean {
  const stages = Array.isArray(given) ? given : [];
  const errors = dryRunErrors(stages);
  if (errors.length > 0) throw invalid(DELETE_OPTIONS, '', errors);
  return stages.length > 0;
}

function text(field: string, value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'string') return value;
  throw badRequest(`DeleteOptions: ${field} must be a string: got ${JSON.stringify(value)}`);
}

function seconds(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (Number.isSafeInteger(value)) return Number(value);
  throw badRequest(
    `DeleteOptions: gracePeriodSeconds must be an integer: got ${JSON.stringify(value)}`,
  );
}
