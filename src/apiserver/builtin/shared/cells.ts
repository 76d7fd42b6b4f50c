import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn, objectsIn, textIn, textsIn } from '../../../util/json-value.ts';
import { compareText, isRecord } from '../../../util/values.ts';
import { valueAtPath } from '../../objects/field-path.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';

/** The labels at a path, ordered by key. */
export function labelsText(object: StoredObject, path: readonly string[]): string {
  const labels = valueAtPath(object, path);
  const pairs = Object.entries(isRecord(labels) ? labels : {});
  const texts = pairs.map(([key, value]) => `${key}=${String(value)}`);
  return texts.sort().join(',') || '<none>';
}

/** A label selector as servers print it: requirements ordered by key, their values ordered too. */
export function selectorCell(selector: JsonObject | undefined): string {
  const equalities = Object.entries(objectIn(selector, 'matchLabels') ?? {}).map(
    ([key, value]) => ({ key, text: `${key}=${String(value)}` }),
  );
  const expressions = objectsIn(selector, 'matchExpressions').map((requirement) => {
    const key = textIn(requirement, 'key');
    const values = textsIn(requirement, 'values').sort().join(',');
    return { key, text: expressionText(key, textIn(requirement, 'operator'), values) };
  });
  const all = [...equalities, ...expressions].sort((a, b) => compareText(a.key, b.key));
  return all.map(({ text }) => text).join(',') || '<none>';
}

function expressionText(key: string, operator: string, values: string): string {
  switch (operator) {
    case 'Exists':
      return key;
    case 'DoesNotExist':
      return `!${key}`;
    default:
      return `${key} ${operator.toLowerCase()} (${values})`;
  }
}

export function conditionOfType(object: StoredObject, type: string): JsonObject | undefined {
  const conditions = objectsIn(objectIn(object, 'status'), 'conditions');
  return conditions.find((each) => each['type'] === type);
}

/** Up to three texts, and the number of the others. */
export function firstThree(all: readonly string[], absent: string): string {
  const shown = all.slice(0, 3).join(',');
  return all.length > 3 ? `${shown} + ${all.length - 3} more...` : shown || absent;
}
