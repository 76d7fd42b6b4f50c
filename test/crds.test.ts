import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { manifestsOf } from './support/roles.ts';

/** Our CRDs, and the CRD in the project template of `init`. */
const FOLDERS = ['crds', 'examples/06-library/static-site/deploy/crds'];

/** The tested fields of a schema. */
interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
}

interface Version {
  readonly schema: { readonly openAPIV3Schema: Schema };
  readonly subresources?: {
    readonly status?: object;
    readonly scale?: Readonly<Record<string, string>>;
  };
  readonly additionalPrinterColumns?: readonly {
    readonly name: string;
    readonly description?: string;
    readonly priority?: number;
  }[];
}

interface Crd {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly names: {
      readonly plural: string;
      readonly singular: string;
      readonly shortNames?: readonly string[];
      readonly categories?: readonly string[];
    };
    readonly versions: readonly Version[];
  };
}

/** The part of a ValidatingAdmissionPolicy's spec that selects requests. */
interface Policy {
  readonly matchConstraints: {
    readonly resourceRules: readonly {
      readonly apiGroups: readonly string[];
      readonly resources: readonly string[];
    }[];
  };
}

/** Yields every schema in `schema` with its path, itself included. */
function* schemasIn(schema: Schema, path = ''): Generator<readonly [path: string, schema: Schema]> {
  yield [path, schema];
  for (const [name, each] of Object.entries(schema.properties ?? {})) {
    yield* schemasIn(each, `${path}.${name}`);
  }
  if (schema.items) yield* schemasIn(schema.items, `${path}[]`);
}

/** Returns the paths of the schemas for which `isBad` returns true. */
function paths(schema: Schema, isBad: (each: Schema, path: string) => boolean): string[] {
  return [...schemasIn(schema)].filter(([path, each]) => isBad(each, path)).map(([path]) => path);
}

function schemaAt(schema: Schema, ...path: readonly string[]): Schema {
  const found = path.reduce((at: Schema | undefined, name) => at?.properties?.[name], schema);
  assert.ok(found, `there is no ${path.join('.')}`);
  return found;
}

for (const folder of FOLDERS) {
  for (const file of readdirSync(join(import.meta.dirname, '..', folder))) {
    const text = readFileSync(join(import.meta.dirname, '..', folder, file), 'utf8');
    const { metadata, spec } = parse(text) as Crd;

    describe(file, () => {
      for (const version of spec.versions) {
        const root = version.schema.openAPIV3Schema;
        const properties = Object.values(root.properties ?? {});

        test('every field has a description for kubectl explain', () => {
          assert.deepEqual(
            paths(root, ({ description }) => !description),
            [],
          );
        });

        test('every value is bounded, so that the cost of CEL rules is bounded', () => {
          const isBounded = (each: Schema) => each.maxLength ?? each.enum ?? each.format;
          assert.deepEqual(
            paths(root, (each) => each.type === 'string' && isBounded(each) === undefined),
            [],
          );
          assert.deepEqual(
            paths(root, ({ type, maxItems }) => type === 'array' && maxItems === undefined),
            [],
          );
          assert.deepEqual(
            paths(root, (each) => each.type === 'integer' && each.format === undefined),
            [],
          );
          assert.deepEqual(
            paths(root, (each) => each.type === 'number' || 'additionalProperties' in each),
            [],
          );
        });

        test('unknown fields are pruned, and no status field has a default', () => {
          assert.deepEqual(
            paths(root, (each) => 'x-kubernetes-preserve-unknown-fields' in each),
            [],
          );
          const status = schemaAt(root, 'status');
          assert.deepEqual(
            paths(status, (each) => 'default' in each),
            [],
          );
        });

        test('the status is a subresource with a generation and conditions, as kstatus expects', () => {
          assert.ok(version.subresources?.status);
          assert.equal(schemaAt(root, 'status', 'observedGeneration').format, 'int64');
          const conditions = schemaAt(root, 'status', 'conditions');
          assert.equal(conditions['x-kubernetes-list-type'], 'map');
          assert.deepEqual(conditions['x-kubernetes-list-map-keys'], ['type']);
          const { required, properties: fields = {} } = conditions.items ?? {};
          const wanted = ['type', 'status', 'lastTransitionTime', 'reason', 'message'];
          assert.deepEqual(required, wanted);
          assert.deepEqual(fields['status']?.enum, ['True', 'False', 'Unknown']);
          assert.equal(fields['lastTransitionTime']?.format, 'date-time');
        });

        test('printer columns show the state and the age, and the reason with -o wide', () => {
          const columns = version.additionalPrinterColumns ?? [];
          assert.deepEqual(columns.at(-1), {
            name: 'Age',
            type: 'date',
            jsonPath: '.metadata.creationTimestamp',
          });
          assert.ok(columns.some(({ name, priority }) => name === 'Reason' && priority === 1));
          assert.deepEqual(
            columns.filter(({ name, description }) => name !== 'Age' && !description),
            [],
          );
        });

        if (properties.some(({ properties: fields = {} }) => 'replicas' in fields)) {
          test('kinds with replicas have a scale subresource, also for autoscalers', () => {
            const scale = version.subresources?.scale ?? {};
            // The project template stays simple.
            const forAutoscalers = folder === 'crds' ? ['labelSelectorPath'] : [];
            for (const name of ['specReplicasPath', 'statusReplicasPath', ...forAutoscalers]) {
              schemaAt(root, ...(scale[name] ?? '.').slice(1).split('.'));
            }
          });
        }
      }

      test('its names do not collide with well-known kinds', () => {
        const { singular, plural, categories = [], shortNames = [] } = spec.names;
        assert.equal(metadata.name, `${plural}.${spec.group}`);
        assert.ok(!categories.includes('all'));
        for (const name of shortNames) assert.ok(name !== singular && name !== plural, name);
      });
    });
  }
}

test('the admission component covers every kind and every scale subresource', () => {
  const covered = manifestsOf('admission/policy.yaml').flatMap(
    ({ spec }) => (spec as Partial<Policy>).matchConstraints?.resourceRules ?? [],
  );
  const all = readdirSync(join(import.meta.dirname, '../crds')).map((file) => {
    const path = join(import.meta.dirname, '../crds', file);
    return parse(readFileSync(path, 'utf8')) as Crd;
  });
  assert.deepEqual(
    new Set(covered.flatMap(({ apiGroups }) => apiGroups)),
    new Set(all.map(({ spec }) => spec.group)),
  );
  const expected = all.flatMap(({ spec }) => {
    const { plural } = spec.names;
    const isScalable = spec.versions.some(({ subresources }) => subresources?.scale);
    return isScalable ? [plural, `${plural}/scale`] : [plural];
  });
  assert.deepEqual(covered.flatMap(({ resources }) => resources).toSorted(), expected.toSorted());
});
