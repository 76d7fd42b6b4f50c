import { equalJson } from '../../api/equal.ts';
import { isRecord } from '../../util/values.ts';
import { valueAt } from '../changed-paths.ts';
import type { FieldPath } from '../changed-paths.ts';

/**
 * The managers that, by an object's `metadata.managedFields`, have set the field at `path`, or what it
 * is a part of. Of a field that is gone nobody knows who removed it.
 */
export function ownersOf(object: unknown, path: FieldPath): string[] {
  const entries = valueAt(object, ['metadata', 'managedFields']);
  if (!Array.isArray(entries)) return [];
  const owners = new Set<string>();
  for (const entry of entries as unknown[]) {
    const manager = valueAt(entry, ['manager']);
    if (typeof manager === 'string' && owns(valueAt(entry, ['fieldsV1']), object, path)) {
      owners.add(manager);
    }
  }
  return [...owners];
}

/** Follows `path` down a set of fields (`f:` members, `k:` elements by key) and the object itself. */
function owns(fieldsV1: unknown, object: unknown, path: FieldPath): boolean {
  let fields = fieldsV1;
  let value = object;
  for (const [depth, step] of path.entries()) {
    if (!isRecord(fields)) return false;
    // Nothing is told apart below: it is set as a whole.
    if (depth > 0 && Object.keys(fields).every((name) => name === '.')) return true;
    value = valueAt(value, [step]);
    const name = typeof step === 'string' ? `f:${step}` : elementName(fields, value, step);
    if (name === undefined || !Object.hasOwn(fields, name)) return false;
    fields = fields[name];
  }
  return true;
}

/** The member of `fields` that stands for this element of a list. */
function elementName(
  fields: Record<string, unknown>,
  element: unknown,
  index: number,
): string | undefined {
  return Object.keys(fields).find((name) => {
    if (name === `i:${index}`) return true;
    if (!name.startsWith('k:') && !name.startsWith('v:')) return false;
    const told = parsed(name.slice(2));
    if (name.startsWith('v:')) return equalJson(told, element);
    return isRecord(told) && Object.keys(told).every((key) => isSame(told, element, key));
  });
}

function isSame(told: unknown, element: unknown, key: string): boolean {
  return equalJson(valueAt(told, [key]), valueAt(element, [key]));
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
