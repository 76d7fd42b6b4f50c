import { equalJson } from '../../api/equal.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import { KINDS } from '../generated/kinds.ts';
import { inOneStep } from '../objects/check-steps.ts';
import { CheckedObject, checked, checkedInSteps } from '../objects/checked-object.ts';
import { fieldPath, valueAtPath } from '../objects/field-path.ts';
import { fieldTree } from '../objects/field-tree.ts';
import type { ResourceDefinition, ResourceHooks } from '../objects/resource-definition.ts';
import { goSchema } from '../protobuf/go-schema.ts';
import { messageOfKind } from '../protobuf/protobuf-body.ts';
import { linkedSchema, schemaName } from '../schema/builtin-schemas.ts';
import { DEFAULT_COLUMNS, columnsOfStored } from '../table/column.ts';
import type { BuiltinKind, KindTraits } from './shared/builtin-kind.ts';

/**
 * Returns the definitions of all built-in kinds. A schema is linked when it is first used.
 *
 * @param kinds the kinds that differ from a plain object
 * @throws {Error} if one of them has no names
 */
export function builtinKinds(kinds: readonly BuiltinKind[]): readonly ResourceDefinition[] {
  const unused = new Map(kinds.map((kind) => [kind.resource, kind]));
  const definitions = new Map<string, ResourceDefinition>();
  for (const section of KINDS.trim().split('\n\n')) {
    const [groupVersion = '', ...lines] = section.split('\n');
    const [version = '', group = ''] = groupVersion.split('/').reverse();
    const place = group ? `${group}/` : '';
    for (const line of lines) {
      const plural = line.slice(0, line.indexOf(' '));
      const name = `${place}${version}/${plural}`;
      const key = unused.has(name) ? name : `${place}${plural}`;
      const { resource: _, ...traits } = unused.get(key) ?? { resource: key };
      unused.delete(key);
      definitions.set(name, definitionOf(group, version, line, traits, definitions));
    }
  }
  if (unused.size > 0)
    throw new Error(`No built-in kind has the names ${[...unused.keys()].join(', ')}`);
  return [...definitions.values()];
}

function definitionOf(
  group: string,
  version: string,
  line: string,
  traits: KindTraits,
  previous: ReadonlyMap<string, ResourceDefinition>,
): ResourceDefinition {
  const {
    scale,
    defaults = {},
    disabledFields,
    hooks,
    immutable,
    hidesImmutable,
    validate,
    validateInSteps,
    validateUpdate,
    storedAs,
    warnings,
    statusWarnings,
    ...others
  } = traits;
  const [plural = '', singular = '', kind = '', scope, ...options] = line.split(' ');
  const values = new Map(
    options.map((option) => {
      const [name = '', list = ''] = option.split('=');
      return [name, list.split(',')];
    }),
  );
  const names = Object.fromEntries((values.get('subresources') ?? []).map((name) => [name, true]));
  const stored = storedAs && previous.get(storedAs.kind);
  if (storedAs && !stored) throw new Error(`There is no kind ${storedAs.kind} before ${kind}`);
  const ownHooks = hooksOf(traits);
  let schema: JsonSchema | undefined;
  return {
    group,
    version,
    plural,
    singular,
    kind,
    listKind: `${kind}List`,
    namespaced: scope === 'namespaced',
    shortNames: values.get('short') ?? [],
    categories: values.get('categories') ?? [],
    ...(values.has('verbs') && { verbs: values.get('verbs') ?? [] }),
    subresources: scale ? { ...names, scale } : names,
    columns: DEFAULT_COLUMNS,
    ...others,
    ...(disabledFields && { disabledFields: fieldTree(disabledFields) }),
    ...(Object.keys(ownHooks).length > 0 && { hooks: ownHooks }),
    ...(stored && {
      columns: columnsOfStored(stored.columns, storedAs.toStored),
      storedAs: { ...storedAs, definition: stored },
    }),
    ...((warnings || statusWarnings) && {
      warnings: (object, former, subresource) =>
        (subresource === 'status' ? statusWarnings : warnings)?.(
          new CheckedObject(object),
          former,
        ) ?? [],
    }),
    get schema(): JsonSchema {
      schema ??= goSchema(
        linkedSchema(schemaName({ group, version }, kind)),
        messageOfKind({ group, version, kind }),
        defaults,
      );
      return schema;
    },
  };
}

function hooksOf({
  hooks,
  immutable,
  hidesImmutable,
  validate,
  validateInSteps,
  validateUpdate,
}: Pick<
  KindTraits,
  'hooks' | 'immutable' | 'hidesImmutable' | 'validate' | 'validateInSteps' | 'validateUpdate'
>): ResourceHooks {
  const inSteps = validateInSteps && checkedInSteps(validateInSteps);
  return {
    ...hooks,
    ...(validate && { validate: checked(validate) }),
    ...(inSteps && {
      validate: (object, previous) => inOneStep(inSteps(object, previous)),
      validateInSteps: inSteps,
    }),
    ...((immutable || validateUpdate) && {
      validateUpdate: checked((next, previous, subresource) => {
        for (const path of immutable ?? []) {
          const value = valueAtPath(next.value, fieldPath(path));
          if (equalJson(value, valueAtPath(previous, fieldPath(path)))) continue;
          next.invalid(path, 'field is immutable', hidesImmutable ? null : (value ?? null));
        }
        validateUpdate?.(next, previous, subresource);
      }),
    }),
  };
}
