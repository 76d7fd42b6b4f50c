import { objectMetaSchema } from '../schema/builtin-schemas.ts';
import type { Registry } from '../objects/registry.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import { declare } from '../../cel/schema-type.ts';
import type { CelType } from '../../cel/values/type.ts';
import { DYN } from '../../cel/values/type.ts';
import { NestingError, listIn, objectIn, objectsIn, textIn } from '../../util/json-value.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { PolicyEnvironment } from '../../cel/policy-environment.ts';

/** A warning about an expression of a ValidatingAdmissionPolicy, in `status.typeChecking`. */
export interface ExpressionWarning {
  /** `spec.validations[0].expression` */
  readonly fieldRef: string;
  readonly warning: string;
}

/** Maximum number of kinds of one rule. */
const MAX_KINDS = 10;

/**
 * Checks the validations of a policy with the types of the kinds that its rules name. Rules with `*` in their groups or versions
 * are not checked, as in kube-controller-manager.
 */
export function typeWarnings(spec: JsonObject, registry: Registry): readonly ExpressionWarning[] {
  const kinds = kindsOf(spec, registry).flatMap((kind) => {
    const type = typeOf(kind);
    return type ? [{ kind, type }] : [];
  });
  const params = paramTypeOf(spec, registry);
  const environments = kinds.map(({ kind, type }) => {
    const { group, version, kind: name } = kind;
    return {
      id: `${group}/${version}, Kind=${name}`,
      types: PolicyEnvironment.of(spec, { object: type, params }),
    };
  });
  return objectsIn(spec, 'validations').flatMap((validation, index) =>
    ['expression', 'messageExpression'].flatMap((field) => {
      const source = textIn(validation, field);
      if (source === '') return [];
      const warnings = environments.flatMap(({ id, types }) => {
        const { compiled } = types.compile(source, 'any');
        return 'error' in compiled
          ? [`${id}: ${compiled.error.replace(/^compilation failed: /, '')}\n`]
          : [];
      });
      const fieldRef = `spec.validations[${index}].${field}`;
      return warnings.length > 0 ? [{ fieldRef, warning: warnings.join('\n') }] : [];
    }),
  );
}

/** Returns the kinds that the rules of a policy name, sorted by group, version and kind. */
function kindsOf(spec: JsonObject, registry: Registry): readonly ResourceDefinition[] {
  const found = new Set<ResourceDefinition>();
  for (const rule of objectsIn(objectIn(spec, 'matchConstraints') ?? {}, 'resourceRules')) {
    const texts = (field: string) =>
      listIn(rule, field)
        .filter((each) => typeof each === 'string')
        .toSorted();
    const [groups, versions] = [texts('apiGroups'), texts('apiVersions')];
    if ([...groups, ...versions].some((each) => each.includes('*'))) continue;
    const definitions = groups.flatMap((group) =>
      versions.flatMap((version) =>
        texts('resources').map((resource) => registry.find(group, version, resource)),
      ),
    );
    const known = definitions.filter((definition) => definition !== undefined);
    for (const definition of known.slice(0, MAX_KINDS)) found.add(definition);
    if (known.length >= MAX_KINDS) break;
  }
  const key = ({ group, version, kind }: ResourceDefinition) => `${group}\0${version}\0${kind}`;
  return [...found].toSorted((one, other) => (key(one) < key(other) ? -1 : 1));
}

/** Returns the type of the params: any type if their kind is not served. */
function paramTypeOf(spec: JsonObject, registry: Registry): CelType {
  const { apiVersion = '', kind } = objectIn(spec, 'paramKind') ?? {};
  const [version = '', group = ''] = String(apiVersion).split('/').toReversed();
  const { definitions = [] } = registry.groupVersion(group, version) ?? {};
  const definition = definitions.find((each) => each.kind === kind);
  return (definition && typeOf(definition)) ?? DYN;
}

/** Returns the type of the objects of a kind, or undefined if its schema is not known or recursive. */
function typeOf({ schema }: ResourceDefinition): CelType | undefined {
  if (!schema) return undefined;
  const text = { type: 'string' };
  const properties = { ...schema.properties, apiVersion: text, kind: text };
  try {
    return declare(
      { ...schema, properties: { ...properties, metadata: objectMetaSchema() } },
      false,
    )?.type;
  } catch (error) {
    if (error instanceof NestingError) return undefined;
    throw error;
  }
}
