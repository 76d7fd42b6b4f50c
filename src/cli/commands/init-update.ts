import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { projectOf } from '../../codegen/project-steps.ts';
import { isRecord } from '../../util/values.ts';
import { EXIT_FAILURE, EXIT_OK, onPath, UsageError } from '../common/errors.ts';
import type { CommandContext } from '../program/program.ts';
import { manifest } from '../program/package.ts';
import { CONFLICT, fileUpdates } from '../project/file-update.ts';
import type { FileUpdate } from '../project/file-update.ts';
import { patchOf } from '../project/git.ts';
import { PROJECT_RECORD, readRecord, recordText } from '../project/project-record.ts';
import { readTemplate } from '../project/template-files.ts';

/** How a project is updated. */
export interface UpdateOptions extends Pick<CommandContext, 'print'> {
  readonly dir: string;
  /** Whether the changes are printed and not written. */
  readonly 'dry-run': boolean;
  /** The version of this package in a new `package.json`. */
  readonly dependency: string;
}

/**
 * Merges what this version of `init` would write into a project that a former version wrote. Conflicts get markers, as
 * in git.
 *
 * @returns 1 with conflicts
 * @throws {UsageError} if the folder has no record of what was written, or conflicts of a former update
 */
export async function updateProject(options: UpdateOptions): Promise<number> {
  const { dir, print, dependency } = options;
  const record = await readRecord(dir);
  if (!record) {
    throw new UsageError(
      `${join(dir, PROJECT_RECORD)} does not exist. Create the same project with the version that created this one (init --dir=FOLDER), and copy this file from it`,
    );
  }
  const { version } = manifest();
  if (record.version.localeCompare(version, undefined, { numeric: true }) > 0) {
    throw new UsageError(
      `The project was written by crd-controller ${record.version}, this is ${version}: run npx crd-controller@latest init --update`,
    );
  }
  const templates = await Promise.all(record.steps.map(({ form }) => readTemplate(form)));
  const own = await textOf(dir, 'package.json');
  const theirs = projectOf(record.steps, templates, dependencyIn(own) ?? dependency);
  const ours = new Map<string, string>();
  for (const path of new Set([...record.files.keys(), ...theirs.keys()])) {
    const text = await textOf(dir, path);
    if (text !== undefined) ours.set(path, text);
  }
  const unresolved = [...ours].filter(([, text]) => CONFLICT.test(text)).map(([path]) => path);
  if (unresolved.length > 0) {
    throw new UsageError(`Resolve the conflicts of the former update first: ${unresolved.join()}`);
  }
  const versions = [record.version, version] as const;
  const updates = await fileUpdates({ ours, base: record.files, theirs, versions });
  const written = updates.filter(({ text }) => text !== undefined);
  if (options['dry-run']) {
    const patch = await patchOf(
      written.map(({ path, text = '' }) => {
        const from = ours.get(path);
        return { path, to: text, ...(from !== undefined && { from }) };
      }),
    );
    if (patch) print(patch.trimEnd());
  } else {
    await onPath(`cannot use --dir=${dir}`, async () => {
      for (const { path, text = '' } of written) {
        await mkdir(dirname(join(dir, path)), { recursive: true });
        await writeFile(join(dir, path), text);
      }
      // Last, so that an interrupted update can be repeated.
      const next = recordText({ version, steps: record.steps, files: theirs });
      await writeFile(join(dir, PROJECT_RECORD), next);
    });
  }
  return report(updates, options, versions);
}

async function textOf(dir: string, path: string): Promise<string | undefined> {
  const file = join(dir, path);
  return existsSync(file) ? onPath(`cannot read ${file}`, () => readFile(file, 'utf8')) : undefined;
}

/** Returns the version of this package in a `package.json`, which is not the update's to change. */
function dependencyIn(text: string | undefined): string | undefined {
  const { dependencies }: { readonly dependencies?: unknown } = JSON.parse(text ?? '{}');
  const range = isRecord(dependencies) ? dependencies['crd-controller'] : undefined;
  return typeof range === 'string' ? range : undefined;
}

function report(
  updates: readonly FileUpdate[],
  { print, 'dry-run': isDry }: UpdateOptions,
  [from, to]: readonly [string, string],
): number {
  const shown = updates.filter(({ state }) => state !== 'unchanged');
  for (const { path, state, hint } of shown)
    print(`${state.padEnd(9)} ${path}${hint === undefined ? '' : ` (${hint})`}`);
  print(`${updates.length - shown.length} files unchanged; from version ${from} to ${to}`);
  const conflicts = shown.filter(({ state }) => state === 'conflict');
  if (!isDry && shown.some(({ text }) => text !== undefined)) {
    const resolve = conflicts.length > 0 ? ['resolve the conflicts'] : [];
    const steps = ['git diff', ...resolve, 'npm install', 'npm run generate', 'npm test'];
    print(`\nNext:\n\n${steps.map((step) => `  ${step}`).join('\n')}`);
  }
  return conflicts.length > 0 ? EXIT_FAILURE : EXIT_OK;
}
