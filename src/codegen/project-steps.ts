import { addition, scaffold } from './scaffold.ts';
import type { Addition } from './scaffold.ts';
import type { ProjectFiles, ProjectNames } from './template.ts';
import { versionAddition } from './version-addition.ts';
import { webhookAddition } from './webhook-addition.ts';

/** The form of a template. */
export interface TemplateForm {
  readonly schema: 'yaml' | 'ts';
  readonly scope: 'Namespaced' | 'Cluster';
  readonly 'test-runner': 'node' | 'vitest';
  readonly webhooks: boolean;
}

/** A thing that `init` added to a project. */
export interface ProjectStep {
  readonly adds: 'project' | 'kind' | 'version' | 'webhooks';
  readonly names: ProjectNames;
  readonly form: TemplateForm;
  /** The stored version before, if a version is added. */
  readonly former?: string;
}

/**
 * Returns the changes of a project by a step after the first one.
 *
 * @param template of the form of the step
 * @param present the files of the project that the step changes, or all
 * @throws {RangeError} if a text has no place for the change, or a name is taken
 */
export function changesOf(
  template: ProjectFiles,
  present: ProjectFiles,
  { adds, names, former = '' }: ProjectStep,
): Addition {
  if (adds === 'webhooks') return webhookAddition(template, present, names);
  if (adds === 'version') return versionAddition(template, present, { names, former });
  return addition(template, present, names);
}

/**
 * Returns the files of a new project with the given steps.
 *
 * @param templates the template of each step
 * @param dependency the version of this package: `^0.1.0`, `file:package.tgz`
 */
export function projectOf(
  steps: readonly ProjectStep[],
  templates: readonly ProjectFiles[],
  dependency: string,
): ProjectFiles {
  let files: ProjectFiles = new Map();
  for (const [index, step] of steps.entries()) {
    const template = templates[index] ?? new Map();
    if (step.adds === 'project') files = scaffold(template, step.names, dependency);
    else {
      const { created, changed } = changesOf(template, files, step);
      files = new Map([...files, ...changed, ...created]);
    }
  }
  return files;
}

/** Returns the files after a step, or with its new files only if they have no place for its changes. */
export function withStep(
  files: ProjectFiles,
  template: ProjectFiles,
  step: ProjectStep,
  made: Addition,
): ProjectFiles {
  try {
    const { created, changed } = changesOf(template, files, step);
    return new Map([...files, ...changed, ...created]);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return new Map([...files, ...made.created]);
  }
}
