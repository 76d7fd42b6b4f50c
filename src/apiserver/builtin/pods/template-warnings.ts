import { nameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import type { KindWarnings } from '../shared/builtin-kind.ts';
import { podWarnings } from './pod-warnings.ts';

/** Warnings of a new template, or of one whose workload has changed. */
export function workloadWarnings(path: string, hasName: boolean): KindWarnings {
  return (object, previous) => {
    if (previous && previous.metadata.generation === object.value.metadata.generation) return [];
    const ofName = hasName && !previous ? nameWarnings(object, 'Pod names and hostnames') : [];
    return [...ofName, ...podWarnings(partAt(object, path))];
  };
}

export function partAt(object: CheckedObject, path: string): CheckedObject {
  return path.split('.').reduce((part, field) => part.in(field), object);
}

export function nameWarnings({ value }: CheckedObject<StoredObject>, use: string): string[] {
  const problems = nameProblems(value.metadata.name, 'dns1123Label');
  if (problems.length === 0) return [];
  return [
    `metadata.name: this is used in ${use}, which can result in surprising behavior; a DNS label is recommended: [${problems.join(' ')}]`,
  ];
}
