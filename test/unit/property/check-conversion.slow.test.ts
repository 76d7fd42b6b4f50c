import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { describe, test } from 'node:test';
import type { KubernetesObject } from '../../../src/api/object.ts';
import type { JSONSchemaProps } from '../../../src/api/generated/builtin/types.ts';
import { checkConversion } from '../../../src/property/check-conversion.ts';
import type { ConversionCheckOptions } from '../../../src/property/check-conversion.ts';
import type { Conversion } from '../../../src/webhook/declaration.ts';
import { Webhooks } from '../../../src/webhook/webhooks.ts';

interface JobV1 extends KubernetesObject {
  spec: {
    /** `host:port` */
    address: string;
    timeoutSeconds?: number;
    paused?: boolean;
  };
}

interface JobV2 extends KubernetesObject {
  spec: {
    host: string;
    port: number;
    timeout?: { milliseconds: number };
    mode?: 'Paused' | 'Active';
    priority?: number;
  };
}

const GROUP = 'example.com';
const resource = { group: GROUP, plural: 'jobs', kind: 'Job', namespaced: true } as const;
const V1 = { ...resource, version: 'v1' };
const V2 = { ...resource, version: 'v2' };

const spec = (
  properties: Record<string, JSONSchemaProps>,
  required: string[],
  rest: JSONSchemaProps = {},
) => ({
  type: 'object',
  required: ['spec'],
  properties: { spec: { type: 'object', properties, required, ...rest } },
});

const HOST = '[a-z]([a-z0-9-]*[a-z0-9])?';

const SCHEMAS: Record<string, JSONSchemaProps> = {
  v1: spec(
    {
      address: { type: 'string', pattern: `^${HOST}:[1-9][0-9]{0,3}$`, maxLength: 70 },
      timeoutSeconds: { type: 'integer', minimum: 1, maximum: 3600 },
      paused: { type: 'boolean' },
    },
    ['address'],
  ),
  v2: spec(
    {
      host: { type: 'string', pattern: `^${HOST}$`, maxLength: 68 },
      port: { type: 'integer', minimum: 1, maximum: 9999 },
      timeout: {
        type: 'object',
        required: ['milliseconds'],
        properties: {
          milliseconds: { type: 'integer', minimum: 1000, maximum: 3_600_000, multipleOf: 1000 },
        },
      },
      mode: { type: 'string', enum: ['Paused', 'Active'] },
      priority: { type: 'integer' },
    },
    ['host', 'port'],
    {
      'x-kubernetes-validations': [{ rule: '!has(self.priority) || self.priority != 7' }],
    },
  ),
};

const crdOf = (
  schemas: Record<string, JSONSchemaProps> = SCHEMAS,
): ConversionCheckOptions['crd'] => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `jobs.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { plural: 'jobs', kind: 'Job' },
    versions: Object.entries(schemas).map(([name, openAPIV3Schema]) => ({
      name,
      served: true,
      storage: name === 'v2',
      schema: { openAPIV3Schema },
    })),
  },
});

const CORRECT: Conversion<JobV1, JobV2> = {
  up: ({ metadata, spec: { address, timeoutSeconds, paused } = {} }) => {
    const [host, port] = address?.split(':') ?? [];
    return {
      metadata,
      spec: {
        ...(address !== undefined && { host, port: Number(port) }),
        ...(timeoutSeconds !== undefined && { timeout: { milliseconds: 1000 * timeoutSeconds } }),
        ...(paused !== undefined && { mode: paused ? 'Paused' : 'Active' }),
      },
    };
  },
  down: ({ metadata, spec: { host, port, timeout, mode } = {} }) => ({
    metadata,
    spec: {
      ...(host !== undefined && { address: `${host}:${port}` }),
      ...(timeout?.milliseconds !== undefined && { timeoutSeconds: timeout.milliseconds / 1000 }),
      ...(mode !== undefined && { paused: mode === 'Paused' }),
    },
  }),
};

function check(
  conversion: Partial<Conversion<JobV1, JobV2>> = {},
  options: Partial<ConversionCheckOptions> = {},
): void {
  const webhooks = new Webhooks().converts<JobV1, JobV2>(V1, V2, { ...CORRECT, ...conversion });
  checkConversion(fc, { crd: crdOf(), webhooks, seed: 1, ...options });
}

const PRIORITY = 'example.com/priority';

/** Keeps the priority, which v1 does not have, in an annotation. */
const LOSSLESS: Conversion<JobV1, JobV2> = {
  up: (v1) => {
    const { [PRIORITY]: priority, ...annotations } = v1.metadata.annotations ?? {};
    const result = CORRECT.up(v1);
    return {
      ...result,
      metadata: { ...v1.metadata, annotations },
      spec: { ...result.spec, ...(priority !== undefined && { priority: Number(priority) }) },
    };
  },
  down: (v2) => {
    const { priority } = v2.spec ?? {};
    const annotations = {
      ...v2.metadata.annotations,
      ...(priority !== undefined && { [PRIORITY]: String(priority) }),
    };
    return { ...CORRECT.down(v2), metadata: { ...v2.metadata, annotations } };
  },
};

describe('checkConversion', () => {
  test('accepts correct conversions', () => {
    check({}, { numRuns: 50 });
    check(LOSSLESS, { lossless: true, numRuns: 50 });
  });

  test('checks the conversions of the kind of the CRD, with the metadata of stored objects', () => {
    const other = { ...resource, plural: 'tasks', kind: 'Task' };
    const wrong = () => assert.fail('called');
    let isPartial = false;
    const webhooks = new Webhooks()
      .converts(
        { ...other, version: 'v1' },
        { ...other, version: 'v2' },
        { up: wrong, down: wrong },
      )
      .converts<JobV1, JobV2>(V1, V2, {
        ...CORRECT,
        up: (v1) => {
          const { name, namespace, uid, resourceVersion } = v1.metadata;
          for (const value of [name, namespace, uid, resourceVersion]) assert.ok(value);
          isPartial ||= v1.spec?.address === undefined;
          return CORRECT.up(v1);
        },
      });
    checkConversion(fc, { crd: crdOf(), webhooks, seed: 1, numRuns: 20 });
    assert.ok(isPartial, 'no part of an object was converted');
  });

  const faults: Record<
    string,
    readonly [Partial<Conversion<JobV1, JobV2>>, RegExp, Partial<ConversionCheckOptions>?]
  > = {
    'a dropped field': [
      {
        up: (v1) => {
          const { mode: _, ...rest } = CORRECT.up(v1).spec ?? {};
          return { metadata: v1.metadata, spec: rest };
        },
      },
      /^down\(up\(object\)\) differs.*\(Job example.com\/v1\)\n {2}\.spec\.paused: (true|false) became absent/,
    ],
    'another unit': [
      {
        down: (v2) => {
          const { timeout } = v2.spec ?? {};
          const result = CORRECT.down(v2);
          const timeoutSeconds = Math.min(timeout?.milliseconds ?? 1, 3600);
          return { ...result, spec: { ...result.spec, ...(timeout && { timeoutSeconds }) } };
        },
      },
      /\.spec\.timeoutSeconds: 1 became 1000/,
    ],
    'a number that loses digits': [
      {
        up: (v1) => {
          const result = CORRECT.up(v1);
          const { port = 0 } = result.spec ?? {};
          return {
            ...result,
            spec: { ...result.spec, port: port > 100 ? port - (port % 10) : port },
          };
        },
      },
      /\.spec\.address: "a:1\d[1-9]" became "a:1\d0"/,
    ],
    'a default that the old version does not have': [
      {},
      /\.spec\.paused: absent became false/,
      {
        crd: crdOf({
          ...SCHEMAS,
          v2: spec(
            {
              ...SCHEMAS['v2']?.properties?.['spec']?.properties,
              mode: { type: 'string', enum: ['Paused', 'Active'], default: 'Active' },
            },
            ['host', 'port'],
          ),
        }),
      },
    ],
    'a default only in the new version': [
      {
        down: (v2) => ({
          ...CORRECT.down(v2),
          spec: { timeoutSeconds: 30, ...CORRECT.down(v2).spec },
        }),
      },
      /\.spec\.timeoutSeconds: absent became 30/,
    ],
    'dropped labels and annotations': [
      { up: (v1) => ({ ...CORRECT.up(v1), metadata: { labels: {}, annotations: {} } }) },
      /\.metadata\.(labels|annotations): \{.*\} became absent/,
    ],
    'a dropped annotation that keeps a field': [
      { ...LOSSLESS, up: CORRECT.up },
      /^up\(down\(object\)\) differs.*\n.*\.(spec\.priority: 0 became absent|metadata)/,
      { lossless: true },
    ],
    'a value of the new version that changes what the old version shows': [
      {
        up: (v1) => {
          const { spec, ...result } = CORRECT.up(v1);
          return { ...result, spec: { ...spec, mode: spec?.mode ?? 'Active' } };
        },
      },
      /\.spec\.paused: absent became false/,
    ],
    'a field that the schema does not have': [
      {
        up: (v1) => {
          const result = CORRECT.up(v1);
          const misspelt = { priorty: 1 };
          return { ...result, spec: { ...result.spec, ...misspelt } };
        },
      },
      /up returns fields that v2 does not have: spec\.priorty/,
    ],
    'a value that the schema rejects': [
      {
        up: (v1) => {
          const result = CORRECT.up(v1);
          return { ...result, spec: { ...result.spec, priority: 7 } };
        },
      },
      /the schema of v2 rejects the result of up: spec: /,
    ],
    'a changed argument': [
      {
        up: (v1) => {
          Object.assign(v1.spec ?? {}, { paused: true });
          return CORRECT.up(v1);
        },
      },
      /up changes its argument: {3}\.spec\.paused: (absent|false) became true/,
    ],
    'an error for a part of an object': [
      {
        up: (v1) => {
          assert.ok(v1.spec?.address, 'no address');
          return CORRECT.up(v1);
        },
      },
      /^up fails for a part of an object .*\nup throws: no address/,
    ],
    'an error for a part of an object of the hub': [
      {
        down: (v2) => {
          assert.ok(v2.spec?.host, 'no host');
          return CORRECT.down(v2);
        },
      },
      /^down fails for a part of an object .*\ndown throws: no host/,
    ],
  };

  for (const [fault, [conversion, message, options]] of Object.entries(faults)) {
    test(`finds ${fault}`, () => {
      assert.throws(
        () => check(conversion, options),
        (error: Error) => {
          assert.match(error.message, message);
          return true;
        },
      );
    });
  }

  test('prints a small counterexample and the seed that repeats it', () => {
    const conversion = faults['another unit']?.[0] ?? {};
    assert.throws(() => check(conversion), {
      message: [
        'down(up(object)) differs from the object (Job example.com/v1)',
        '  .spec.timeoutSeconds: 1 became 1000',
        'Object: {',
        '  "apiVersion": "example.com/v1",',
        '  "kind": "Job",',
        '  "spec": {',
        '    "address": "a:1",',
        '    "timeoutSeconds": 1',
        '  }',
        '}',
        'Repeat it with seed: 1',
      ].join('\n'),
    });
  });

  test('uses the given values and conditions', () => {
    const lossy: Partial<Conversion<JobV1, JobV2>> = {
      up: (v1) => {
        if (v1.spec?.paused) throw new Error('paused');
        if (v1.spec?.address === 'b:2') throw new Error('b');
        return CORRECT.up(v1);
      },
    };
    const where: ConversionCheckOptions['where'] = ({ spec, apiVersion }) =>
      apiVersion !== 'example.com/v1' || (spec as JobV1['spec']).paused !== true;
    assert.throws(
      () => check(lossy, { where, values: { v1: { 'spec.address': fc.constant('b:2') } } }),
      /up throws: b/,
    );
    const pausing: Partial<Conversion<JobV1, JobV2>> = {
      up: (v1) => {
        const { mode, ...rest } = CORRECT.up(v1).spec ?? {};
        return { metadata: v1.metadata, spec: mode === 'Active' ? { ...rest, mode } : rest };
      },
    };
    const active: ConversionCheckOptions['where'] = ({ spec }) => {
      const { paused, mode } = spec as Partial<JobV1['spec'] & JobV2['spec']>;
      return paused !== true && mode !== 'Paused';
    };
    check(pausing, { where: active, numRuns: 25 });
    // The objects of v1 are not paused, but those that objects of v2 are converted to can be.
    assert.throws(
      () => check(pausing, { values: { v1: { 'spec.paused': fc.constant(false) } } }),
      /up\(down\(object\)\) loses fields that v1 has/,
    );
  });

  test('completes objects with the defaults of their version', () => {
    const { properties } = SCHEMAS['v1']?.properties?.['spec'] ?? {};
    const paused = { type: 'boolean', default: false };
    const v1 = spec({ ...properties, paused }, ['address']);
    check({}, { crd: crdOf({ ...SCHEMAS, v1 }), numRuns: 25 });
  });

  test('rejects a CRD without schemas to compare, and objects that cannot be generated', () => {
    assert.throws(
      () => check({}, { crd: crdOf({ ...SCHEMAS, v3: {} }) }),
      /serves v3, which has no conversion/,
    );
    assert.throws(() => check({}, { crd: crdOf({ v1: {} }) }), /has no version v2/);
    assert.throws(
      () => check({}, { webhooks: new Webhooks() }),
      /jobs\.example\.com has no conversion/,
    );
    const impossible = spec({ address: { type: 'string' } }, [], {
      'x-kubernetes-validations': [{ rule: "self.address == 'exactly this'" }],
    });
    assert.throws(
      () => check({}, { crd: crdOf({ ...SCHEMAS, v1: impossible }), numRuns: 10 }),
      /too few generated objects of Job example.com\/v1 are valid: spec: /,
    );
  });
});
