/**
 * Writes src/apiserver/generated/kinds.ts, schemas.ts, descriptions.ts and bootstrap.ts: the resources that
 * kube-apiserver serves by default, their schemas, derived from its discovery and OpenAPI v3 documents, and the
 * objects that it creates when it starts. The schemas have the structure (types, required fields, defaults, enums,
 * formats, list and map types, merge keys and patch strategies). Their descriptions are apart, because only OpenAPI
 * documents need them.
 *
 *   node hack/envtest/main.ts start
 *   TOKEN=… NODE_EXTRA_CA_CERTS=ca.crt node hack/generate-builtin-schemas.ts https://127.0.0.1:6443
 *
 * A running server is the source, because the documents in the Kubernetes sources contain disabled APIs and no
 * enums. With `kubectl proxy --port=8001` the URL is `http://127.0.0.1:8001`. `--check` compares instead of
 * writing.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
type Schemas = Readonly<Record<string, Json>>;

interface OpenApiDocument {
  readonly components: { readonly schemas: Schemas };
}

interface ResourceDiscovery {
  readonly resource: string;
  readonly singularResource: string;
  readonly responseKind: { readonly kind: string };
  readonly scope: 'Namespaced' | 'Cluster';
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly subresources?: readonly { readonly subresource: string }[];
}

interface GroupDiscovery {
  readonly metadata?: { readonly name?: string };
  readonly versions: readonly {
    readonly version: string;
    readonly resources: readonly ResourceDiscovery[];
  }[];
}

/** Resources whose objects kube-apiserver creates in an empty cluster; the server creates namespaces itself. */
const BOOTSTRAPPED = [
  'api/v1/services',
  'apis/apiregistration.k8s.io/v1/apiservices',
  'apis/flowcontrol.apiserver.k8s.io/v1/flowschemas',
  'apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations',
  'apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  'apis/rbac.authorization.k8s.io/v1/clusterroles',
  'apis/rbac.authorization.k8s.io/v1/rolebindings',
  'apis/rbac.authorization.k8s.io/v1/roles',
  'apis/scheduling.k8s.io/v1/priorityclasses',
];

const ALL_VERBS = 'create,delete,deletecollection,get,list,patch,update,watch';

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const KINDS = 'x-kubernetes-group-version-kind';
const REF_PREFIX = '#/components/schemas/';
const OUTPUT = join(import.meta.dirname, '..', 'src', 'apiserver', 'generated');

const [source, option] = process.argv.slice(2);
if (source === undefined || (option !== undefined && option !== '--check')) {
  console.error('usage: node hack/generate-builtin-schemas.ts URL [--check]');
  process.exit(2);
}
await generate(source, option === '--check');

async function generate(source: string, isCheck: boolean): Promise<void> {
  const { gitVersion } = (await read(source, 'version')) as { readonly gitVersion: string };
  const groups = await Promise.all(
    ['api', 'apis'].map(async (root) => {
      const list = (await read(source, root, AGGREGATED)) as { items: readonly GroupDiscovery[] };
      return list.items;
    }),
  );
  const versions = groups
    .flat()
    .flatMap(({ metadata, versions }) =>
      versions.map((version) => ({ group: metadata?.name ?? '', ...version })),
    );
  const schemas = new Map<string, Json>();
  const descriptions = new Map<string, Json>();
  for (const { group, version } of versions) {
    const path = group ? `apis/${group}/${version}` : `api/${version}`;
    const document = (await read(source, `openapi/v3/${path}`)) as OpenApiDocument;
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      schemas.set(name, withoutProse(schema));
      descriptions.set(name, descriptionsOf(name, schema as Schemas));
    }
  }
  const served = new Set(versions.map(({ group, version }) => groupVersion(group, version)));
  const sections = versions.map(({ group, version, resources }) =>
    [groupVersion(group, version), ...resources.map(resourceLine)].join('\n'),
  );
  await put('kinds.ts', kindsModule(gitVersion, sections), isCheck);
  await put('schemas.ts', schemasModule(gitVersion, byPackage(schemas, served)), isCheck);
  await put('descriptions.ts', descriptionsModule(gitVersion, descriptions), isCheck);
  const objects = (
    await Promise.all(BOOTSTRAPPED.map((path) => bootstrapped(source, path)))
  ).flat();
  await put('bootstrap.ts', bootstrapModule(gitVersion, objects), isCheck);
  console.log(`${served.size} group versions, ${schemas.size} schemas`);
}

async function read(source: string, path: string, accept = 'application/json'): Promise<unknown> {
  const url = new URL(`/${path}`, source);
  const token = process.env['TOKEN'];
  const authorization = token ? { authorization: `Bearer ${token}` } : undefined;
  const response = await fetch(url, { headers: { accept, ...authorization } });
  if (!response.ok) throw new Error(`GET ${url.href}: ${response.status} ${response.statusText}`);
  return response.json();
}

/** @throws {Error} if `isCheck` and the file has other content */
async function put(file: string, content: string, isCheck: boolean): Promise<void> {
  const path = join(OUTPUT, file);
  if (!isCheck) return writeFile(path, content);
  if ((await readFile(path, 'utf8')) !== content) throw new Error(`${path} is out of date`);
}

/** Returns the lines of the objects of a resource: `clusterroles {…}`. */
async function bootstrapped(source: string, path: string): Promise<string[]> {
  const list = (await read(source, path)) as {
    readonly apiVersion: string;
    readonly kind: string;
    readonly items: readonly Record<string, Json>[];
  };
  const plural = path.slice(path.lastIndexOf('/') + 1);
  const kind = list.kind.replace(/List$/, '');
  return list.items.map(({ metadata, ...fields }) => {
    const { name, namespace, labels, annotations, generation } = metadata as Record<string, Json>;
    const own = { name, namespace, labels, annotations, generation };
    const object = { kind, apiVersion: list.apiVersion, metadata: own, ...withoutTimes(fields) };
    return `${plural} ${JSON.stringify(object)}`;
  });
}

/** Sets the times of conditions to a fixed one, so that the output is the same for each server. */
function withoutTimes(fields: Record<string, Json>): Record<string, Json> {
  const text = JSON.stringify(fields)
    .replaceAll(/"20\d\d-[^"]*Z"/g, '"2026-01-01T00:00:00Z"')
    // The port of most servers.
    .replace(/"targetPort":\d+/, '"targetPort":6443');
  return JSON.parse(text) as Record<string, Json>;
}

function groupVersion(group: string, version: string): string {
  return group ? `${group}/${version}` : version;
}

/** `pods pod Pod namespaced short=po categories=all subresources=binding,status` */
function resourceLine(resource: ResourceDiscovery): string {
  const { responseKind, scope, shortNames, categories, subresources } = resource;
  const verbs = resource.verbs.toSorted().join(',');
  return [
    resource.resource,
    resource.singularResource,
    responseKind.kind,
    scope === 'Namespaced' ? 'namespaced' : 'cluster',
    ...(shortNames ? [`short=${shortNames.join(',')}`] : []),
    ...(categories ? [`categories=${categories.join(',')}`] : []),
    ...(verbs === ALL_VERBS ? [] : [`verbs=${verbs}`]),
    ...(subresources
      ? [`subresources=${subresources.map(({ subresource }) => subresource).join(',')}`]
      : []),
  ].join(' ');
}

/** Returns the lines of each Go package: `"Pod":{…}`. The kinds of a meta type are those of served versions. */
function byPackage(
  schemas: ReadonlyMap<string, Json>,
  served: ReadonlySet<string>,
): ReadonlyMap<string, readonly string[]> {
  const lines = [...schemas]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, schema]): [string, string] => {
      const end = name.lastIndexOf('.') + 1;
      const kinds = (schema as Schemas)[KINDS] as readonly { readonly [key: string]: string }[];
      const isServed = (kind: { readonly [key: string]: string }) =>
        served.has(groupVersion(kind['group'] ?? '', kind['version'] ?? ''));
      const own = kinds ? { ...(schema as Schemas), [KINDS]: kinds.filter(isServed) } : schema;
      return [name.slice(0, end), `${JSON.stringify(name.slice(end))}:${JSON.stringify(own)}`];
    });
  return new Map(
    [...Map.groupBy(lines, ([name]) => name)].map(([name, all]) => [
      name,
      all.map(([, line]) => line),
    ]),
  );
}

/** Returns a copy of a schema without descriptions and with sorted keys. */
function withoutProse(value: Json, namesAreData = false): Json {
  if (Array.isArray(value)) return value.map((item: Json) => withoutProse(item));
  if (typeof value !== 'object' || value === null) return value;
  const kept: Record<string, Json> = {};
  for (const [key, member] of Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) {
    // A property may be named `description`, as in the schema of CustomResourceDefinition.
    if (namesAreData) kept[key] = withoutProse(member);
    else if (key === 'description') continue;
    else if (key === '$ref' && typeof member === 'string')
      kept[key] = member.replace(REF_PREFIX, '#');
    else kept[key] = key === 'default' ? member : withoutProse(member, key === 'properties');
  }
  return kept;
}

/**
 * Returns the descriptions of a type, under the empty name, and of its fields.
 *
 * @throws {Error} if a description is elsewhere in the schema
 */
function descriptionsOf(name: string, { description = '', properties = {} }: Schemas): Json {
  const fields = Object.entries(properties as Schemas).flatMap(([field, schema]) => {
    const { description: text, ...rest } = schema as Schemas;
    if (JSON.stringify(rest).includes('"description":"')) {
      throw new Error(`${name}.${field}: a description below a field`);
    }
    return text === undefined ? [] : [[field, text] as const];
  });
  return { '': description, ...Object.fromEntries(fields) };
}

function descriptionsModule(version: string, descriptions: ReadonlyMap<string, Json>): string {
  const lines = [...descriptions]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, texts]) => `${JSON.stringify(name)}:${JSON.stringify(texts)}`);
  const json = `{\n${lines.join(',\n')}\n}`.replaceAll(/[\\`]|\$\{/g, String.raw`\$&`);
  return `${header(version)}
/** JSON with the descriptions of each schema by its name: of the type under the empty name, and of its fields. */
export const DESCRIPTIONS: string = \`${json}\`;
`;
}

function kindsModule(version: string, sections: readonly string[]): string {
  return `${header(version)}
/**
 * The resources of each group version: plural, singular, kind, scope. \`verbs\` is absent if they are all
 * eight.
 */
export const KINDS: string = \`
${sections.join('\n\n')}
\`;
`;
}

function bootstrapModule(version: string, lines: readonly string[]): string {
  return `${header(version)}
/** The objects that kube-apiserver creates when it starts: the resource, and the object as JSON. */
export const BOOTSTRAP: string = \`
${lines.join('\n').replaceAll(/[\\`]|\$\{/g, String.raw`\$&`)}
\`;
`;
}

function schemasModule(version: string, packages: ReadonlyMap<string, readonly string[]>): string {
  const entries = [...packages].map(([name, lines]) => {
    const json = `{\n${lines.join(',\n')}\n}`.replaceAll(/[\\`]|\$\{/g, String.raw`\$&`);
    return `  '${name}': \`${json}\`,`;
  });
  return `${header(version)}
/**
 * Schemas as JSON by the Go package of their types. A reference \`#NAME\` stands for
 * \`#/components/schemas/NAME\`.
 */
export const SCHEMAS: Readonly<Record<string, string>> = {
${entries.join('\n')}
};
`;
}

function header(version: string): string {
  return `// Generated by hack/generate-builtin-schemas.ts from the documents of Kubernetes ${version}.
// Do not edit. Derived from Kubernetes, which is under the Apache License 2.0.
`;
}
