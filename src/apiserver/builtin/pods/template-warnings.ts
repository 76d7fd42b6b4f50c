import { nameProblems } from '../../../api/object-names.ts';
import { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { podWarnings } from './pod-warnings.ts';
import type { Warnings } from '../shared/warnings.ts';

/** Warnings of a new template, or of one whose workload has changed. */
export function workloadWarnings(path: string, hasName: boolean): Warnings {
  return (object, previous) => {
    if (previous && previous.metadata.generation === object.metadata.generation) return [];
    const ofName = hasName && !previous ? nameWarnings(object, 'Pod names and hostnames') : [];
    return [...ofName, ...podWarnings(partAt(object, path))];
  };
}

export function partAt(object: StoredObject, path: string): CheckedObject {
  const whole: CheckedObject = new CheckedObject(object);
  return path.split('.').reduce((part, field) => part.in(field), whole);
}

export function nameWarnings({ metadata }: { metadata: { name: string } }, use: string): string[] {
  const problems = nameProblems(metadata.name, 'dns1123Label');
  if (problems.length === 0) return [];
  return [
    `metadata.name: this is used in ${use}, which can result in surprising behavior; a DNS label is recommended: [${problems.join(' ')}]`,
  ];
}
