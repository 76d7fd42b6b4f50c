import { endOfImports, withCalls, withImports } from './module-text.ts';
import { placeOfControllers, rename, renamedFiles } from './scaffold.ts';
import type { Addition } from './scaffold.ts';
import { KUSTOMIZATION, PROGRAM, WEBHOOK_TEST, WEBHOOKS } from './template.ts';
import type { ProjectFiles, ProjectNames } from './template.ts';
import { WEBHOOK_TEXTS } from './template-variants.ts';

/** Files that serve webhooks, and those of which only texts that exist are changed. */
const WIRING_PATHS: readonly string[] = [
  PROGRAM,
  'deploy/manager/deployment.yaml',
  'README.md',
  KUSTOMIZATION,
];
const OPTIONAL_CHANGES: ReadonlySet<string> = new Set(['README.md', KUSTOMIZATION]);

/** Files of a project on which the changes of `webhookAddition` depend. */
export const WEBHOOK_CHANGES: readonly string[] = [...WIRING_PATHS, WEBHOOKS, WEBHOOK_TEST];

/** Declaration to which webhooks and conversions are added. */
export const WEBHOOK_DECLARATION = 'new Webhooks()';

/**
 * Returns the changes that add webhooks for a kind to a project.
 *
 * @param template of `withWebhooks`
 * @param present the texts of `WEBHOOK_CHANGES` in the project
 * @throws {RangeError} if a text has no place for the webhooks, or the kind has webhooks
 */
export function webhookAddition(
  template: ProjectFiles,
  present: ProjectFiles,
  names: ProjectNames,
): Addition {
  const files = new Map(renamedFiles(template, [WEBHOOKS, WEBHOOK_TEST], names));
  const module = files.get(WEBHOOKS) ?? '';
  const declared = present.get(WEBHOOKS);
  const created = new Map<string, string>();
  const changed = new Map(webhookWiring(present, names));
  if (declared === undefined) created.set(WEBHOOKS, module);
  else changed.set(WEBHOOKS, withWebhooksOf(declared, module, names));
  const test = present.has(WEBHOOK_TEST) ? `test/${names.kebab}-webhooks.test.ts` : WEBHOOK_TEST;
  created.set(test, files.get(WEBHOOK_TEST) ?? '');
  return { created, changed };
}

/**
 * Returns the changes that let a program serve its webhooks. None if it has webhooks.
 *
 * @throws {RangeError} if a text has no place for them
 */
export function webhookWiring(present: ProjectFiles, names: ProjectNames): ProjectFiles {
  const program = present.get(PROGRAM) ?? '';
  if (/\bwebhooks\b/.test(program)) return new Map();
  const changed = new Map([...present].filter(([path]) => WIRING_PATHS.includes(path)));
  for (const [path, ...texts] of WEBHOOK_TEXTS) {
    const text = changed.get(path);
    if (text === undefined || path === PROGRAM) continue;
    const [from, to] = texts.map((each) => rename(each, names)) as [string, string];
    if (text.includes(from))
      changed.set(
        path,
        text.replace(from, () => to),
      );
    else if (!OPTIONAL_CHANGES.has(path)) {
      throw new RangeError(
        `${path} does not contain ${JSON.stringify(from)}: add ${JSON.stringify(to)} by hand`,
      );
    }
  }
  const { index, indent } = placeOfControllers(program, 'webhooks');
  const withOption = `${program.slice(0, index)}${indent}webhooks,\n${program.slice(index)}`;
  changed.set(PROGRAM, withImports(withOption, [{ from: './webhooks.ts', names: ['webhooks'] }]));
  return changed;
}

/** Returns a module of webhooks with those of a new module for a kind. */
function withWebhooksOf(text: string, module: string, { kind, constant }: ProjectNames): string {
  if (new RegExp(String.raw`\.(?:defaults|validates)\(\s*${constant}\b`).test(text))
    throw new RangeError(`${WEBHOOKS} has webhooks for ${kind}: add others by hand`);
  const [, from = '', comment = '', key = '', value = '', chain = ''] =
    /^import \{ \w+ \} from '([^']*)';\n\n(\/\*\*.*\*\/\n)const (\w+) = (.*;)\n[^]*?new Webhooks\(\)\n([^]*);\n$/m.exec(
      module,
    ) ?? [];
  const isDeclared = text.includes(`const ${key} = ${value}\n`);
  const own = isDeclared || !new RegExp(`\\b${key}\\b`).test(text) ? key : `${constant}_${key}`;
  const calls = chain
    .replaceAll(key, own)
    .replaceAll(/^ {2}/gm, '')
    .split(/\n(?=\.)/);
  const called = withCalls(text, WEBHOOKS, WEBHOOK_DECLARATION, calls);
  const imported = withImports(called, [
    { from: 'crd-controller/webhook', names: ['invalid'] },
    { from, names: [constant] },
  ]);
  if (isDeclared) return imported;
  const at = endOfImports(imported);
  return `${imported.slice(0, at)}\n\n${comment}const ${own} = ${value}${imported.slice(at)}`;
}
