import { equalJson } from '../../../api/equal.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { numberIn, textIn } from '../../../util/json-value.ts';

/** Returns the tolerations without those that another one includes. Of equal ones, the first one stays. */
export function mergeTolerations(all: readonly JsonObject[]): readonly JsonObject[] {
  return all.filter(
    (toleration, index) =>
      !all.some(
        (other, place) =>
          place !== index &&
          includes(other, toleration) &&
          (place < index || !equalJson(other, toleration)),
      ),
  );
}

/** Whether `wide` tolerates each taint that `narrow` tolerates, for as long. */
function includes(wide: JsonObject, narrow: JsonObject): boolean {
  if (equalJson(wide, narrow)) return true;
  const [key, effect] = [textIn(wide, 'key'), textIn(wide, 'effect')];
  const isOfAll = textIn(wide, 'operator') === 'Exists';
  if (textIn(narrow, 'key') !== key && !(key === '' && isOfAll)) return false;
  if (effect !== '' && textIn(narrow, 'effect') !== effect) return false;
  const seconds = numberIn(wide, 'tolerationSeconds');
  const least = numberIn(narrow, 'tolerationSeconds') ?? Infinity;
  if (effect === 'NoExecute' && seconds !== undefined && least > seconds) return false;
  if (isOfAll) return true;
  return (
    ['', 'Equal'].includes(textIn(wide, 'operator')) &&
    textIn(narrow, 'operator') === 'Equal' &&
    textIn(wide, 'value') === textIn(narrow, 'value')
  );
}
