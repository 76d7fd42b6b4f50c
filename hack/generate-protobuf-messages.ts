/**
 * Writes src/apiserver/generated/protobuf.ts: the protobuf encoding of the built-in kinds that the embedded API
 * server serves, and the JSON encoding of each of their fields in Go.
 *
 *   node hack/generate-protobuf-messages.ts [VERSION]     (v0.37.2; needs Go)
 *
 * Each Go package has two sources: `generated.proto` has the wire format (numbers and types), `types.go` has
 * the JSON format (names, pointers, `omitempty`, inlined structs). The number of a field joins them.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KINDS } from '../src/apiserver/generated/kinds.ts';

interface Package {
  /** Prefix of its messages in the output: `core.v1` of `core.v1.Pod`. */
  readonly alias: string;
  readonly module: string;
  readonly folder: string;
}

/** A field in `generated.proto`. */
interface WireField {
  readonly number: number;
  readonly name: string;
  readonly label: '' | '[]' | 'map[]';
  /** A scalar or a message: `string`, `core.v1.Container`. */
  readonly inner: string;
}

/** A field in `types.go`. */
interface GoField {
  readonly json: string;
  readonly pointer: boolean;
  /** Type in Go, without a pointer. */
  readonly type: string;
}

const PACKAGES: ReadonlyMap<string, Package> = new Map([
  ...servedVersions()
    // These are in modules of their own.
    .filter(({ group }) => group !== 'apiextensions' && group !== 'apiregistration')
    .map(({ group, version }) => kubernetesApi(group, version)),
  kubernetesApi('apidiscovery', 'v2'),
  // Types of fields of batch.v1.JobSpec.
  kubernetesApi('scheduling', 'v1alpha3'),
  ...(
    [
      ['apiextensions', 'apiextensions-apiserver'],
      ['apiregistration', 'kube-aggregator'],
    ] as const
  ).map(([group, module]): [string, Package] => [
    `k8s.io.${module.replaceAll('-', '_')}.pkg.apis.${group}.v1`,
    { alias: `${group}.v1`, module: `k8s.io/${module}`, folder: `pkg/apis/${group}/v1` },
  ]),
  ...(
    [
      ['pkg.apis.meta.v1', 'meta.v1'],
      ['pkg.api.resource', 'resource'],
      ['pkg.util.intstr', 'intstr'],
      ['pkg.runtime', 'runtime'],
    ] as const
  ).map(([name, alias]): [string, Package] => [
    `k8s.io.apimachinery.${name}`,
    { alias, module: 'k8s.io/apimachinery', folder: name.replaceAll('.', '/') },
  ]),
]);

function kubernetesApi(group: string, version: string): [string, Package] {
  const folder = `${group}/${version}`;
  return [
    `k8s.io.api.${group}.${version}`,
    { alias: `${group}.${version}`, module: 'k8s.io/api', folder },
  ];
}

/** Kinds of requests and responses that are no resources. */
const OTHER_KINDS = [
  'apidiscovery.v2.APIGroupDiscoveryList',
  'authentication.v1.TokenRequest',
  'autoscaling.v1.Scale',
  'meta.v1.APIGroup',
  'meta.v1.APIGroupList',
  'meta.v1.APIResourceList',
  'meta.v1.APIVersions',
  'meta.v1.DeleteOptions',
  'meta.v1.ListMeta',
  'meta.v1.PartialObjectMetadata',
  'meta.v1.Status',
  'policy.v1.Eviction',
];

/** Kinds of the resources that the server serves: `core.v1.Pod`. */
function servedKinds(): string[] {
  return servedVersions().flatMap(({ group, version, resources }) =>
    resources.map((line) => `${group}.${version}.${line.split(' ')[2]}`),
  );
}

/** Versions of groups that the server serves, by the first part of their names: `core`, `rbac`. */
function servedVersions(): { group: string; version: string; resources: readonly string[] }[] {
  return KINDS.trim()
    .split('\n\n')
    .map((section) => {
      const [groupVersion = '', ...resources] = section.split('\n');
      const [version = '', group = 'core'] = groupVersion.split('/').reverse();
      return { group: group.split('.')[0] ?? '', version, resources };
    });
}

/** Go types with their own JSON encoding: the decoder handles them by name, their fields are plain. */
const CUSTOM_JSON = new Set([
  'resource.Quantity',
  'intstr.IntOrString',
  'meta.v1.Time',
  'meta.v1.MicroTime',
  'meta.v1.FieldsV1',
  'meta.v1.Verbs',
  'apiextensions.v1.JSON',
  'apiextensions.v1.JSONSchemaPropsOrArray',
  'apiextensions.v1.JSONSchemaPropsOrBool',
  'apiextensions.v1.JSONSchemaPropsOrStringArray',
  'authentication.v1.AttestationValue',
  'authentication.v1.ExtraValue',
  'authorization.v1.ExtraValue',
  'certificates.v1.ExtraValue',
  'runtime.RawExtension',
]);

/** The only type with `omitzero`, because only it has a method for its zero value. */
const TIME = 'meta.v1.Time';

const SCALARS = new Set(['string', 'bytes', 'bool', 'int32', 'int64', 'double']);
const OUTPUT = join(import.meta.dirname, '..', 'src', 'apiserver', 'generated', 'protobuf.ts');

generate(process.argv[2] ?? 'v0.37.2');

function generate(version: string): void {
  const wire = new Map<string, readonly WireField[]>();
  const go = new Map<string, ReadonlyMap<number, GoField>>();
  for (const [name, { alias, module, folder }] of PACKAGES) {
    const path = join(moduleFolder(module, version), folder);
    for (const [message, fields] of messagesOf(
      readFileSync(join(path, 'generated.proto'), 'utf8'),
      name,
    )) {
      wire.set(`${alias}.${message}`, fields);
    }
    for (const file of readdirSync(path).filter((each) =>
      /^(types.*|group_version)\.go$/.test(each),
    )) {
      for (const [type, fields] of structsOf(readFileSync(join(path, file), 'utf8'))) {
        go.set(`${alias}.${type}`, fields);
      }
    }
  }
  const names = reachable(wire);
  const sections = Array.from(Map.groupBy(names, aliasOf), ([alias, messages]) => {
    const lines = messages.map((message) => {
      const fields = (wire.get(message) ?? []).map((field) =>
        fieldText(message, field, go.get(message)),
      );
      return [nameWithin(alias, message), ...fields].join('; ');
    });
    return [alias, ...lines].join('\n');
  });
  writeFileSync(OUTPUT, moduleText(version, sections));
  console.log(`${names.length} messages`);
}

/** `core.v1` of `core.v1.Pod` */
function aliasOf(message: string): string {
  return message.slice(0, message.lastIndexOf('.'));
}

/** A type as the messages of a package name it: without the package if it is the same. */
function nameWithin(alias: string, type: string): string {
  return aliasOf(type) === alias ? type.slice(alias.length + 1) : type;
}

function moduleFolder(module: string, version: string): string {
  const answer = execFileSync('go', ['mod', 'download', '-json', `${module}@${version}`], {
    encoding: 'utf8',
  });
  return (JSON.parse(answer) as { Dir: string }).Dir;
}

/** Parses a `generated.proto`, which contains only messages of fields. */
function messagesOf(text: string, packageName: string): Map<string, WireField[]> {
  const messages = new Map<string, WireField[]>();
  for (const [, message = '', body = ''] of text.matchAll(/^message (\w+) \{\n(.*?)^\}/gms)) {
    const fields = body
      .split('\n')
      .map((each) => each.trim())
      .filter((each) => each !== '' && !each.startsWith('//'))
      .map((each): WireField => {
        const match =
          /^(?:(optional|repeated) ([\w.]+)|map<string, ([\w.]+)>) (\w+) = (\d+);$/.exec(each);
        if (!match) throw new Error(`${packageName}.${message}: cannot read ${each}`);
        const [, label, single, value, name = '', number] = match;
        const inner = typeName(single ?? value ?? '', packageName);
        const prefix = label === 'repeated' ? '[]' : '';
        return { number: Number(number), name, label: value ? 'map[]' : prefix, inner };
      });
    messages.set(message, fields);
  }
  return messages;
}

function typeName(type: string, packageName: string): string {
  if (SCALARS.has(type)) return type;
  const at = type.lastIndexOf('.');
  const owner = at < 0 ? packageName : type.slice(0, at).replace(/^\./, '');
  return `${PACKAGES.get(owner)?.alias ?? owner}.${type.slice(at + 1)}`;
}

/** Parses the structs of a Go file; their fields are keyed by protobuf number. */
function structsOf(text: string): Map<string, Map<number, GoField>> {
  const structs = new Map<string, Map<number, GoField>>();
  for (const [, type = '', body = ''] of text.matchAll(/^type (\w+) struct \{\n(.*?)^\}/gms)) {
    const fields = new Map<number, GoField>();
    for (const [, declaration = '', tags = ''] of body.matchAll(/^\s*([^/\s].*?)\s*`(.*)`/gm)) {
      const number = /protobuf:"\w+,(\d+)/.exec(tags)?.[1];
      if (number === undefined) continue;
      const goType = declaration.split(/\s+/).at(-1) ?? '';
      fields.set(Number(number), {
        json: /json:"([^"]*)"/.exec(tags)?.[1] ?? '',
        pointer: goType.startsWith('*'),
        type: goType.replace('*', ''),
      });
    }
    structs.set(type, fields);
  }
  return structs;
}

function reachable(wire: ReadonlyMap<string, readonly WireField[]>): string[] {
  const found = new Set<string>();
  const pending = [...servedKinds(), ...OTHER_KINDS];
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (found.has(name)) continue;
    const fields = wire.get(name);
    if (!fields) throw new Error(`Unknown message ${name}`);
    found.add(name);
    pending.push(...fields.map(({ inner }) => inner).filter((inner) => !SCALARS.has(inner)));
  }
  return [...found].sort();
}

function fieldText(
  owner: string,
  { number, name, label, inner }: WireField,
  go: ReadonlyMap<number, GoField> | undefined,
): string {
  const type = label + nameWithin(aliasOf(owner), inner);
  if (CUSTOM_JSON.has(owner)) {
    // Bytes in these are JSON that is copied.
    return `${number} ${name}? ${label === '[]' ? '' : '*'}${inner === 'bytes' ? 'json' : type}`;
  }
  const field = go?.get(number);
  if (!field) throw new Error(`${owner}: types.go has no field ${number} (${name})`);
  const [json = '', ...options] = field.json.split(',');
  if (json === '') {
    // An embedded struct needs no tag.
    if (options.some((option) => option !== 'inline') || field.pointer) {
      throw new Error(`${owner}: field ${number} (${name}) has no name in JSON`);
    }
    return `${number} . ${type}`;
  }
  const omitZero = options.includes('omitzero');
  if (omitZero && inner !== TIME) throw new Error(`${owner}.${name}: omitzero on a ${inner}`);
  // Go never omits a struct with `omitempty`.
  const isStruct = !field.pointer && label === '' && !SCALARS.has(inner);
  const optional = omitZero || (options.includes('omitempty') && !isStruct);
  const goName = goNameOf(field, inner, label);
  return `${number} ${json}${optional ? '?' : ''} ${field.pointer ? '*' : ''}${type}${goName}`;
}

/** The name of Go's type for a text or a map, if it has one: `=RestartPolicy`, `=types.UID`. */
function goNameOf({ type }: GoField, inner: string, label: WireField['label']): string {
  const isNamed = label === 'map[]' ? !type.startsWith('map[') : inner === 'string';
  const name = type.replace('[]', '').replace(/^\w*v1\./, 'v1.');
  return isNamed && name !== 'string' ? `=${name}` : '';
}

function moduleText(version: string, sections: readonly string[]): string {
  return `// Generated by hack/generate-protobuf-messages.ts from the Go modules of Kubernetes ${version}.
// Do not edit. Derived from Kubernetes, which is under the Apache License 2.0.

/**
 * The messages of each package, a line each: name, then fields: number, name in JSON, type. A type of the same
 * package is without it. \`.\` as the name: the members of the value are members of the message. \`?\`: omitted
 * if it has Go's zero value. \`*\`: a pointer, omitted if nil. \`json\`: bytes with any JSON text. \`=\`: the name of
 * Go's type for a text or a map, without the version of the same package.
 */
export const PROTOBUF: string = \`
${sections.join('\n\n').replaceAll(/[\\`]|\$\{/g, String.raw`\$&`)}
\`;
`;
}
