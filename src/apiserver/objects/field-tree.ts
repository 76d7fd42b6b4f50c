import { isRecord } from '../../util/values.ts';

/** Paths of fields as a tree. */
export interface FieldTree {
  readonly fields: ReadonlyMap<string, FieldTree>;
  /** Whether the field is deleted, too, if it has no other fields. */
  readonly isDeletedWhenEmpty: boolean;
}

const LIST = '[]';
const MAP = '{}';
const SEGMENT = /\[[^\]]*\]|\{\}|[^.[{]+/g;

/**
 * Returns a tree of paths: `spec.devices[].attributes{}.bools`, `metadata.annotations[example.com/a]`. A field with a
 * question mark, `lifecycle?.stopSignal`, is deleted if nothing is left in it.
 */
export function fieldTree(paths: readonly string[]): FieldTree {
  const root = branch();
  for (const path of paths) {
    let current = root;
    for (const [segment] of path.matchAll(SEGMENT)) {
      const field = segment.replace(/\?$/, '').replace(/^\[(.+)\]$/, '$1');
      const next = current.fields.get(field) ?? branch(segment !== field);
      current.fields.set(field, next);
      current = next;
    }
  }
  return root;
}

interface Branch extends FieldTree {
  readonly fields: Map<string, Branch>;
}

function branch(isDeletedWhenEmpty = false): Branch {
  return { fields: new Map(), isDeletedWhenEmpty };
}

/** Deletes the fields of a tree from a value. */
export function deleteFields(value: unknown, { fields }: FieldTree): void {
  if (Array.isArray(value)) {
    const ofItems = fields.get(LIST);
    if (ofItems) for (const item of value) deleteFields(item, ofItems);
    return;
  }
  if (!isRecord(value)) return;
  const ofValues = fields.get(MAP);
  if (ofValues) for (const each of Object.values(value)) deleteFields(each, ofValues);
  for (const [field, inner] of fields) {
    if (!Object.hasOwn(value, field)) continue;
    const part = value[field];
    const wasEmpty = isEmpty(part);
    deleteFields(part, inner);
    const isDeleted = inner.isDeletedWhenEmpty && !wasEmpty && isEmpty(part);
    if (inner.fields.size === 0 || isDeleted) delete value[field];
  }
}

function isEmpty(value: unknown): boolean {
  return isRecord(value) && Object.keys(value).length === 0;
}
