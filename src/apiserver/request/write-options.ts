import type { ReceivedRequest } from './received-request.ts';
import { contentType, isApplyPatch } from './request-body.ts';
import { isTrue } from './request-info.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';
import { managerErrors } from '../objects/manager-name.ts';
import { invalidError } from '../objects/status-error.ts';

const KINDS = { create: 'CreateOptions', update: 'UpdateOptions', patch: 'PatchOptions' } as const;

/**
 * Looks at the options in the query of a request that writes. A misspelt `dryRun` must never write
 * for real.
 *
 * @throws {StatusError} 422 naming the options that are wrong
 */
export function requireWriteOptions(call: ReceivedRequest): void {
  const { verb, query } = call.info;
  if (verb !== 'create' && verb !== 'update' && verb !== 'patch') return;
  const errors = [
    ...(verb === 'patch' ? patchErrors(call) : []),
    ...managerErrors(query.get('fieldManager') ?? '', 'fieldManager'),
    ...dryRunErrors(query.getAll('dryRun')),
    ...validationErrors(query.get('fieldValidation') ?? ''),
  ];
  if (errors.length > 0)
    throw invalidError({ group: 'meta.k8s.io', kind: KINDS[verb] }, '', errors);
}

export function dryRunErrors(stages: readonly unknown[]): FieldError[] {
  return stages.every((stage) => stage === 'All')
    ? []
    : [fieldError.notSupported('dryRun', stages, ['All'])];
}

function patchErrors({ info: { query }, request }: ReceivedRequest): FieldError[] {
  if (isApplyPatch(contentType(request))) {
    return query.get('fieldManager')
      ? []
      : [fieldError.required('fieldManager', 'is required for apply patch')];
  }
  return isTrue(query.get('force'))
    ? [fieldError.forbidden('force', 'may not be specified for non-apply patch')]
    : [];
}

function validationErrors(validation: string): FieldError[] {
  return ['', 'Ignore', 'Warn', 'Strict'].includes(validation)
    ? []
    : [fieldError.notSupported('fieldValidation', validation, ['', 'Ignore', 'Strict', 'Warn'])];
}
