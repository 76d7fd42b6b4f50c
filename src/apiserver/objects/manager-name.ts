import type { FieldError } from '../../api/field-error.ts';
import { fieldError, MAX_FIELD_ERRORS } from '../../api/field-error.ts';
import { utf8Length } from '../../util/bytes.ts';

/** In bytes. */
export const LONGEST_MANAGER = 128;

const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/** Validates the name of a field manager. */
export function managerErrors(manager: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (utf8Length(manager) > LONGEST_MANAGER) {
    errors.push(fieldError.tooLong(path, LONGEST_MANAGER));
  }
  for (const { 0: found, index } of manager.matchAll(UNPRINTABLE)) {
    const code = (found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    const at = utf8Length(manager.slice(0, index));
    const why = `invalid character U+${code} (at position ${at})`;
    errors.push(fieldError.invalid(path, manager, why));
    if (errors.length === MAX_FIELD_ERRORS) break;
  }
  return errors;
}
