import {
  CRD_PATH,
  KIND_PATH,
  KUSTOMIZATION,
  PROGRAM,
  TEST_CLUSTER,
  VITEST_CONFIG,
  WEBHOOK_PATHS,
} from './template.ts';
import type { ProjectFiles } from './template.ts';

/** A text in a file of the template, and its replacement. */
export type TextChange = readonly [path: string, from: string, to: string];

/** Texts of the template that differ if kinds are defined in TypeScript. */
const TYPESCRIPT_TEXTS: readonly TextChange[] = [
  ['src/controllers/static-site.ts', '../generated/', '../kinds/'],
  ['test/static-site.test.ts', '../src/generated/', '../src/kinds/'],
  [PROGRAM, './generated/', './kinds/'],
  ['package.json', 'deploy/crds --out=src/generated', 'src/kinds/*.ts --out=deploy/crds'],
  ['AGENTS.md', '`src/generated/` from `deploy/crds/`', '`deploy/crds/` from `src/kinds/`'],
  [
    'README.md',
    '`src/generated/`           | types of the CRDs: `npm run generate`                                                             |',
    '`src/kinds/`               | the kinds: their schemas and types                                                                |',
  ],
  [
    'README.md',
    '| the definitions                                                                                   |',
    '| the CRDs of the kinds: `npm run generate`                                                         |',
  ],
  [
    'README.md',
    'in `deploy/crds/`, run `npm run generate`, and then `npm run types` to find code that no longer compiles.',
    'in `src/kinds/`, run `npm run generate`, and `npm run types` to find code that no longer compiles.',
  ],
];

/**
 * Returns the template for kinds that are defined in TypeScript.
 *
 * @param files the files at `TYPESCRIPT_PATHS`
 */
export function inTypeScript(template: ProjectFiles, files: ProjectFiles): ProjectFiles {
  return changedTexts(new Map([...template, ...files]), TYPESCRIPT_TEXTS);
}

/** Texts of the template that differ for a cluster-scoped kind. */
const CLUSTER_TEXTS: readonly TextChange[] = [
  [CRD_PATH, 'scope: Namespaced', 'scope: Cluster'],
  [KIND_PATH, "plural: 'staticsites',", "plural: 'staticsites',\n  scope: 'Cluster',"],
  ['samples/static-site.yaml', '  namespace: default\n', ''],
  [
    'src/controllers/static-site.ts',
    'metadata: { name: metadata.name, labels }',
    'metadata: { namespace: NAMESPACE, name: metadata.name, labels }',
  ],
  [
    'src/controllers/static-site.ts',
    '`OwnedObjects` sets its namespace and its owner reference.',
    '`OwnedObjects` sets its owner reference.',
  ],
  [
    'src/controllers/static-site.ts',
    "const COMPONENT = 'static-site-controller';\n",
    "const COMPONENT = 'static-site-controller';\n\n/** Namespace of the Deployments: a cluster-scoped object has none. */\nconst NAMESPACE = 'default';\n",
  ],
];

/**
 * Returns the template for a cluster-scoped kind.
 *
 * @param template of `inTypeScript` and `withWebhooks`, if the project has these
 */
export function inCluster(template: ProjectFiles): ProjectFiles {
  return changedTexts(
    template,
    CLUSTER_TEXTS.filter(([path]) => template.has(path)),
  );
}

/** Texts of the template that differ if Vitest runs the tests. */
const VITEST_TEXTS: readonly TextChange[] = [
  [TEST_CLUSTER, "from 'node:test'", "from 'vitest'"],
  [TEST_CLUSTER, 'context.diagnostic(line)', 'console.log(line)'],
  [TEST_CLUSTER, 'context.after(', 'context.onTestFinished('],
  ['test/static-site.test.ts', "from 'node:test'", "from 'vitest'"],
  ['test/webhooks.test.ts', "from 'node:test'", "from 'vitest'"],
  [
    'package.json',
    String.raw`node --test --test-timeout=120000 --test-force-exit \"test/*.test.ts\"`,
    'vitest run',
  ],
  ['package.json', '"typescript": "^7.0.2",', '"typescript": "^7.0.2",\n    "vitest": "^5.1.2",'],
  ['tsconfig.json', '"include": ["src", "test"]', `"include": ["src", "test", "${VITEST_CONFIG}"]`],
  ['AGENTS.md', 'npx node --test test/', 'npx vitest run test/'],
];

const VITEST_SETTINGS = `import { defineConfig } from 'vitest/config';

export default defineConfig({
  // The search of schedules takes longer than the default of 5 s.
  test: { testTimeout: 120_000, hookTimeout: 120_000 },
});
`;

/** Returns the template for a project whose tests Vitest runs, instead of node:test. */
export function inVitest(template: ProjectFiles): ProjectFiles {
  return changedTexts(
    new Map([...template, [VITEST_CONFIG, VITEST_SETTINGS]]),
    VITEST_TEXTS.filter(([path]) => template.has(path)),
  );
}

/** @throws {Error} if the template does not contain a text */
function changedTexts(template: ProjectFiles, changes: readonly TextChange[]): ProjectFiles {
  const changed = new Map(template);
  for (const [path, from, to] of changes) {
    const text = changed.get(path) ?? '';
    if (!text.includes(from)) throw new Error(`${path} of the template does not contain ${from}`);
    changed.set(path, text.replaceAll(from, to));
  }
  return changed;
}

/** Texts of the template that differ if the program has webhooks. */
export const WEBHOOK_TEXTS: readonly TextChange[] = [
  ['src/webhooks.ts', '../../static-site/src/', './'],
  ['test/webhooks.test.ts', '../../static-site/test/', './'],
  ['test/webhooks.test.ts', '../../static-site/src/', '../src/'],
  [
    PROGRAM,
    "static-site.ts';\n\n",
    "static-site.ts';\nimport { webhooks } from './webhooks.ts';\n\n",
  ],
  [PROGRAM, '  controllers: {', '  webhooks,\n  controllers: {'],
  [
    'README.md',
    '| `src/main.ts`              |',
    '| `src/webhooks.ts`          | defaults and validation, which the API server calls: the webhooks                                 |\n| `src/main.ts`              |',
  ],
  [
    'deploy/manager/deployment.yaml',
    '              containerPort: 8081\n',
    '              containerPort: 8081\n            - name: webhook\n              containerPort: 9443\n',
  ],
  [
    KUSTOMIZATION,
    '# The installation: `kubectl apply -k deploy`, or `npm run manifests` for one with another image or namespace.',
    '# The files of the installation. `npm run manifests` prints them with the webhooks, which src/webhooks.ts declares.',
  ],
];

/**
 * Returns the template for a program with webhooks.
 *
 * @param template of `inTypeScript`, if kinds are defined in TypeScript
 * @param files the files at `WEBHOOK_PATHS`
 */
export function withWebhooks(template: ProjectFiles, files: ProjectFiles): ProjectFiles {
  const changed = changedTexts(new Map([...template, ...files]), WEBHOOK_TEXTS);
  if (!template.has(KIND_PATH)) return changed;
  return changedTexts(
    changed,
    WEBHOOK_PATHS.map((path) => [path, '/generated/', '/kinds/']),
  );
}
