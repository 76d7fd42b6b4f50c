import type { ObjectKey } from '../../api/object-key.ts';
import type { Resource } from '../../api/resource.ts';
import type { FieldPath } from '../changed-paths.ts';
import type { WrittenField, WrittenObject } from '../written-object.ts';

/** A key that keeps waking itself. */
export interface HotLoop {
  readonly key: ObjectKey;
  /** `selfFed`: by its own writes alone. `disputed`: by writes that others overwrite. */
  readonly kind: 'selfFed' | 'disputed';
  /** Of the object whose fields flap: the key's own or another, as a child. */
  readonly resource: Resource;
  readonly namespace: string | undefined;
  readonly name: string;
  /** The fields that flap, a few of them. */
  readonly paths: readonly FieldPath[];
  /** How often they had flapped when it was found, in how many milliseconds. */
  readonly times: number;
  readonly withinMs: number;
  /** Who the key writes as, if its writes say so. */
  readonly fieldManager: string | undefined;
}

/** Changes of a field, by as many runs that only own writes had woken, that make a hot loop. */
export const SELF_FED_CHANGES = 10;

/** Times that others change a field after the key has that make a hot loop. */
export const OVERWRITES = 5;

const MOST_PATHS = 3;

/** The loop that `key` is in, by what is known of the objects that it writes. */
export function findLoop(key: ObjectKey, objects: readonly WrittenObject[]): HotLoop | undefined {
  for (const { fields, resource, namespace, name, fieldManager } of objects) {
    const about = { key, resource, namespace, name, fieldManager };
    const selfFed = fields.filter((field) => field.selfFed >= SELF_FED_CHANGES);
    if (selfFed.length > 0) return { ...about, ...summary('selfFed', selfFed) };
    // While it is as the others want it, it can be found out who they are.
    const disputed = fields.filter(
      ({ overwritten, lastBy }) => overwritten >= OVERWRITES && lastBy === 'others',
    );
    if (disputed.length > 0) return { ...about, ...summary('disputed', disputed) };
  }
  return undefined;
}

function summary(
  kind: HotLoop['kind'],
  fields: readonly WrittenField[],
): Pick<HotLoop, 'kind' | 'paths' | 'times' | 'withinMs'> {
  const count = (field: WrittenField) => (kind === 'selfFed' ? field.selfFed : field.overwritten);
  return {
    kind,
    paths: fields.slice(0, MOST_PATHS).map(({ path }) => path),
    times: Math.max(...fields.map(count)),
    withinMs: Math.max(...fields.map(({ lastMs, sinceMs }) => lastMs - sinceMs)),
  };
}
