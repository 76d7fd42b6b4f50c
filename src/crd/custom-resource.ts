import type { CustomResourceDefinition } from '../api/builtin.ts';
import type { Draft, KubernetesObject } from '../api/object.ts';
import { customShape } from '../api/field-shape.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';
import { isRecord } from '../util/values.ts';
import type { Schema, SchemaNode, ValidationRule, ValueOf, ValueOfFields } from './schema.ts';

/** Column of `kubectl get`. */
export interface PrinterColumn {
  /** Heading. */
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  /** Path of the value: `.status.phase`, `.metadata.creationTimestamp`. */
  readonly jsonPath: string;
  readonly description?: string;
  /**
   * A column with a priority above 0 is shown by `-o wide` only.
   * @default 0
   */
  readonly priority?: number;
}

/** Paths of the scale subresource, which `kubectl scale` and autoscalers use. */
export interface ScalePaths {
  /** `.spec.replicas` */
  readonly specReplicasPath: string;
  /** `.status.replicas` */
  readonly statusReplicasPath: string;
  /** Path of the label selector of the Pods in its string form, for the HorizontalPodAutoscaler. */
  readonly labelSelectorPath?: string;
}

/** Options of {@link customResource}. */
export interface CustomResourceOptions<Spec extends Schema, Status extends Schema> {
  /** Domain of yours: `example.com`. */
  readonly group: string;
  /** `v1`, `v1beta1` */
  readonly version: string;
  /** PascalCase: `Backup`. */
  readonly kind: string;
  /** Lower case: `backups`. */
  readonly plural: string;
  /** @default the kind in lower case */
  readonly singular?: string | undefined;
  /** Names for `kubectl get`: `bk`. @default none */
  readonly shortNames?: readonly string[] | undefined;
  /** Groups of kinds for `kubectl get`: `all`. @default none */
  readonly categories?: readonly string[] | undefined;
  /** @default 'Namespaced' */
  readonly scope?: 'Namespaced' | 'Cluster' | undefined;
  /** Text for `kubectl explain`. */
  readonly description?: string | undefined;
  /** Desired state. */
  readonly spec: Spec;
  /** Observed state. With it, the kind has the status subresource. @default none */
  readonly status?: Status | undefined;
  /** Rules in CEL about the whole object. @default none */
  readonly rules?: readonly ValidationRule[] | undefined;
  /**
   * Columns of `kubectl get` after the name. If the status has conditions, the columns Ready, Reason and Age follow, unless
   * they are here.
   * @default the age
   */
  readonly columns?: readonly PrinterColumn[] | undefined;
  /** @default no scale subresource */
  readonly scale?: ScalePaths | undefined;
  /** Paths of fields for field selectors: `.spec.schedule`. @default none */
  readonly selectableFields?: readonly string[] | undefined;
  /** Message for users of this version, which makes it deprecated. @default not deprecated */
  readonly deprecationWarning?: string | undefined;
  /** Annotations of the CRD. @default none */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  /** Other served versions of the kind. The server stores objects in the version of this call. @default none */
  readonly otherVersions?: readonly CustomResource[] | undefined;
}

/** Resource descriptor of a kind, with its CustomResourceDefinition. */
export interface CustomResource<T extends KubernetesObject = KubernetesObject> extends Resource<T> {
  /** The CRD, for `client.create`, `applyManifests` and `crd-controller generate`. */
  readonly definition: Draft<CustomResourceDefinition>;
}

/** The objects of a kind with this spec and status. */
export type CustomObject<Spec extends Schema, Status extends Schema> = KubernetesObject &
  ValueOfFields<{ spec: Spec }> &
  ([Status] extends [never] ? unknown : { status?: ValueOf<Status> });

/** The type of the values of a schema, or of the objects of a resource: `Infer<typeof BACKUPS>`. */
export type Infer<S extends Schema | Resource> =
  S extends Resource<infer T> ? T : S extends Schema ? ValueOf<S> : never;

const OPTIONS: OptionNames<CustomResourceOptions<Schema, Schema>> = {
  group: true,
  version: true,
  kind: true,
  plural: true,
  singular: true,
  shortNames: true,
  categories: true,
  scope: true,
  description: true,
  spec: true,
  status: true,
  rules: true,
  columns: true,
  scale: true,
  selectableFields: true,
  deprecationWarning: true,
  annotations: true,
  otherVersions: true,
};

/**
 * Defines a kind: returns its resource descriptor, with the type of its objects, and its CRD.
 *
 * @throws {TypeError} if an option is unknown, or another version is of a different kind
 *
 * @example
 * ```ts
 * import { customResource, integer, object } from 'crd-controller/schema';
 *
 * const { definition } = customResource({
 *   group: 'example.com',
 *   version: 'v1',
 *   kind: 'Website',
 *   plural: 'websites',
 *   spec: object({ replicas: integer({ minimum: 0 }) }),
 * });
 * console.log(definition.metadata.name); // prints: websites.example.com
 * ```
 */
export function customResource<Spec extends Schema, Status extends Schema = never>(
  options: CustomResourceOptions<Spec, Status>,
): CustomResource<CustomObject<Spec, Status>> {
  checkOptions(options, OPTIONS, 'customResource');
  const { group, version, kind, plural, scope = 'Namespaced' } = options;
  const name = groupResourceOf({ group, plural });
  const others = (options.otherVersions ?? []).flatMap((other) => {
    if (groupResourceOf(other) !== name || other.kind !== kind) {
      throw new TypeError(
        `customResource: otherVersions of ${kind}.${group} contains ${other.kind}.${other.group}`,
      );
    }
    if (other.definition.spec.scope !== scope) {
      throw new TypeError(
        `customResource: ${kind}.${group} is ${scope} in ${version} and ${other.definition.spec.scope} in ${other.version}: all versions have one scope`,
      );
    }
    return other.definition.spec.versions.map((entry) => ({ ...entry, storage: false }));
  });
  const fields = customShape(rootOf(options));
  return {
    group,
    version,
    plural,
    kind,
    namespaced: scope === 'Namespaced',
    ...(fields && { fields }),
    definition: {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name, ...(options.annotations && { annotations: { ...options.annotations } }) },
      spec: {
        group,
        scope,
        names: {
          kind,
          listKind: `${kind}List`,
          plural,
          singular: options.singular ?? kind.toLowerCase(),
          ...(options.shortNames && { shortNames: [...options.shortNames] }),
          ...(options.categories && { categories: [...options.categories] }),
        },
        versions: [versionOf(options), ...others],
      },
    },
  };
}

function versionOf(options: CustomResourceOptions<Schema, Schema>) {
  const { version, status, scale, selectableFields, deprecationWarning } = options;
  const columns = columnsOf(options);
  const subresources = { ...(status && { status: {} }), ...(scale && { scale }) };
  return {
    name: version,
    served: true,
    storage: true,
    ...(deprecationWarning !== undefined && { deprecated: true, deprecationWarning }),
    ...(Object.keys(subresources).length > 0 && { subresources }),
    ...(columns && { additionalPrinterColumns: columns }),
    ...(selectableFields && {
      selectableFields: selectableFields.map((jsonPath) => ({ jsonPath })),
    }),
    schema: { openAPIV3Schema: rootOf(options) },
  };
}

/** Columns of a kind with conditions, after its own. */
const READINESS_COLUMNS: readonly PrinterColumn[] = [
  {
    name: 'Ready',
    type: 'string',
    description: 'Whether the object is in its desired state',
    jsonPath: '.status.conditions[?(@.type=="Ready")].status',
  },
  {
    name: 'Reason',
    type: 'string',
    description: 'Reason of the condition Ready',
    priority: 1,
    jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
  },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
];

function columnsOf({ status, columns = [] }: CustomResourceOptions<Schema, Schema>) {
  const common = status?.node.properties?.['conditions'] ? READINESS_COLUMNS : [];
  const all = [
    ...columns,
    ...common.filter(({ name }) => !columns.some((column) => column.name === name)),
  ];
  return all.length > 0 ? all : undefined;
}

function rootOf({
  description,
  spec,
  status,
  rules,
}: CustomResourceOptions<Schema, Schema>): SchemaNode {
  return {
    ...(description !== undefined && { description }),
    type: 'object',
    ...(!('isOptional' in spec) && { required: ['spec'] }),
    properties: { spec: spec.node, ...(status && { status: status.node }) },
    ...(rules && { 'x-kubernetes-validations': rules }),
  };
}

/** Returns whether the value is a result of {@link customResource}. */
export function isCustomResource(value: unknown): value is CustomResource {
  return (
    isRecord(value) &&
    typeof value['plural'] === 'string' &&
    isRecord(value['definition']) &&
    value['definition']['kind'] === 'CustomResourceDefinition'
  );
}
