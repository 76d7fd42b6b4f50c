import type { CustomResourceDefinition } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { oncePerObject } from '../../util/memo.ts';
import { objectMetaSchema } from '../schema/builtin-schemas.ts';
import { fieldsAt } from '../objects/field-path.ts';
import { finalizerWarnings } from '../objects/finalizers.ts';
import { compareVersions } from '../objects/registry.ts';
import type { WebhookConversion, ResourceDefinition } from '../objects/resource-definition.ts';
import type { Subresources } from '../objects/subresources.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import { withPrunedDefaults } from '../schema/pruning.ts';
import { customColumns } from '../table/custom-columns.ts';

export type Crd = DeepReadonly<CustomResourceDefinition>;
type CrdVersion = Crd['spec']['versions'][number];

/** Returns the definitions of a stored CRD: one resource for each served version. */
export function definitionsOf(crd: Crd): ResourceDefinition[] {
  const { versions } = crd.spec;
  const schemas = Object.fromEntries(versions.map((each) => [each.name, schemaOf(each)]));
  return versions
    .filter(({ served }) => served)
    .map((version) => definitionOf(crd, version, schemas));
}

function definitionOf(
  crd: Crd,
  version: CrdVersion,
  versionSchemas: Readonly<Record<string, JsonSchema | undefined>>,
): ResourceDefinition {
  const { group, scope } = crd.spec;
  const { acceptedNames } = crd.status ?? {};
  const names = acceptedNames?.plural ? acceptedNames : crd.spec.names;
  const { plural, kind } = names;
  return {
    group,
    version: version.name,
    plural,
    kind,
    singular: names.singular || kind.toLowerCase(),
    listKind: names.listKind || `${kind}List`,
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    namespaced: scope === 'Namespaced',
    schema: versionSchemas[version.name],
    subresources: subresourcesOf(version),
    columns: customColumns(version.additionalPrinterColumns),
    selectableFields: fieldsAt(...(version.selectableFields ?? []).map(({ jsonPath }) => jsonPath)),
    tracksGeneration: true,
    custom: true,
    statusKeeps: 'metadata',
    warnings: finalizerWarnings,
    deprecationWarning: deprecationWarning(crd, version, kind),
    storageVersion: crd.spec.versions.find(({ storage }) => storage)?.name,
    versionSchemas,
    conversion: conversionOf(crd),
    terminating: crd.metadata.deletionTimestamp !== undefined,
  };
}

/** The schema of a version of a stored CRD, which is immutable. Each change of a CRD asks for it again. */
export const schemaOf: (version: CrdVersion) => JsonSchema | undefined = oncePerObject(
  ({ schema }) => {
    const own = schema?.openAPIV3Schema;
    return own && withPrunedDefaults(own, objectMetaSchema());
  },
);

/** Returns the warning of a deprecated version, which names the newest version that is not. */
function deprecationWarning(
  { spec: { group, versions } }: Crd,
  { name, deprecated, deprecationWarning: own }: CrdVersion,
  kind: string,
): string | undefined {
  if (!deprecated) return undefined;
  if (own) return own;
  const [successor] = versions
    .filter((other) => other.served && !other.deprecated && compareVersions(other.name, name) < 0)
    .map((other) => other.name)
    .sort(compareVersions);
  const use = successor === undefined ? '' : `; use ${group}/${successor} ${kind}`;
  return `${group}/${name} ${kind} is deprecated${use}`;
}

function conversionOf({ spec }: Crd): WebhookConversion | undefined {
  const { strategy, webhook } = spec.conversion ?? {};
  if (strategy !== 'Webhook' || !webhook) return undefined;
  return {
    webhook: { ...webhook },
    converted: new WeakMap(),
  };
}

function subresourcesOf({ subresources }: CrdVersion): Subresources {
  return {
    ...(subresources?.status && { status: true }),
    ...(subresources?.scale && { scale: subresources.scale }),
  };
}
