import { readFile } from 'node:fs/promises';
import type { TemplateForm } from '../../codegen/project-steps.ts';
import { TEMPLATE_PATHS } from '../../codegen/scaffold.ts';
import { TYPESCRIPT_PATHS, WEBHOOK_PATHS } from '../../codegen/template.ts';
import type { ProjectFiles } from '../../codegen/template.ts';
import {
  inCluster,
  inTypeScript,
  inVitest,
  withWebhooks,
} from '../../codegen/template-variants.ts';
import { packageRoot } from '../program/package.ts';

const TEMPLATE = new URL('examples/06-library/static-site/', packageRoot());
/** Files of projects whose kinds are defined in TypeScript. */
const TYPESCRIPT_TEMPLATE = new URL('examples/06-library/static-site-kind/', packageRoot());
/** Files of projects with webhooks. */
const WEBHOOK_TEMPLATE = new URL('examples/06-library/static-site-webhooks/', packageRoot());

/** Reads the files from which projects are created. */
export async function readTemplate(form: Partial<TemplateForm> = {}): Promise<ProjectFiles> {
  let template = await readFiles(TEMPLATE, TEMPLATE_PATHS);
  if (form.schema === 'ts')
    template = inTypeScript(template, await readFiles(TYPESCRIPT_TEMPLATE, TYPESCRIPT_PATHS));
  if (form.webhooks)
    template = withWebhooks(template, await readFiles(WEBHOOK_TEMPLATE, WEBHOOK_PATHS));
  if (form.scope === 'Cluster') template = inCluster(template);
  return form['test-runner'] === 'vitest' ? inVitest(template) : template;
}

async function readFiles(folder: URL, paths: readonly string[]): Promise<ProjectFiles> {
  return new Map(
    await Promise.all(
      paths.map(async (path) => [path, await readFile(new URL(path, folder), 'utf8')] as const),
    ),
  );
}
