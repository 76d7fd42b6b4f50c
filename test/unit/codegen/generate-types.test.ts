import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ParsedResource } from '../../../src/codegen/crd-parser.ts';
import { parseCustomResources } from '../../../src/codegen/crd-parser.ts';
import { LIBRARY_MODULES } from '../../../src/codegen/generate-modules.ts';
import { generateTypes, moduleNameOf } from '../../../src/codegen/generate-types.ts';
import type { CrdSchema } from '../../../src/codegen/schema.ts';

const widget: ParsedResource = {
  group: 'example.com',
  version: 'v1',
  plural: 'widgets',
  kind: 'Widget',
  namespaced: true,
  schema: { type: 'object' },
  isMain: true,
};

function generate(resource: ParsedResource): string {
  return generateTypes(resource, {
    source: 'complex-crd.yaml',
    command: 'hand',
    modules: LIBRARY_MODULES,
  });
}

function withSpec(spec: CrdSchema): string {
  return generate({ ...widget, schema: { type: 'object', properties: { spec } } });
}

// The gate also compiles, lints and checks the format of complex-crd.generated.ts. To update it, run
// `node --test --test-update-snapshots`.
test('generates a readable module from a definition with many schema features', (context) => {
  const [resource] = parseCustomResources(
    readFileSync(join(import.meta.dirname, 'complex-crd.yaml'), 'utf8'),
  );
  context.assert.fileSnapshot(
    generate(resource!),
    join(import.meta.dirname, 'complex-crd.generated.ts'),
    {
      serializers: [(text) => String(text)],
    },
  );
});

test('wraps long descriptions and keeps their line breaks', () => {
  const text = withSpec({
    type: 'object',
    description: `${'word '.repeat(40)}\n\nSecond paragraph.`,
    properties: { a: { type: 'string' } },
  });
  const comment = text.split('\n').filter((line) => line.startsWith(' *'));
  assert.deepEqual(
    comment.map((line) => line.length <= 100),
    comment.map(() => true),
  );
  assert.deepEqual(comment.slice(-3), [' *', ' * Second paragraph.', ' */']);
});

test('gives two properties with the same type name different names', () => {
  const part = { type: 'object', properties: { x: { type: 'string' } } };
  const text = withSpec({ type: 'object', properties: { 'a-b': part, aB: part } });
  assert.match(text, /'a-b'\?: WidgetSpecAB;\n {2}aB\?: WidgetSpecAB2;/);
  assert.match(text, /interface WidgetSpecAB \{[^}]*\}\n\nexport interface WidgetSpecAB2 \{/);
});

test('renames a kind with the name of an imported type', () => {
  const text = generate({ ...widget, kind: 'Resource', plural: 'resources' });
  assert.match(text, /export interface Resource2 extends KubernetesObject \{/);
  assert.match(text, /export const RESOURCES: Resource<Resource2> = \{/);
});

test('escapes quotes in literals', () => {
  const text = withSpec({
    type: 'object',
    properties: { "'; evil()": { type: 'string', enum: [`\\'"\n`, '\\'] } },
  });
  assert.match(text, /"'; evil\(\)"\?: '\\\\\\'"\\n' \| '\\\\';/);
});

test('types an enumeration of objects as unknown', () => {
  const text = withSpec({
    type: 'object',
    properties: { a: { enum: [{}, 'b'] }, b: { enum: [] } },
  });
  assert.match(text, /a\?: unknown;\n {2}b\?: unknown;/);
});

test('definitions cannot inject code through comments, names or literals', () => {
  const evil = '*/ evil(); /* \' " ` ${evil()} \u2028 \n */ evil();';
  const text = generateTypes(
    {
      ...widget,
      schema: {
        type: 'object',
        description: evil,
        properties: {
          spec: {
            type: 'object',
            properties: {
              [evil]: { type: 'string', default: evil, description: evil, enum: [evil, 'b'] },
              constructor: { type: 'object', properties: { ['__proto__']: { type: 'number' } } },
            },
          },
        },
      },
    },
    { source: `a\nevil();\u2028evil();.yaml`, command: 'hand', modules: LIBRARY_MODULES },
  );
  // Without comments and strings, no injected code is left.
  const code = text
    .replaceAll(/\/\*[^]*?\*\/|\/\/[^\n\u2028\u2029]*/g, '')
    .replaceAll(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, '');
  assert.doesNotMatch(code, /evil\(/);
  assert.match(code, /__proto__\?: number;/);
});

test('renames a kind with the name of a TypeScript type', () => {
  for (const [kind, name] of [
    ['string', 'String'],
    ['class', 'Class'],
    ['Record', 'Record'],
    ['Array', 'Array'],
    ['Promise', 'Promise'],
    ['Partial', 'Partial2'],
  ] as const) {
    assert.match(
      generate({ ...widget, kind }),
      new RegExp(
        `export interface ${name} extends [^]*: Resource<${name}> = \\{[^]*kind: '${kind}'`,
      ),
    );
  }
});

test('generates one interface for alternatives that types cannot distinguish', () => {
  const properties = { a: { type: 'string' }, b: { type: 'string' } };
  for (const branches of [
    { oneOf: [{ required: ['a'] }] },
    { anyOf: [{ required: ['a'] }, { properties: { b: { enum: [1] } } }] },
    { anyOf: [{ required: ['a'] }, {}] },
    { oneOf: [{ required: ['__proto__'] }, { required: ['constructor'] }] },
    { oneOf: Array.from({ length: 17 }, () => ({ required: ['a'] })) },
  ]) {
    assert.match(
      withSpec({ type: 'object', properties, ...branches }),
      /interface WidgetSpec \{\n {2}a\?: string;\n {2}b\?: string;\n\}/,
    );
  }
});

test('joins the enumerations of anyOf branches', () => {
  const text = withSpec({
    type: 'object',
    properties: { a: { type: 'string', anyOf: [{ enum: ['x'] }, { enum: ['y', 'x'] }] } },
  });
  assert.match(text, /a\?: 'x' \| 'y';/);
});

test('an embedded resource has the metadata of objects, unless its schema has fields of it', () => {
  const embedded = (metadata: CrdSchema) =>
    withSpec({
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      properties: { metadata, size: { type: 'integer' } },
    });
  assert.match(
    embedded({ type: 'object' }),
    /\n {2}metadata\?: Partial<KubernetesObject\['metadata'\]>;\n/,
  );
  const properties = { name: { type: 'string' } };
  assert.match(embedded({ type: 'object', properties }), /metadata\?: WidgetSpecMetadata;\n/);
});

test('derives names of constants and files from the words of the kind', () => {
  const names = [
    ['WebApp', 'webapps', 'WEB_APPS', 'web-app'],
    ['At', 'ats', 'ATS', 'at'],
    ['HTTPRoute', 'httproutes', 'HTTP_ROUTES', 'http-route'],
    ['Policy', 'policies', 'POLICIES', 'policy'],
    ['Foo', 'my-foos', 'MY_FOOS', 'foo'],
  ] as const;
  for (const [kind, plural, constant, file] of names) {
    const resource = { ...widget, kind, plural };
    assert.match(generate(resource), new RegExp(`export const ${constant}: Resource<${kind}> =`));
    assert.equal(moduleNameOf(resource), file);
    assert.equal(moduleNameOf({ ...resource, version: 'v2', isMain: false }), `${file}-v2`);
  }
});
