import type { KindNames } from './kind-names.ts';

/** The files of a project by their paths. */
export type ProjectFiles = ReadonlyMap<string, string>;

/** The names of a program and of its ServiceAccount. */
export interface ProgramNames {
  /** `static-site-controller`: the program, its image and its ServiceAccount. */
  readonly program: string;
  /** `static-site-controller-system`: the namespace of the installation. */
  readonly namespace: string;
}

/** The names of a kind, its API version, and the names of its program. */
export interface ProjectNames extends KindNames, ProgramNames {
  /** `v1alpha1` */
  readonly version: string;
}

/** The names in the template. They are all different, so that each can be replaced separately. */
export const TEMPLATE_NAMES: ProjectNames = {
  kind: 'StaticSite',
  camel: 'staticSite',
  kebab: 'static-site',
  constant: 'STATIC_SITES',
  singular: 'staticsite',
  plural: 'staticsites',
  group: 'example.com',
  version: 'v1alpha1',
  program: 'static-site-controller',
  namespace: 'static-site-controller-system',
};

/** Module of a kind that is defined in TypeScript. Templates with CRDs in YAML do not have it. */
export const KIND_PATH = 'src/kinds/static-site.ts';
/** Folder of the modules of kinds that are defined in TypeScript. */
export const KINDS = 'src/kinds';

/** CRD of the kind. */
export const CRD_PATH = 'deploy/crds/staticsites.example.com.yaml';
/** ClusterRole of the controller. */
export const ROLE_PATH = 'deploy/rbac/controllers/static-site.yaml';

/** Files of the template for each kind, without the types, which are generated. */
export const KIND_PATHS: readonly string[] = [
  CRD_PATH,
  ROLE_PATH,
  'samples/static-site.yaml',
  'src/controllers/static-site.ts',
  'test/static-site.test.ts',
];

/** File that lists the manifests. */
export const KUSTOMIZATION = 'deploy/kustomization.yaml';
/** File that lists the controllers. */
export const PROGRAM = 'src/program.ts';
/** File with the names of the ServiceAccount. */
export const SCAFFOLD_ACCOUNT = 'deploy/rbac/identity/service-account.yaml';
/** File with the functions that the tests of all controllers use. */
export const TEST_CLUSTER = 'test/cluster.ts';

/** Files that differ if kinds are defined in TypeScript. */
export const TYPESCRIPT_PATHS: readonly string[] = [KIND_PATH];

/** File that declares the webhooks. */
export const WEBHOOKS = 'src/webhooks.ts';
/** Test of the webhooks of the first kind that has some. */
export const WEBHOOK_TEST = 'test/webhooks.test.ts';
/** Files of a project with webhooks. */
export const WEBHOOK_PATHS: readonly string[] = [WEBHOOKS, WEBHOOK_TEST];
/** Settings of Vitest, if it runs the tests. */
export const VITEST_CONFIG = 'vitest.config.ts';
