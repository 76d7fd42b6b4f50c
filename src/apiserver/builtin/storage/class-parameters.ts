import { utf8Length } from '../../../util/bytes.ts';
import { qualifiedNameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';

const MAX_PARAMETERS = 512;
const MAX_BYTES = 256 * 1024;

/** Reports what is wrong with the driver of a class of storage and with its parameters. */
export function validateDriverAndParameters(object: CheckedObject, driver: string): void {
  const name = object.text(driver);
  object.requireText(driver);
  if (name !== '')
    object.problems(driver, qualifiedNameProblems(name.toLowerCase()), name.toLowerCase());
  const parameters = Object.entries(object.in('parameters').value);
  if (parameters.length > MAX_PARAMETERS) {
    object.tooLong('parameters', MAX_PARAMETERS);
    return;
  }
  if (parameters.some(([key]) => key === '')) {
    object.invalid('parameters', 'field can not be empty.', '');
  }
  const bytes = parameters.reduce((sum, pair) => sum + utf8Length(pair.join('')), 0);
  if (bytes > MAX_BYTES) object.tooLong('parameters', MAX_BYTES);
}
