import type { ReceivedRequest } from './received-request.ts';
import { duplicateFields, strictDuplicates } from './request-body.ts';

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

/** Returns the `fieldValidation` of the query, which is already validated. */
export function fieldValidationOf({ info }: ReceivedRequest): FieldValidation {
  const value = info.query.get('fieldValidation');
  return value === 'Ignore' || value === 'Strict' ? value : 'Warn';
}

/** Returns the duplicate fields in the body, and those of `unknown` in JSON, unless the client ignores them. */
export function duplicatesOf(
  call: ReceivedRequest,
  unknown?: readonly string[],
  decoded?: object,
): readonly string[] {
  return fieldValidationOf(call) === 'Ignore'
    ? []
    : duplicateFields(call.request, unknown, decoded);
}

/**
 * Handles duplicate and unknown fields by the requested `fieldValidation`.
 *
 * @throws {StatusError} the result of `toError` for Strict
 */
export function reportStrictErrors(
  call: ReceivedRequest,
  duplicates: readonly string[],
  strictErrors: readonly string[],
  toError: (message: string) => Error,
): void {
  if (duplicates.length + strictErrors.length === 0) return;
  switch (fieldValidationOf(call)) {
    case 'Ignore':
      return;
    case 'Warn':
      for (const strictError of [...duplicates, ...strictErrors]) call.warnings.push(strictError);
      return;
    case 'Strict': {
      const problems = [...strictDuplicates(call.request, duplicates), ...strictErrors];
      throw toError(`strict decoding error: ${problems.join(', ')}`);
    }
  }
}
