import { KINDS } from '../generated/kinds.ts';
import { messageOfKind } from '../protobuf/protobuf-body.ts';
import { equalJson } from '../../api/equal.ts';
import { fieldPath, valueAtPath } from '../objects/field-path.ts';
import type {
  ResourceDefinition,
  ResourceHooks,
  ScaleFieldPaths,
  StoredAs,
  Subresources,
} from '../objects/resource-definition.ts';
import { fieldError } from '../../api/field-error.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import { BUILTIN_COLUMNS } from '../table/builtin-columns.ts';
import { DEFAULT_COLUMNS, columnsOfStored } from '../table/column.ts';
import { goSchema } from '../protobuf/go-schema.ts';
import { linkedSchema, schemaName } from '../schema/builtin-schemas.ts';
import { STATUS_WARNINGS, WARNINGS } from './warnings.ts';

/**
 * Differences of a built-in kind from a plain object with a schema. Names, scope, verbs and subresources are
 * generated (generated/kinds.ts), as are schemas and messages. Columns are in table/builtin-columns.ts.
 */
export interface KindTraits extends Partial<
  Pick<
    ResourceDefinition,
    | 'createOnUpdate'
    | 'deprecationWarning'
    | 'hooks'
    | 'keepsStatus'
    | 'nameFormat'
    | 'orphansDependents'
    | 'returnsDeleted'
    | 'review'
    | 'selectableFields'
    | 'statusKeeps'
    | 'tracksGeneration'
    | 'unconditionalUpdate'
    | 'warnings'
  >
> {
  /** Paths of `/scale`, if it is a subresource. */
  readonly scale?: ScaleFieldPaths;
  /**
   * Default values by path: `spec.replicas`, `webhooks[].failurePolicy`. A default applies if the parent object
   * is present and the field is not.
   */
  readonly defaults?: Readonly<Record<string, unknown>>;
  /** Paths of fields that no update changes. */
  readonly immutable?: readonly string[];
  /** Present on another representation of the stored objects of `kind`: `autoscaling/v2/horizontalpodautoscalers`. */
  readonly storedAs?: Omit<StoredAs, 'definition'> & { readonly kind: string };
}

/**
 * Returns the definitions of all built-in kinds. A schema is linked when it is first used.
 *
 * @param traits by group and plural: `apps/deployments`, or `pods` in the core group; a version precedes the plural
 *   if versions differ: `autoscaling/v1/horizontalpodautoscalers`
 * @throws {Error} if traits or columns belong to no kind
 */
export function builtinKinds(
  traits: Readonly<Record<string, KindTraits>>,
): readonly ResourceDefinition[] {
  const unused = new Set([...Object.keys(traits), ...Object.keys(BUILTIN_COLUMNS)]);
  const byName = new Map<string, ResourceDefinition>();
  const find = (name: string) => byName.get(name);
  const kinds = KINDS.trim()
    .split('\n\n')
    .flatMap((section) => {
      const [groupVersion = '', ...lines] = section.split('\n');
      const [version = '', group = ''] = groupVersion.split('/').reverse();
      return lines.map((line) => {
        const plural = line.slice(0, line.indexOf(' '));
        const place = group ? `${group}/` : '';
        const keys = [`${place}${version}/${plural}`, `${place}${plural}`];
        const key = keys.find((each) => Object.hasOwn(traits, each)) ?? '';
        for (const used of [key, `${place}${plural}`]) unused.delete(used);
        const warnings = warningsOf(`${place}${plural}`);
        const own = traits[key] ?? {};
        return definitionOf(group, version, line, { ...own, ...(warnings && { warnings }) }, find);
      });
    });
  for (const kind of kinds) byName.set(nameOf(kind), kind);
  if (unused.size > 0) throw new Error(`No built-in kind has the names ${[...unused].join(', ')}`);
  return kinds;
}

function warningsOf(key: string): ResourceDefinition['warnings'] {
  if (!WARNINGS[key] && !STATUS_WARNINGS[key]) return undefined;
  return (object, previous, subresource) => {
    const own = subresource === 'status' ? STATUS_WARNINGS[key] : WARNINGS[key];
    return own?.(object, previous) ?? [];
  };
}

function nameOf({ group, version, plural }: ResourceDefinition): string {
  return [...(group ? [group] : []), version, plural].join('/');
}

function definitionOf(
  group: string,
  version: string,
  line: string,
  { scale, defaults = {}, immutable = [], storedAs, ...traits }: KindTraits,
  find: (name: string) => ResourceDefinition | undefined,
): ResourceDefinition {
  const [plural = '', singular = '', kind = '', scope, ...options] = line.split(' ');
  const values = new Map(
    options.map((option) => {
      const [name = '', list = ''] = option.split('=');
      return [name, list.split(',')];
    }),
  );
  const names: Subresources = Object.fromEntries(
    (values.get('subresources') ?? []).map((name) => [name, true]),
  );
  const columns = BUILTIN_COLUMNS[group ? `${group}/${plural}` : plural] ?? DEFAULT_COLUMNS;
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
    columns: storedAs ? columnsOfStored(columns, storedAs.toStored) : columns,
    ...traits,
    ...(immutable.length > 0 && { hooks: withImmutable(immutable, traits.hooks) }),
    ...(storedAs && { storedAs: resolved(storedAs, find) }),
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

function resolved(
  { kind, ...conversion }: NonNullable<KindTraits['storedAs']>,
  find: (name: string) => ResourceDefinition | undefined,
): StoredAs {
  return {
    ...conversion,
    get definition() {
      const definition = find(kind);
      if (!definition) throw new Error(`There is no kind ${kind}`);
      return definition;
    },
  };
}

function withImmutable(paths: readonly string[], hooks: ResourceHooks = {}): ResourceHooks {
  return {
    ...hooks,
    validateUpdate: (next, previous, subresource) => {
      const errors = paths.flatMap((path) => {
        const value = valueAtPath(next, fieldPath(path));
        const isSame = equalJson(value, valueAtPath(previous, fieldPath(path)));
        return isSame ? [] : [fieldError.invalid(path, value ?? null, 'field is immutable')];
      });
      return [...errors, ...(hooks.validateUpdate?.(next, previous, subresource) ?? [])];
    },
  };
}
