/**
 * Writes src/apiserver/generated/: the schemas of the built-in kinds that the embedded API server serves,
 * derived from the OpenAPI v3 documents of a real one. The output has the structure (types, required fields,
 * defaults, enums, formats, list and map types, merge keys and patch strategies) without descriptions, which
 * would be large.
 *
 *   node hack/generate-builtin-schemas.ts SOURCE [VERSION]
 *
 * SOURCE is either
 * - the URL of a running kube-apiserver, which is better because it also publishes enums:
 *   `TOKEN=… NODE_EXTRA_CA_CERTS=ca.crt node hack/generate-builtin-schemas.ts https://127.0.0.1:6443`
 *   or, with `kubectl proxy --port=8001`, `http://127.0.0.1:8001`;
 * - a folder of files such as `apis__apps__v1_openapi.json`, as in api/openapi-spec/v3 of the
 *   Kubernetes sources. `go mod download -json k8s.io/kubernetes@v1.36.3` prints the folder of
 *   the sources (`Dir`). VERSION is then the release of the sources.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
type Schemas = Readonly<Record<string, Json>>;

interface OpenApiDocument {
  readonly info: { readonly version: string };
  readonly components: { readonly schemas: Schemas };
}

interface Module {
  readonly file: string;
  /** Name of the exported constant. */
  readonly constant: string;
  /** Prefix of the names of the module's schemas. */
  readonly prefix: string;
}

/** Documents with the kinds whose schemas are followed (including their lists). */
const SOURCES: readonly { readonly path: string; readonly roots: readonly string[] }[] = [
  {
    path: 'api/v1',
    roots: [
      ...withList(
        'io.k8s.api.core.v1.',
        'ConfigMap',
        'Event',
        'Namespace',
        'Node',
        'Pod',
        'Secret',
        'Service',
        'ServiceAccount',
      ),
      'io.k8s.api.core.v1.Binding',
      'io.k8s.api.policy.v1.Eviction',
      'io.k8s.api.autoscaling.v1.Scale',
      'io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions',
      'io.k8s.apimachinery.pkg.apis.meta.v1.Patch',
      'io.k8s.apimachinery.pkg.apis.meta.v1.Status',
      'io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent',
    ],
  },
  { path: 'apis/apps/v1', roots: withList('io.k8s.api.apps.v1.', 'Deployment', 'ReplicaSet') },
  { path: 'apis/coordination.k8s.io/v1', roots: withList('io.k8s.api.coordination.v1.', 'Lease') },
  {
    path: 'apis/authentication.k8s.io/v1',
    roots: ['SelfSubjectReview', 'TokenReview'].map(
      (kind) => `io.k8s.api.authentication.v1.${kind}`,
    ),
  },
  {
    path: 'apis/authorization.k8s.io/v1',
    roots: [
      'LocalSubjectAccessReview',
      'SelfSubjectAccessReview',
      'SelfSubjectRulesReview',
      'SubjectAccessReview',
    ].map((kind) => `io.k8s.api.authorization.v1.${kind}`),
  },
  {
    path: 'apis/rbac.authorization.k8s.io/v1',
    roots: withList(
      'io.k8s.api.rbac.v1.',
      'ClusterRole',
      'ClusterRoleBinding',
      'Role',
      'RoleBinding',
    ),
  },
  { path: 'apis/policy/v1', roots: withList('io.k8s.api.policy.v1.', 'PodDisruptionBudget') },
  {
    path: 'apis/scheduling.k8s.io/v1',
    roots: withList('io.k8s.api.scheduling.v1.', 'PriorityClass'),
  },
  {
    path: 'apis/apiextensions.k8s.io/v1',
    roots: withList(
      'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.',
      'CustomResourceDefinition',
    ),
  },
];

const MODULES: readonly Module[] = [
  { file: 'meta.ts', constant: 'META', prefix: 'io.k8s.apimachinery.' },
  { file: 'core-v1.ts', constant: 'CORE_V1', prefix: 'io.k8s.api.core.v1.' },
  { file: 'apps-v1.ts', constant: 'APPS_V1', prefix: 'io.k8s.api.apps.v1.' },
  { file: 'autoscaling-v1.ts', constant: 'AUTOSCALING_V1', prefix: 'io.k8s.api.autoscaling.v1.' },
  { file: 'policy-v1.ts', constant: 'POLICY_V1', prefix: 'io.k8s.api.policy.v1.' },
  {
    file: 'coordination-v1.ts',
    constant: 'COORDINATION_V1',
    prefix: 'io.k8s.api.coordination.v1.',
  },
  {
    file: 'authentication-v1.ts',
    constant: 'AUTHENTICATION_V1',
    prefix: 'io.k8s.api.authentication.v1.',
  },
  {
    file: 'authorization-v1.ts',
    constant: 'AUTHORIZATION_V1',
    prefix: 'io.k8s.api.authorization.v1.',
  },
  { file: 'rbac-v1.ts', constant: 'RBAC_V1', prefix: 'io.k8s.api.rbac.v1.' },
  { file: 'scheduling-v1.ts', constant: 'SCHEDULING_V1', prefix: 'io.k8s.api.scheduling.v1.' },
  {
    file: 'apiextensions-v1.ts',
    constant: 'APIEXTENSIONS_V1',
    prefix: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.',
  },
];

const REF_PREFIX = '#/components/schemas/';

/** Groups that are kept in `x-kubernetes-group-version-kind` of the shared meta types. */
const GROUPS = new Set([
  '',
  'apps',
  'autoscaling',
  'policy',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'coordination.k8s.io',
  'rbac.authorization.k8s.io',
  'scheduling.k8s.io',
  'apiextensions.k8s.io',
]);

const OUTPUT = join(import.meta.dirname, '..', 'src', 'apiserver', 'generated');

const [source, version] = process.argv.slice(2);
if (source === undefined) {
  console.error('usage: node hack/generate-builtin-schemas.ts (URL | FOLDER) [VERSION]');
  process.exit(2);
}
await generate(source, version);

async function generate(source: string, version: string | undefined): Promise<void> {
  const schemas = new Map<string, Json>();
  let published = version;
  for (const { path, roots } of SOURCES) {
    const document = await readDocument(source, path);
    published ??= document.info.version;
    for (const [name, schema] of reachable(document.components.schemas, roots)) {
      schemas.set(name, schema);
    }
  }
  const names = [...schemas.keys()].sort();
  for (const { file, constant, prefix } of MODULES) {
    const lines = names
      .filter((name) => name.startsWith(prefix))
      .map((name) => `${JSON.stringify(name)}:${JSON.stringify(schemas.get(name))}`);
    await writeFile(join(OUTPUT, file), moduleText(constant, prefix, published ?? '', lines));
    console.log(`${file}: ${lines.length} schemas`);
  }
  const unassigned = names.filter((name) => !MODULES.some(({ prefix }) => name.startsWith(prefix)));
  if (unassigned.length > 0)
    throw new Error(`No module contains the schemas ${unassigned.join(', ')}`);
}

async function readDocument(source: string, path: string): Promise<OpenApiDocument> {
  if (!/^https?:\/\//.test(source)) {
    const file = join(source, `${path.replaceAll('/', '__')}_openapi.json`);
    return JSON.parse(await readFile(file, 'utf8')) as OpenApiDocument;
  }
  const url = new URL(`/openapi/v3/${path}`, source);
  const token = process.env['TOKEN'];
  const response = await fetch(url, token ? { headers: { authorization: `Bearer ${token}` } } : {});
  if (!response.ok) throw new Error(`GET ${url.href}: ${response.status} ${response.statusText}`);
  return (await response.json()) as OpenApiDocument;
}

/** Returns the schemas of `roots` and all that they refer to, without descriptions. */
function reachable(schemas: Schemas, roots: readonly string[]): Map<string, Json> {
  const found = new Map<string, Json>();
  const pending = [...roots];
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (found.has(name)) continue;
    const schema = schemas[name];
    if (schema === undefined) throw new Error(`The source has no schema ${name}`);
    found.set(
      name,
      withoutProse(schema, (reference) => pending.push(reference)),
    );
  }
  return found;
}

/** Returns a copy of a schema without descriptions and with sorted keys; calls `refer` for each reference. */
function withoutProse(schema: Json, refer: (name: string) => void): Json {
  return transform(schema, false);

  function transform(value: Json, namesAreData: boolean): Json {
    if (Array.isArray(value)) return value.map((item: Json) => transform(item, false));
    if (typeof value !== 'object' || value === null) return value;
    const kept: Record<string, Json> = {};
    for (const [key, member] of Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) {
      // A property may be named `description`, as in the schema of CustomResourceDefinition.
      if (namesAreData) kept[key] = transform(member, false);
      else if (key === 'description') continue;
      else if (key === '$ref' && typeof member === 'string') {
        refer(member.slice(REF_PREFIX.length));
        kept[key] = member;
      } else if (key === 'x-kubernetes-group-version-kind') kept[key] = ofOurGroups(member);
      else kept[key] = key === 'default' ? member : transform(member, key === 'properties');
    }
    return kept;
  }
}

/** Filters the kinds of meta types such as DeleteOptions, which name every group of the server. */
function ofOurGroups(kinds: Json): Json {
  return (kinds as readonly { readonly [key: string]: string }[]).filter(
    ({ group, version }) => group !== undefined && GROUPS.has(group) && version === 'v1',
  );
}

function moduleText(
  constant: string,
  prefix: string,
  version: string,
  lines: readonly string[],
): string {
  const json = `{\n${lines.join(',\n')}\n}`.replaceAll(/[\\`]|\$\{/g, String.raw`\$&`);
  return `// Generated by hack/generate-builtin-schemas.ts from the OpenAPI documents of Kubernetes ${version}.
// Do not edit. Derived from Kubernetes, which is under the Apache License 2.0.

/** The schemas \`${prefix}*\` by name, as JSON. */
export const ${constant}: string = \`${json}\`;
`;
}

function withList(prefix: string, ...kinds: readonly string[]): string[] {
  return kinds.flatMap((kind) => [`${prefix}${kind}`, `${prefix}${kind}List`]);
}
