import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { checkCrd } from '../../../../src/apiserver/crd/crd-validation.ts';
import { formatFieldError } from '../../../../src/api/field-error.ts';
import type { JsonSchema } from '../../../../src/api/json-schema.ts';
import type { JsonObject } from '../../../../src/util/json-value.ts';
import { NestingError } from '../../../../src/util/json-value.ts';
import { deepFreeze, nested } from '../schema/arbitraries.ts';
import { inOneStep } from '../../../../src/apiserver/objects/check-steps.ts';

const root: JsonSchema = {
  type: 'object',
  properties: { spec: { type: 'object', properties: { count: { type: 'integer' } } } },
};

interface Changes {
  readonly metadata?: JsonObject;
  readonly spec?: JsonObject;
  readonly names?: JsonObject;
  readonly version?: JsonObject;
  readonly schema?: unknown;
}

function crd({ metadata, spec, names, version, schema = root }: Changes = {}): JsonObject {
  return deepFreeze({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'counts.demo.mark8s.io', ...metadata },
    spec: {
      group: 'demo.mark8s.io',
      scope: 'Namespaced',
      names: {
        plural: 'counts',
        singular: 'count',
        kind: 'Count',
        listKind: 'CountList',
        ...names,
      },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: schema },
          ...version,
        },
      ],
      conversion: { strategy: 'None' },
      ...spec,
    },
  });
}

function errorsOf(definition: JsonObject, previous?: JsonObject): string[] {
  return inOneStep(checkCrd(definition, previous)).map(formatFieldError);
}

/** Messages about a field of the spec, without its path. */
function schemaErrors(field: unknown): string[] {
  const schema = { type: 'object', properties: { spec: field } };
  const path = 'spec.validation.openAPIV3Schema.properties[spec]';
  return errorsOf(crd({ schema })).map((error) => error.replaceAll(path, '~'));
}

test('a valid definition has no errors', () => {
  assert.deepEqual(errorsOf(crd()), []);
});

test('the definitions of this repository are valid', () => {
  const folder = join(import.meta.dirname, '../../../../crds');
  for (const file of readdirSync(folder)) {
    const definition = parse(readFileSync(join(folder, file), 'utf8')) as JsonObject;
    assert.deepEqual(errorsOf(definition), [], file);
  }
});

test('the name must consist of plural and group', () => {
  assert.deepEqual(errorsOf(crd({ metadata: { name: 'count.demo.mark8s.io' } })), [
    'metadata.name: Invalid value: "count.demo.mark8s.io": must be spec.names.plural+"."+spec.group',
  ]);
});

test('names must be DNS labels, and kind and listKind must differ', () => {
  const errors = errorsOf(
    crd({
      names: { plural: 'Counts', kind: 'Co_unt', listKind: 'Co_unt', shortNames: ['c', '1'] },
    }),
  ).map((error) => error.replace(/:? a DNS-1035.*/, ''));
  assert.deepEqual(errors, [
    'metadata.name: Invalid value: "counts.demo.mark8s.io": must be spec.names.plural+"."+spec.group',
    'spec.names.plural: Invalid value: "Counts"',
    'spec.names.kind: Invalid value: "Co_unt": may have mixed case, but should otherwise match',
    'spec.names.listKind: Invalid value: "Co_unt": may have mixed case, but should otherwise match',
    'spec.names.shortNames[1]: Invalid value: "1"',
    'spec.names.listKind: Invalid value: "Co_unt": kind and listKind may not be the same',
  ]);
  assert.deepEqual(errorsOf(crd({ names: { listKind: '' } })), [
    'spec.names.listKind: Required value',
  ]);
});

test('rejects invalid groups and scopes', () => {
  assert.deepEqual(
    errorsOf(crd({ metadata: { name: 'counts.demo' }, spec: { group: 'demo', scope: 'Galaxy' } })),
    [
      'spec.group: Invalid value: "demo": should be a domain with at least one dot',
      'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"',
    ],
  );
});

test('requires exactly one storage version and unique version names', () => {
  const version = (name: string, storage: boolean) => ({
    name,
    served: true,
    storage,
    schema: { openAPIV3Schema: root },
  });
  const details = (...versions: JsonObject[]) =>
    inOneStep(checkCrd(crd({ spec: { versions } }))).map(({ field, detail }) => [field, detail]);
  assert.deepEqual(details(version('v1', true), version('v2', true)), [
    ['spec.versions', 'must have exactly one version marked as storage version'],
  ]);
  assert.deepEqual(details(version('v1', true), version('v1', false)), [
    ['spec.versions', 'must contain unique version names'],
  ]);
});

test('version names must be DNS labels; the first is also reported as spec.version', () => {
  assert.deepEqual(
    inOneStep(checkCrd(crd({ version: { name: 'V1' } }))).map(({ field }) => field),
    ['spec.versions[0].name', 'spec.version'],
  );
});

test('status.storedVersions must not be empty without a storage version', () => {
  const versions = inOneStep(checkCrd(crd({ version: { storage: false } })));
  assert.deepEqual(
    versions.map(({ field, detail }) => [field, detail]),
    [
      ['spec.versions', 'must have exactly one version marked as storage version'],
      ['status.storedVersions', 'must have at least one stored version'],
    ],
  );
});

test('a conversion webhook requires the strategy Webhook, and vice versa', () => {
  const webhook = { clientConfig: { url: 'https://x' }, conversionReviewVersions: ['v1'] };
  const fieldsOf = (conversion: JsonObject) =>
    inOneStep(checkCrd(crd({ spec: { conversion } }))).map(({ field, reason }) => [field, reason]);
  assert.deepEqual(fieldsOf({ strategy: 'Webhook', webhook }), []);
  assert.deepEqual(fieldsOf({ strategy: 'Webhook' }), [
    ['spec.conversion.webhookClientConfig', 'FieldValueRequired'],
    ['spec.conversion.conversionReviewVersions', 'FieldValueRequired'],
  ]);
  assert.deepEqual(fieldsOf({ strategy: 'None', webhook }), [
    ['spec.conversion.webhookClientConfig', 'FieldValueForbidden'],
    ['spec.conversion.conversionReviewVersions', 'FieldValueForbidden'],
  ]);
});

test('every version must have a schema', () => {
  assert.deepEqual(errorsOf(crd({ version: { schema: undefined } })), [
    'spec.versions[0].schema.openAPIV3Schema: Required value',
  ]);
});

test('different schemas are checked for each version', () => {
  const bad = { type: 'object', properties: { spec: {} } };
  const versions = [
    { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: root } },
    { name: 'v2', served: true, storage: false, schema: { openAPIV3Schema: bad } },
  ];
  assert.deepEqual(errorsOf(crd({ spec: { versions } })), [
    'spec.versions[1].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields',
  ]);
});

test('every field must have a type outside of value validations', () => {
  assert.deepEqual(schemaErrors({}), [
    '~.type: Required value: must not be empty for specified object fields',
  ]);
  assert.deepEqual(schemaErrors({ type: 'array' }), ['~.items: Required value: must be specified']);
  assert.deepEqual(schemaErrors({ type: 'array', items: {} }), [
    '~.items.type: Required value: must not be empty for specified array items',
  ]);
  assert.deepEqual(schemaErrors({ type: 'integer', anyOf: [{ type: 'integer' }] }), [
    '~.anyOf[0].type: Forbidden: must be empty to be structural',
  ]);
  assert.deepEqual(schemaErrors({ 'x-kubernetes-preserve-unknown-fields': true }), []);
  const intOrString = {
    'x-kubernetes-int-or-string': true,
    anyOf: [{ type: 'integer' }, { type: 'string' }],
  };
  assert.deepEqual(schemaErrors(intOrString), []);
  assert.deepEqual(errorsOf(crd({ schema: { type: 'array', items: { type: 'string' } } })), [
    'spec.validation.openAPIV3Schema.type: Invalid value: "array": must be object at the root',
  ]);
});

test('fields in value validations must be declared outside of them', () => {
  const schema = { type: 'object', anyOf: [{ properties: { a: { minimum: 1 } } }] };
  assert.deepEqual(errorsOf(crd({ schema })), [
    'spec.validation.openAPIV3Schema.properties[a]: Required value: because it is defined in spec.validation.openAPIV3Schema.anyOf[0].properties[a]',
  ]);
});

test('a schema may restrict only the name in metadata', () => {
  const withMetadata = (metadata: JsonSchema) =>
    errorsOf(crd({ schema: { type: 'object', properties: { metadata } } }));
  const name: JsonSchema = { type: 'string', maxLength: 63 };
  assert.deepEqual(withMetadata({ type: 'object', properties: { name } }), []);
  assert.deepEqual(withMetadata({ type: 'object', properties: { name, labels: name } }), [
    'spec.validation.openAPIV3Schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified',
  ]);
});

test('rejects keywords that Kubernetes does not support', () => {
  assert.deepEqual(
    schemaErrors({
      type: 'object',
      $ref: '#/x',
      patternProperties: {},
      definitions: {},
      properties: { a: { type: 'string' } },
      additionalProperties: { type: 'string' },
    }),
    [
      '~.patternProperties: Forbidden: patternProperties is not supported',
      '~.definitions: Forbidden: definitions is not supported',
      '~.$ref: Forbidden: $ref is not supported',
      '~.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive',
    ],
  );
  assert.deepEqual(schemaErrors({ type: 'float' }), [
    '~.type: Unsupported value: "float": supported values: "array", "boolean", "integer", "number", "object", "string"',
  ]);
  assert.deepEqual(schemaErrors({ type: 'array', uniqueItems: true, items: { type: 'string' } }), [
    '~.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
  ]);
  const [pattern] = schemaErrors({ type: 'string', pattern: '(' });
  assert.match(
    pattern ?? '',
    /^~\.pattern: Invalid value: "\(": must be a valid regular expression, but isn't: /,
  );
});

test('defaults must be valid and without unknown fields', () => {
  assert.deepEqual(schemaErrors({ type: 'integer', minimum: 1, default: 1 }), []);
  assert.deepEqual(schemaErrors({ type: 'integer', default: 'x' }), [
    '~.default: Invalid value: "string":  in body must be of type integer: "string"',
  ]);
  const field = { type: 'object', properties: { a: { type: 'string' } } };
  assert.deepEqual(schemaErrors({ ...field, default: { a: 'x', b: 1 } }), [
    '~.default: Invalid value: {"a":"x","b":1}: must not have unknown fields',
  ]);
});

test('apiVersion, kind and metadata must not have defaults', () => {
  const kind: JsonSchema = { type: 'string', default: 'Count' };
  assert.deepEqual(errorsOf(crd({ schema: { type: 'object', properties: { kind } } })), [
    'spec.validation.openAPIV3Schema.properties[kind].default: Forbidden: must not be set in top-level kind',
  ]);
});

test('keys of a list of type map must be declared and required or defaulted', () => {
  const list = {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
  };
  const items = { type: 'object', properties: { name: { type: 'string' } } };
  assert.deepEqual(schemaErrors({ ...list, items: { ...items, required: ['name'] } }), []);
  assert.deepEqual(schemaErrors({ ...list, items }), [
    '~.items.properties[name].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
  ]);
  const twice = { ...list, 'x-kubernetes-list-map-keys': ['name', 'name'] };
  assert.deepEqual(schemaErrors({ ...twice, items: { ...items, required: ['name'] } }), [
    '~.x-kubernetes-list-map-keys: Invalid value: ["name","name"]: must not contain duplicate entries',
  ]);
  assert.deepEqual(schemaErrors({ ...list, items: { type: 'object' } }), [
    '~.x-kubernetes-list-map-keys: Invalid value: ["name"]: entries must all be names of item properties',
  ]);
  assert.deepEqual(schemaErrors({ ...list, 'x-kubernetes-list-map-keys': undefined, items }), [
    '~.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map',
  ]);
  assert.deepEqual(
    schemaErrors({ type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'object' } }),
    [
      '~.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set',
    ],
  );
});

test('checks the form of validation rules', () => {
  const rules = (...validations: JsonObject[]) =>
    schemaErrors({ type: 'string', 'x-kubernetes-validations': validations });
  assert.deepEqual(rules({ rule: 'self != "x"', message: 'not x' }), []);
  assert.deepEqual(rules({ rule: ' ' }, { rule: 'a', reason: 'Because' }), [
    '~.x-kubernetes-validations[0].rule: Required value: rule is not specified',
    '~.x-kubernetes-validations[1].reason: Unsupported value: "Because": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
  ]);
});

test('scale paths must be in spec or status', () => {
  const scale = {
    specReplicasPath: '.replicas',
    statusReplicasPath: 'status.replicas',
    labelSelectorPath: '.other.x',
  };
  assert.deepEqual(errorsOf(crd({ version: { subresources: { scale } } })), [
    'spec.subresources.scale.specReplicasPath: Invalid value: ".replicas": should be a json path under .spec',
    'spec.subresources.scale.statusReplicasPath: Invalid value: "status.replicas": must be a simple json path starting with .',
    'spec.subresources.scale.labelSelectorPath: Invalid value: ".other.x": should be a json path under either .spec or .status',
  ]);
});

test('with a status subresource, most keywords are forbidden at the root', () => {
  const schema = { ...root, allOf: [{ required: ['spec'] }] };
  const [error = '', ...others] = errorsOf(
    crd({ schema, version: { subresources: { status: {} } } }),
  );
  assert.match(error, /fields are allowed at the root of the schema if the status subresource is/);
  assert.deepEqual(others, []);
});

test('checks printer columns and selectable fields', () => {
  const additionalPrinterColumns = [{ name: 'A', type: 'text', jsonPath: 'spec.a' }];
  assert.deepEqual(errorsOf(crd({ version: { additionalPrinterColumns } })), [
    'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string',
    'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec.a": must be a simple json path starting with .',
  ]);
  const selectableFields = ['.spec.count', '.spec', '.spec.none', '.spec.count'].map(
    (jsonPath) => ({ jsonPath }),
  );
  assert.deepEqual(
    inOneStep(checkCrd(crd({ version: { selectableFields } }))).map(({ field, reason }) => [
      field,
      reason,
    ]),
    [
      ['spec.selectableFields[1].jsonPath', 'FieldValueInvalid'],
      ['spec.selectableFields[2].jsonPath', 'FieldValueInvalid'],
      ['spec.selectableFields[3].jsonPath', 'FieldValueDuplicate'],
    ],
  );
});

test('protected groups require an approval annotation', () => {
  const of = (annotations?: JsonObject) =>
    crd({
      metadata: { name: 'counts.demo.k8s.io', ...(annotations && { annotations }) },
      spec: { group: 'demo.k8s.io' },
    });
  const approval = (text: string) => of({ 'api-approved.kubernetes.io': text });
  assert.match(
    errorsOf(of()).join('\n'),
    /^metadata\.annotations\[api-approved\.kubernetes\.io\]: Required value/,
  );
  assert.match(errorsOf(approval('yes')).join('\n'), /Invalid value: "yes": protected groups must/);
  assert.deepEqual(errorsOf(approval('unapproved, a demo')), []);
  assert.deepEqual(errorsOf(approval('https://github.com/kubernetes/kubernetes/pull/1')), []);
  assert.deepEqual(errorsOf(of(), of()), [], 'an update that leaves it as it was');
});

test('names in stored objects and URLs are immutable', () => {
  const established = {
    ...crd(),
    status: { conditions: [{ type: 'Established', status: 'True' }], storedVersions: ['v1'] },
  };
  const changed = crd({ spec: { scope: 'Cluster' }, names: { kind: 'Number' } });
  assert.deepEqual(errorsOf(changed, established), [
    'spec.scope: Invalid value: "Cluster": field is immutable',
    'spec.names.kind: Invalid value: "Number": field is immutable',
  ]);
  assert.deepEqual(errorsOf(crd({ names: { plural: 'numbers' } }), established), [
    'spec.names.plural: Invalid value: "numbers": field is immutable',
  ]);
  assert.deepEqual(errorsOf(changed, crd()), []);
  const renamed = crd({ version: { name: 'v2' } });
  assert.match(
    errorsOf({ ...renamed, status: { storedVersions: ['v1'] } }).join('\n'),
    /^status\.storedVersions\[0\]: Invalid value: "v1": missing from spec\.versions; v1 was previously/,
  );
});

test('malformed definitions are invalid and do not crash', () => {
  for (const garbage of [null, 5, 'x', [], {}, { versions: [null, 5, {}], names: 5 }]) {
    assert.ok(inOneStep(checkCrd({ spec: garbage, metadata: garbage })).length > 0);
  }
  const wild = { type: 'object', properties: { a: null, b: 5 }, items: [1], allOf: 'x', not: [] };
  assert.ok(Array.isArray(errorsOf(crd({ schema: wild }))));
});

test('rejects a schema that is nested too deeply', () => {
  const deep = (schema: unknown, level: number): unknown =>
    level === 0 ? schema : deep({ type: 'object', properties: { a: schema } }, level - 1);
  assert.throws(
    () => inOneStep(checkCrd(crd({ schema: deep({ type: 'string' }, 1000) }))),
    NestingError,
  );
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  assert.deepEqual(schemaErrors({ ...open, default: nested(100) }), []);
});
