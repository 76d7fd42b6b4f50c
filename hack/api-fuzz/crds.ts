import type { Json } from './requests.ts';
import { FORMATS_SCHEMA } from './texts.ts';

export const GROUP = 'fuzz.example.com';

/** The CRD of the kind Widget: defaults, CEL rules, lists of all types, selectable fields and subresources. */
export const WIDGET_CRD: Json = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `widgets.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' },
        },
        selectableFields: [{ jsonPath: '.spec.color' }],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                required: ['color'],
                properties: {
                  color: { type: 'string', minLength: 1, maxLength: 10, pattern: '^[a-z]*$' },
                  size: { type: 'integer', minimum: 0, maximum: 10, default: 1 },
                  max: { type: 'integer' },
                  mode: { type: 'string', enum: ['Fast', 'Slow'], default: 'Slow' },
                  note: { type: 'string', nullable: true },
                  tags: {
                    type: 'array',
                    maxItems: 3,
                    items: { type: 'string' },
                    'x-kubernetes-list-type': 'set',
                  },
                  parts: {
                    type: 'array',
                    maxItems: 5,
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['name'],
                    items: {
                      type: 'object',
                      required: ['name'],
                      properties: {
                        name: { type: 'string' },
                        value: { type: 'integer', default: 5 },
                      },
                    },
                  },
                  any: { 'x-kubernetes-preserve-unknown-fields': true },
                  formats: FORMATS_SCHEMA,
                  port: { 'x-kubernetes-int-or-string': true },
                  when: { type: 'string', format: 'date-time' },
                  map: { type: 'object', additionalProperties: { type: 'integer', minimum: 0 } },
                },
                'x-kubernetes-validations': [
                  {
                    rule: '!has(self.max) || self.size <= self.max',
                    message: 'size is greater than max',
                  },
                  {
                    rule: "self.mode != 'Fast' || self.color != 'red'",
                    reason: 'FieldValueForbidden',
                    fieldPath: '.mode',
                  },
                  {
                    rule: "oldSelf.color != 'blue' || self.color == 'blue'",
                    messageExpression: "'color was ' + oldSelf.color",
                  },
                ],
              },
              status: {
                type: 'object',
                properties: { size: { type: 'integer' }, phase: { type: 'string' } },
              },
            },
          },
        },
      },
    ],
  },
};

const column = (name: string, jsonPath: string, type = 'string') => ({ name, jsonPath, type });

/** The CRD of the kind Gadget: versions with different schemas, one of them deprecated and one not served. */
export const GADGET_CRD: Json = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `gadgets.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
        },
        selectableFields: [{ jsonPath: '.spec.color' }, { jsonPath: '.spec.size' }],
        additionalPrinterColumns: [
          column('Color', '.spec.color'),
          column('Size', '.spec.size', 'integer'),
          { ...column('Parts', '.spec.parts[*].name'), priority: 1, description: 'Names' },
          column('Created', '.metadata.creationTimestamp', 'date'),
        ],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                required: ['color'],
                properties: {
                  color: { type: 'string', enum: ['red', 'blue', 'green'] },
                  size: { type: 'integer', maximum: 10, default: 1 },
                  replicas: { type: 'integer', minimum: 0 },
                  new: { type: 'object', additionalProperties: { type: 'string' } },
                  parts: {
                    type: 'array',
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['name'],
                    items: {
                      type: 'object',
                      required: ['name'],
                      properties: { name: { type: 'string' }, value: { type: 'integer' } },
                    },
                  },
                },
              },
              status: {
                type: 'object',
                properties: { replicas: { type: 'integer' }, phase: { type: 'string' } },
              },
            },
          },
        },
      },
      {
        name: 'v1beta1',
        served: true,
        storage: false,
        deprecated: true,
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.count', statusReplicasPath: '.status.replicas' },
        },
        selectableFields: [{ jsonPath: '.spec.old' }],
        additionalPrinterColumns: [column('Old', '.spec.old'), column('Color', '.spec.color')],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  color: { type: 'string' },
                  size: { 'x-kubernetes-int-or-string': true },
                  count: { type: 'integer', default: 2 },
                  old: { type: 'string', default: 'x' },
                  parts: {
                    type: 'array',
                    items: {
                      type: 'object',
                      properties: { name: { type: 'string' }, value: { type: 'integer' } },
                    },
                  },
                },
              },
              status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
          },
        },
      },
      {
        name: 'v1alpha1',
        served: false,
        storage: false,
        schema: { openAPIV3Schema: { type: 'object' } },
      },
    ],
  },
};

/** Returns a version of a CRD. */
export const version = (name: string, more: Json = {}): Json => ({
  name,
  served: true,
  storage: true,
  schema: { openAPIV3Schema: { type: 'object' } },
  ...more,
});

const inSpec = (spec: Json): Json => ({ type: 'object', properties: { spec } });
const rule = (text: string, more: Json = {}) => [{ rule: text, ...more }];

/** Schemas: valid ones first, then invalid ones. */
export const SCHEMAS: readonly Json[] = [
  inSpec({ type: 'object', properties: { a: { type: 'string', format: 'date' } } }),
  inSpec({ type: 'object', 'x-kubernetes-validations': rule('has(self.a)') }),
  inSpec({
    type: 'object',
    properties: { a: { type: 'integer', 'x-kubernetes-validations': rule('self > 1') } },
  }),
  inSpec({ type: 'integer', 'x-kubernetes-validations': rule('self.startsWith("a")') }),
  inSpec({ type: 'integer', 'x-kubernetes-validations': rule('self + 1') }),
  inSpec({ type: 'integer', 'x-kubernetes-validations': rule('self > 1', { reason: 'x' }) }),
  inSpec({ type: 'integer', 'x-kubernetes-validations': rule('') }),
  inSpec({
    type: 'integer',
    'x-kubernetes-validations': rule('self > 1', { fieldPath: '.nothing' }),
  }),
  inSpec({
    type: 'integer',
    'x-kubernetes-validations': rule('self > 1', { messageExpression: '1' }),
  }),
  inSpec({
    type: 'array',
    items: { type: 'string' },
    'x-kubernetes-validations': rule('self.all(x, self.all(y, x != y))'),
  }),
  inSpec({ type: 'object', properties: { a: { type: 'string', default: 5 } } }),
  inSpec({ type: 'object', properties: { a: { type: 'string', default: 'x', maxLength: 0 } } }),
  inSpec({ type: 'object', properties: { a: {} } }),
  inSpec({ type: 'array' }),
  inSpec({ type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'map' }),
  inSpec({
    type: 'array',
    items: { type: 'object', properties: { a: { type: 'string' } } },
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['a'],
  }),
  inSpec({
    type: 'array',
    items: { type: 'object', required: ['b'], properties: { a: { type: 'string' } } },
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['a', 'b'],
  }),
  inSpec({ type: 'array', items: { type: 'object' }, 'x-kubernetes-list-type': 'set' }),
  inSpec({ type: 'string', pattern: '(' }),
  inSpec({ type: 'nothing' }),
  inSpec({ $ref: '#/x' }),
  inSpec({ type: 'string', enum: ['a', 'a'], uniqueItems: true }),
  inSpec({ type: 'array', items: { type: 'string' }, uniqueItems: true }),
  inSpec({ 'x-kubernetes-int-or-string': true, type: 'string' }),
  inSpec({ 'x-kubernetes-preserve-unknown-fields': false, type: 'object' }),
  inSpec({ type: 'object', additionalProperties: false }),
  inSpec({ type: 'object', additionalProperties: { type: 'string' }, properties: { a: {} } }),
  inSpec({ anyOf: [{ type: 'string' }] }),
  inSpec({ type: 'integer', anyOf: [{ minimum: 1 }, { maximum: 5, description: 'x' }] }),
  inSpec({ type: 'object', nullable: true, 'x-kubernetes-map-type': 'atomic' }),
  inSpec({ type: 'string', 'x-kubernetes-map-type': 'atomic' }),
  inSpec({ type: 'object', 'x-kubernetes-embedded-resource': true }),
  inSpec({
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    'x-kubernetes-preserve-unknown-fields': true,
  }),
  { type: 'object', properties: { metadata: { type: 'object', properties: { a: {} } } } },
  { type: 'object', properties: { apiVersion: { type: 'integer' } } },
  { type: 'string' },
  {},
];

/** Lists of versions: valid ones first, then invalid ones. */
export const VERSIONS: readonly Json[] = [
  [version('v1')],
  [version('v1'), version('v2', { storage: false })],
  [version('v1', { deprecated: true, deprecationWarning: 'old' })],
  [version('v1', { additionalPrinterColumns: [column('A', '.spec.a')] })],
  [version('v1', { subresources: { status: {} } })],
  [version('v1', { additionalPrinterColumns: [column('', 'a', 'x')] })],
  [version('v1', { deprecationWarning: 'old' })],
  [version('v1'), version('v1')],
  [version('v1', { storage: false })],
  [version('v1', { served: false })],
  [version('V_1')],
  [version('v1', { schema: undefined })],
  [version('v1', { selectableFields: [{ jsonPath: '.spec.a' }] })],
  [version('v1', { selectableFields: [{ jsonPath: 'spec' }, { jsonPath: '' }] })],
  [version('v1', { subresources: { scale: {} } })],
  [
    version('v1', {
      subresources: { scale: { specReplicasPath: 'a', statusReplicasPath: '.spec.b' } },
    }),
  ],
  [],
  undefined,
  'x',
];

/** A conversion by webhook; the address has no certificate. */
export const CONVERSION: Json = {
  strategy: 'Webhook',
  webhook: { clientConfig: { url: 'http://example.com' }, conversionReviewVersions: ['v1'] },
};

/** The specification of the CRD of the kind Thing, which is never created. */
export const THINGS: Json = {
  group: GROUP,
  scope: 'Namespaced',
  names: { plural: 'things', kind: 'Thing' },
  versions: [version('v1')],
};
