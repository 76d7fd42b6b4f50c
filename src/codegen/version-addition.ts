import { parseDocument } from 'yaml';
import type { YAMLSeq } from 'yaml';
import { generateModules, LIBRARY_MODULES } from './generate-modules.ts';
import { webhookAddition, WEBHOOK_CHANGES, withImports } from './scaffold.ts';
import type { Addition } from './scaffold.ts';
import { KINDS, VITEST_CONFIG, WEBHOOKS } from './template.ts';
import type { ProjectFiles, ProjectNames } from './template.ts';

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
    WEBHOOKS,
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
  const imports: string[] = [];
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
    imports.push(
      `import { ${constant} as ${formerConstant} } from './generated/${kebab}-${former}.ts';`,
      `import { ${constant} } from './generated/${kebab}.ts';`,
    );
  } else {
    changed.set(kindPath, withDefinition(module, version, formerConstant));
    imports.push(
      `import { ${formerConstant} } from './kinds/${kebab}.ts';`,
      `import { ${constant} } from './kinds/${kebab}.ts';`,
    );
  }
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
  if (webhooks === undefined) {
    const { changed: others } = webhookAddition(template, present, names);
    for (const [path, text] of others) changed.set(path, text);
    created.set(WEBHOOKS, webhooksModule(imports, conversion));
  } else {
    changed.set(WEBHOOKS, withConversion(webhooks, imports, conversion));
  }
  const testRunner = template.has(VITEST_CONFIG) ? 'vitest' : 'node:test';
  const test = conversionTest(version, module !== undefined, testRunner);
  created.set(`test/${kebab}-${former}.test.ts`, test);
  return { created, changed };
}

function crdPath({ plural, group }: Pick<ProjectNames, 'plural' | 'group'>): string {
  return `deploy/crds/${plural}.${group}.yaml`;
}

/** Returns a CRD with a copy of the stored version, which is then stored. Comments stay. */
function withVersion(text: string, { names: { version }, former }: NewVersion): string {
  const document = parseDocument(text);
  const versions = document.getIn(['spec', 'versions']) as YAMLSeq;
  const entries: readonly { readonly name: string }[] = document.toJS().spec.versions;
  const at = entries.findIndex(({ name }) => name === former);
  versions.items.unshift(document.createNode({ ...entries[at], name: version }));
  document.setIn(['spec', 'versions', at + 1, 'storage'], false);
  return document.toString({ lineWidth: 0 });
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

function webhooksModule(imports: readonly string[], conversion: string): string {
  return [
    "import { Webhooks } from 'crd-controller/webhook';",
    ...imports,
    '',
    '/** Functions that the API server calls. */',
    `export const webhooks = new Webhooks()${conversion.replaceAll('\n  ', '\n')};`,
    '',
  ].join('\n');
}

function withConversion(text: string, imports: readonly string[], conversion: string): string {
  const declaration = 'new Webhooks()';
  if (!text.includes(declaration)) {
    throw new RangeError(`${WEBHOOKS} has no "${declaration}": add ${conversion} by hand`);
  }
  const converted = text.replace(declaration, () => `${declaration}\n  ${conversion}`);
  // The kind is usually imported already.
  const isImported = (line: string) => new RegExp(`\\b${importedName(line)}\\b`).test(text);
  return withImports(
    converted,
    imports.filter((line) => !isImported(line)),
  );
}

/** Returns the name that a line imports: `B` of `import { A as B } from …`. */
function importedName(line: string): string {
  return /(\w+) \}/.exec(line)?.[1] ?? '';
}

function conversionTest(
  { names, former }: NewVersion,
  isTypeScript: boolean,
  testRunner: string,
): string {
  const { kebab, constant, kind } = names;
  const formerConstant = `${constant}_${former.toUpperCase()}`;
  const imports = isTypeScript
    ? [`import { ${constant}, ${formerConstant} } from '../src/kinds/${kebab}.ts';`]
    : [
        `import { ${constant} as ${formerConstant} } from '../src/generated/${kebab}-${former}.ts';`,
        `import { ${constant} } from '../src/generated/${kebab}.ts';`,
      ];
  const importLines = [
    "import assert from 'node:assert/strict';",
    `import { test } from '${testRunner}';`,
    "import { installWebhooks } from 'crd-controller/testing';",
    ...imports,
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
