import type { Condition } from '../../api/conditions.ts';
import { setCondition } from '../../api/conditions.ts';
import type { Crd } from './custom-resource.ts';
import { caBundleProblem } from './crd-validation.ts';

type Names = Crd['spec']['names'];
type SingleName = 'plural' | 'singular' | 'kind' | 'listKind';
type Conditions = Parameters<typeof setCondition>[0];

/** The part of a CRD's status that depends on its names and on those of other CRDs. */
export interface NameStatus {
  readonly acceptedNames: object;
  readonly conditions: Condition[];
  /** Whether its resources are served. */
  readonly established: boolean;
}

/**
 * Decides which names of a CRD are accepted. A name of another CRD in its group is rejected. The
 * resource is established when all names of its first set are accepted.
 */
export function nameStatus(crd: Crd, others: readonly Crd[], now: number): NameStatus {
  const taken = takenNames(crd, others);
  const wanted = completeNames(crd.spec.names);
  const accepted = crd.status?.acceptedNames;
  const next: { -readonly [K in keyof Names]: Names[K] } = {
    ...accepted,
    plural: accepted?.plural ?? '',
    kind: accepted?.kind ?? '',
  };
  let problem: { reason: string; message: string } | undefined;

  const claim = (field: SingleName, names: ReadonlySet<string>) => {
    const name = wanted[field] ?? '';
    if (name === (accepted?.[field] ?? '') || !names.has(name)) next[field] = name;
    else problem = conflict(field, [name]);
  };
  // The condition reports the last of several conflicts.
  claim('plural', taken.resources);
  claim('singular', taken.resources);
  const shortNames = wanted.shortNames ?? [];
  const refused = shortNames.filter(
    (name) => !accepted?.shortNames?.includes(name) && taken.resources.has(name),
  );
  if (refused.length > 0) problem = conflict('shortNames', refused);
  else if (shortNames.length > 0) next.shortNames = shortNames;
  else delete next.shortNames;
  claim('kind', taken.kinds);
  claim('listKind', taken.kinds);
  if (wanted.categories) next.categories = wanted.categories;
  else delete next.categories;

  const current = (crd.status?.conditions ?? undefined) as Conditions;
  const withNames = setCondition(
    current,
    problem
      ? { type: 'NamesAccepted', status: 'False', ...problem }
      : {
          type: 'NamesAccepted',
          status: 'True',
          reason: 'NoConflicts',
          message: 'no conflicts found',
        },
    now,
  );
  if (isEstablished(crd)) return { acceptedNames: next, conditions: withNames, established: true };
  const refusal = problem
    ? { reason: 'NotAccepted', message: 'not all names are accepted' }
    : caBundleProblem({ ...crd }) !== undefined && {
        reason: 'InvalidCABundle',
        message: 'The conversion webhook CABundle is invalid',
      };
  const conditions = setCondition(
    withNames,
    refusal
      ? { type: 'Established', status: 'False', ...refusal }
      : {
          type: 'Established',
          status: 'True',
          reason: 'InitialNamesAccepted',
          message: 'the initial names have been accepted',
        },
    now,
  );
  return { acceptedNames: next, conditions, established: !refusal };
}

export function isEstablished(crd: Crd): boolean {
  return (
    crd.status?.conditions?.some(
      ({ type, status }) => type === 'Established' && status === 'True',
    ) ?? false
  );
}

/** `KindConflict` "Count" is already in use */
function conflict(
  field: SingleName | 'shortNames',
  names: readonly string[],
): { reason: string; message: string } {
  const messages = names.map((name) => `${JSON.stringify(name)} is already in use`);
  const [only = '', ...others] = messages;
  return {
    reason: `${field.slice(0, 1).toUpperCase()}${field.slice(1)}Conflict`,
    message: others.length > 0 ? `[${messages.join(', ')}]` : only,
  };
}

function completeNames(names: Names): Names {
  return {
    ...names,
    singular: names.singular || names.kind.toLowerCase(),
    listKind: names.listKind || `${names.kind}List`,
  };
}

function takenNames(
  crd: Crd,
  others: readonly Crd[],
): { resources: Set<string>; kinds: Set<string> } {
  const resources = new Set<string>();
  const kinds = new Set<string>();
  for (const { spec, status, metadata } of others) {
    const names = status?.acceptedNames;
    if (!names || spec.group !== crd.spec.group || metadata.name === crd.metadata.name) continue;
    for (const name of [names.plural, names.singular, ...(names.shortNames ?? [])]) {
      if (name) resources.add(name);
    }
    for (const kind of [names.kind, names.listKind]) if (kind) kinds.add(kind);
  }
  return { resources, kinds };
}
