import { keyOf } from '../api/object-key.ts';
import { PROCESS } from './explored-process.ts';
import type { ChangeRecord } from './history.ts';

export function isByProcess({ by }: Pick<ChangeRecord, 'by'>): boolean {
  return by.startsWith(PROCESS);
}

/** Returns the words of a story: `creates pods default/web-0`. */
export function describeChange({ verb, resource, object }: ChangeRecord): string {
  return `${verb}s ${pluralOf(resource)} ${keyOf(object)}`;
}

export function pluralOf(resource: string): string {
  return resource.slice(resource.indexOf('/') + 1);
}
