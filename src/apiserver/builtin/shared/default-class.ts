import { compareText } from '../../../util/values.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';

/** Returns the name of the class that an annotation marks as the default: the newest one, then the first by name. */
export function defaultClassName(
  classes: readonly StoredObject[],
  annotations: readonly string[],
): string | undefined {
  return classes
    .filter(({ metadata }) => annotations.some((name) => metadata.annotations?.[name] === 'true'))
    .map(({ metadata }) => metadata)
    .sort(
      (a, b) =>
        compareText(b.creationTimestamp, a.creationTimestamp) || compareText(a.name, b.name),
    )[0]?.name;
}
