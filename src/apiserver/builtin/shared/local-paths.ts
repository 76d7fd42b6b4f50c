import type { CheckedObject } from '../../objects/checked-object.ts';

/**
 * Reports a path that is absolute or leads out of its folder.
 *
 * @param path the path, if it is not that of the field
 */
export function validateLocalPath(
  holder: CheckedObject,
  field: string,
  path: string = holder.text(field),
): void {
  if (path.startsWith('/')) holder.invalid(field, 'must be a relative path', path);
  requireNoBacksteps(holder, field, path);
}

/** As validateLocalPath; a name in the folder of a volume does not start with two dots, either. */
export function validateVolumePath(
  holder: CheckedObject,
  field: string,
  path: string = holder.text(field),
): void {
  validateLocalPath(holder, field, path);
  if (path.startsWith('..') && !path.startsWith('../')) {
    holder.invalid(field, "must not start with '..'", path);
  }
}

export function requireNoBacksteps(
  holder: CheckedObject,
  field: string,
  path: string = holder.text(field),
): void {
  if (path.split('/').includes('..')) holder.invalid(field, "must not contain '..'", path);
}
