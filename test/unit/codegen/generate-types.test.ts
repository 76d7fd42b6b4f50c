import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { CustomResource } from '../../../src/codegen/custom-resource.ts';
import { parseCustomResources } from '../../../src/codegen/custom-resource.ts';
import { generateTypes, moduleNameOf } from '../../../src/codegen/generate-types.ts';
import type { Schema } from '../../../src/codegen/schema.ts';

const modules = {
  Condition: '../../../src/api/conditions.ts',
  KubernetesObject: '../../../src/api/object.ts',
  ObjectMeta: '../../../src/api/object.ts',
  Resource: '../../../src/api/resource.ts',
};

const widget: CustomResource = {
  group: 'example.com',
  version: 'v1',
  plural: 'widgets',
  kind: 'Widget',
  namespaced: true,
  schema: { type: 'object' },
};

function generate(resource: CustomResource): string {
  return generateTypes(resource, { source: 'wild.yaml', command: 'hand', modules });
}

function withSpec(spec: Schema): string {
  return generate({ ...widget, schema: { type: 'object', properties: { spec } } });
}

// The gate compiles, lints and formats wild.generated.ts like any other file: that it passes there
// is the better half of this test. `node --test --test-update-snapshots` writes it anew.
test('a wild definition becomes a module that a person could have written', (context) => {
  const [resource] = parseCustomResources(
    readFileSync(join(import.meta.dirname, 'wild.yaml'), 'utf8'),
  );
  context.assert.fileSnapshot(generate(resource!), join(import.meta.dirname, 'wild.generated.ts'), {
    serializers: [(text) => String(text)],
  });
});

test('a long description is wrapped at the width of the page and keeps its own lines', () => {
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

test('two properties that ask for one name get two', () => {
  const part = { type: 'object', properties: { x: { type: 'string' } } };
  const text = withSpec({ type: 'object', properties: { 'a-b': part, aB: part } });
  assert.match(text, /'a-b'\?: WidgetSpecAB;\n {2}aB\?: WidgetSpecAB2;/);
  assert.match(text, /interface WidgetSpecAB \{[^}]*\}\n\nexport interface WidgetSpecAB2 \{/);
});

test('a kind that is called like something imported stays apart from it', () => {
  const text = generate({ ...widget, kind: 'Resource', plural: 'resources' });
  assert.match(text, /export interface Resource2 extends KubernetesObject \{/);
  assert.match(text, /export const RESOURCES: Resource<Resource2> = \{/);
});

test('a literal cannot leave its quotes', () => {
  const text = withSpec({
    type: 'object',
    properties: { "'; evil()": { type: 'string', enum: [`\\'"\n`, '\\'] } },
  });
  assert.match(text, /"'; evil\(\)"\?: '\\\\\\'"\\n' \| '\\\\';/);
});

test('an enumeration of what no literal can hold is unknown', () => {
  const text = withSpec({
    type: 'object',
    properties: { a: { enum: [{}, 'b'] }, b: { enum: [] } },
  });
  assert.match(text, /a\?: unknown;\n {2}b\?: unknown;/);
});

test('names of constants and files follow the words of the kind', () => {
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
  }
});
