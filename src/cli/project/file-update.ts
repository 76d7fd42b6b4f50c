import type { ProjectFiles } from '../../codegen/template.ts';
import { jsonIfValid } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';
import { mergeTexts } from './git.ts';
import { mergeJson } from './merge-json.ts';

/** What an update does with a file. */
export type UpdateState =
  'unchanged' | 'updated' | 'merged' | 'conflict' | 'new' | 'generated' | 'deleted' | 'obsolete';

/** The update of one file. */
export interface FileUpdate {
  readonly path: string;
  readonly state: UpdateState;
  /** The new text, if the file changes. */
  readonly text?: string;
  /** What to do about it. */
  readonly hint?: string;
}

/** The files of a project: in the folder, as `init` wrote them, and as it would write them now. */
export interface ProjectVersions {
  readonly ours: ProjectFiles;
  readonly base: ProjectFiles;
  readonly theirs: ProjectFiles;
  /** The versions of this package that `base` and `theirs` are of. */
  readonly versions: readonly [base: string, theirs: string];
}

/** Marks the first line of a conflict. */
export const CONFLICT = /^<<<<<<< yours$/m;

/** A file that a command writes: the first lines say so. */
const GENERATED = /^(?:\/\/|#) Generated .*Do not edit\.$/m;

/** Returns what an update does with each file. Changes of the author are never removed, and no file is deleted. */
export async function fileUpdates(project: ProjectVersions): Promise<FileUpdate[]> {
  const paths = new Set([...project.base.keys(), ...project.theirs.keys()]);
  const updates = await Promise.all([...paths].toSorted().map((path) => updateOf(path, project)));
  return updates.filter((update) => update !== undefined);
}

async function updateOf(
  path: string,
  { ours, base, theirs, versions }: ProjectVersions,
): Promise<FileUpdate | undefined> {
  const [mine, former, next] = [ours.get(path), base.get(path), theirs.get(path)];
  if (next === undefined) {
    if (mine === undefined) return undefined;
    return { path, state: 'obsolete', hint: 'a new project does not have it' };
  }
  if (mine === undefined) {
    if (former === undefined) return { path, state: 'new', text: next };
    return { path, state: 'deleted', hint: 'you deleted it: it stays deleted' };
  }
  if (mine === next || former === next) return { path, state: 'unchanged' };
  if (mine === former) return { path, state: 'updated', text: next };
  if (GENERATED.test(next) && GENERATED.test(mine))
    return { path, state: 'generated', hint: 'npm run generate' };
  const fields = path.endsWith('package.json') && mergedFields(mine, former ?? '{}', next);
  if (fields) {
    const { text, conflicts } = fields;
    if (conflicts.length > 0) return { path, state: 'conflict', text, hint: conflicts.join('; ') };
    return mergedTo(path, text, mine);
  }
  const [from, to] = versions.map((version) => `crd-controller ${version}`) as [string, string];
  const { text, conflicts } = await mergeTexts({
    texts: [mine, former ?? '', next],
    labels: ['yours', from, to],
  });
  if (conflicts > 0) return { path, state: 'conflict', text };
  return mergedTo(path, text, mine);
}

function mergedTo(path: string, text: string, mine: string): FileUpdate {
  return text === mine ? { path, state: 'unchanged' } : { path, state: 'merged', text };
}

/** Merges `package.json`: adjacent lines of it are no conflict. Undefined if a text is no JSON object. */
function mergedFields(...texts: [string, string, string]) {
  const [ours, base, theirs] = texts.map(objectIn);
  if (!ours || !base || !theirs) return undefined;
  const { value, conflicts } = mergeJson(ours, base, theirs);
  return { text: `${JSON.stringify(value, null, 2)}\n`, conflicts };
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  const value = jsonIfValid(text);
  return isRecord(value) ? value : undefined;
}
