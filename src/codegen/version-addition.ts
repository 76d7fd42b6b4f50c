import { isScalar, isSeq, parseDocument } from 'yaml';
import type { YAMLMap } from 'yaml';
import { generateModules, LIBRARY_MODULES } from './generate-modules.ts';
import { importText, withCalls, withImports } from './module-text.ts';
import type { NamedImport } from './module-text.ts';
import type { Addition } from './scaffold.ts';
import { KINDS, VITEST_CONFIG, WEBHOOKS } from './template.ts';
import type { ProjectFiles, ProjectNames } from './template.ts';
import { WEBHOOK_CHANGES, WEBHOOK_DECLARATION, webhookWiring } from './webhook-addition.ts';

/** A version of a kind, and the stored one before it. */
export interface NewVersion {
  /** Names of the kind, with the new version. */
  readonly names: ProjectNames;
  readonly former: string;
}

/** Returns the files of a project that a new version changes, if they exist. */
export function versionChanges({ plural, group, kebab }: ProjectNames): readonly string[] {
  return [
    ...WEBHOOK_CHANGES,
    crdPath({ plural, group }),
    `${KINDS}/${kebab}.ts`,
    `samples/${kebab}.yaml`,
  ];
}

/**
 * Returns the changes that add a stored version to a kind of a project, with a conversion from the former one. Both have
 * the same schema at first.
 *
 * @param template of `withWebhooks`
 * @param present the texts of `versionChanges` that exist in the project
 * @throws {RangeError} if a text has no place for the change
 */
export function versionAddition(
  template: ProjectFiles,
  present: ProjectFiles,
  version: NewVersion,
): Addition {
  const { names, former } = version;
  const { kebab, constant } = names;
  const formerConstant = `${constant}_${former.toUpperCase()}`;
  const created = new Map<string, string>();
  const changed = new Map<string, string>();
  const kindPath = `${KINDS}/${kebab}.ts`;
  const module = present.get(kindPath);
  if (module === undefined) {
    const path = crdPath(names);
    const crd = withVersion(present.get(path) ?? '', version);
    changed.set(path, crd);
    const types = generateModules([{ source: path, text: crd }], {
      command: '`crd-controller generate`',
      modules: LIBRARY_MODULES,
    });
    for (const { fileName, text } of types) {
      const isNew = fileName === `${kebab}-${former}.ts`;
      (isNew ? created : changed).set(`src/generated/${fileName}`, text);
    }
  } else changed.set(kindPath, withDefinition(module, version, formerConstant));
  /** The imports of both versions, from a folder that is this one relative to `src`. */
  const importsFrom = (src: string): NamedImport[] =>
    module === undefined
      ? [
          {
            from: `${src}/generated/${kebab}-${former}.ts`,
            names: [`${constant} as ${formerConstant}`],
          },
          { from: `${src}/generated/${kebab}.ts`, names: [constant] },
        ]
      : [{ from: `${src}/kinds/${kebab}.ts`, names: [constant, formerConstant] }];
  const sample = present.get(`samples/${kebab}.yaml`);
  if (sample !== undefined)
    changed.set(
      `samples/${kebab}.yaml`,
      sample.replace(`/${former}\n`, () => `/${names.version}\n`),
    );
  const conversion = `.converts(${formerConstant}, ${constant}, {
  // Fields can be absent: the API server also converts parts of objects.
  up: ({ spec, status }) => ({ spec, status }),
  down: ({ spec, status }) => ({ spec, status }),
})`;
  const webhooks = present.get(WEBHOOKS);
  const called = withCalls(webhooks ?? NO_WEBHOOKS, WEBHOOKS, WEBHOOK_DECLARATION, [conversion]);
  const converting = withImports(called, importsFrom('.'));
  (webhooks === undefined ? created : changed).set(WEBHOOKS, converting);
  for (const [path, text] of webhookWiring(present, names)) changed.set(path, text);
  const testRunner = template.has(VITEST_CONFIG) ? 'vitest' : 'node:test';
  const test = conversionTest(version, importsFrom('../src'), testRunner);
  created.set(`test/${kebab}-${former}.test.ts`, test);
  return { created, changed };
}

/** A module without webhooks. */
const NO_WEBHOOKS = `import { Webhooks } from 'crd-controller/webhook';

/** Functions that the API server calls. */
export const webhooks = new Webhooks();
`;

function crdPath({ plural, group }: Pick<ProjectNames, 'plural' | 'group'>): string {
  return `deploy/crds/${plural}.${group}.yaml`;
}

/** Returns a CRD with a copy of the stored version, which is then stored. All other text stays. */
function withVersion(
  text: string,
  { names: { plural, group, version }, former }: NewVersion,
): string {
  const versions = parseDocument(text).getIn(['spec', 'versions']);
  const items = isSeq<YAMLMap>(versions) ? versions.items : [];
  const entry = items.find((item) => item.get('name') === former);
  const [start = 0, , end = 0] = entry?.range ?? [];
  const lineStart = text.lastIndexOf('\n', start) + 1;
  const [name, storage] = ['name', 'storage'].map((key) => rangeOf(entry?.get(key, true)));
  if (!name || !storage || !/^ *- $/.test(text.slice(lineStart, start)))
    throw new RangeError(
      `${crdPath({ plural, group })} has no lines "- name: ${former}" and "storage: true": add the version by hand`,
    );
  const copied = (from: number, [first, last]: Range, value: string, to: number) =>
    `${text.slice(from, first)}${value}${text.slice(last, to)}`;
  const current = copied(lineStart, name, version, end);
  const old = copied(lineStart, storage, 'false', end);
  return `${text.slice(0, lineStart)}${current.trimEnd()}\n${old}${text.slice(end)}`;
}

type Range = readonly [start: number, end: number];

function rangeOf(node: unknown): Range | undefined {
  return isScalar(node) && node.range ? [node.range[0], node.range[1]] : undefined;
}

/** Returns a module with the former definition under another name, and a copy with the new version. */
function withDefinition(
  text: string,
  { names: { constant, version }, former }: NewVersion,
  formerConstant: string,
): string {
  const [definition] =
    new RegExp(`^export const ${constant} = s\\.customResource\\(\\{\n[^]*?^\\}\\);\n`, 'm').exec(
      text,
    ) ?? [];
  const line = `  version: '${former}',\n`;
  if (definition === undefined || !definition.includes(line)) {
    throw new RangeError(
      `${KINDS} has no "export const ${constant} = s.customResource({" with a line "version: '${former}',": run npm run generate, or add the version by hand`,
    );
  }
  const old = definition.replace(constant, formerConstant);
  const current = definition
    .replace(line, `  version: '${version}',\n`)
    .replace(/ {2}otherVersions: \[/, `  otherVersions: [${formerConstant}, `);
  const complete = current.includes('otherVersions: [')
    ? current
    : current.replace(/\}\);\n$/, `  otherVersions: [${formerConstant}],\n});\n`);
  return text.replace(definition, () => `${old}\n${complete}`);
}

function conversionTest(
  { names, former }: NewVersion,
  imports: readonly NamedImport[],
  testRunner: string,
): string {
  const { kebab, constant, kind } = names;
  const formerConstant = `${constant}_${former.toUpperCase()}`;
  const importLines = [
    "import assert from 'node:assert/strict';",
    `import { test } from '${testRunner}';`,
    "import { installWebhooks } from 'crd-controller/testing';",
    ...imports.map(({ names: imported, from }) => importText(imported, from)),
    "import { webhooks } from '../src/webhooks.ts';",
    "import { load, startCluster } from './cluster.ts';",
  ];
  return `${importLines.join('\n')}

test('a ${kind} keeps its fields when the former version is read and written', async (context) => {
  const { server, client, clock } = await startCluster(context);
  await installWebhooks(server, client, webhooks, { clock });
  const created = await client.create(${constant}, load('samples/${kebab}.yaml'));
  const former = await client.get(${formerConstant}, created.metadata);
  await client.update(${formerConstant}, former);
  const { spec } = await client.get(${constant}, created.metadata);
  assert.deepEqual(spec, created.spec);
});
`;
}
