import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManifestTemplate } from '../../../../src/cli/chart/manifest-template.ts';

const edits: readonly (readonly [
  title: string,
  manifest: string,
  edit: (template: ManifestTemplate) => void,
  wanted: string,
])[] = [
  [
    'keeps comments, and text that looks like an expression',
    "# a\na: 'b {{ .c }}' # b\n",
    () => undefined,
    '# a\na: \'b {{ "{{" }} .c }}\' # b\n',
  ],
  [
    'replaces a value',
    "a:\n  b: '1' # why\n",
    (all) => all.setText(['a', 'b'], '{{ .c }}'),
    'a:\n  b: {{ .c }} # why\n',
  ],
  [
    'replaces an object in an object in one line',
    'a: {b: {c: 1}, d: 2}\n',
    (all) => all.setValue(['a', 'b'], '.v'),
    'a:\n  b:\n    {{- toYaml .v | nindent 4 }}\n  d: 2\n',
  ],
  [
    'adds a field that can be left out',
    'a:\n  b: 1\n',
    (all) => all.addOptional(['a'], 'c', '.v'),
    'a:\n  b: 1\n  {{- with .v }}\n  c:\n    {{- toYaml . | nindent 4 }}\n  {{- end }}\n',
  ],
  [
    'leaves out an item and a field',
    'a: [b, c]\nd: 1\ne: 2\n',
    (all) => {
      all.only(['a', 1], '.v');
      all.only(['d'], '.w');
    },
    'a:\n  - b\n  {{- if .v }}\n  - c\n  {{- end }}\n{{- if .w }}\nd: 1\n{{- end }}\ne: 2\n',
  ],
  [
    'adds entries to a list and an object',
    'a: []\nb: {}\n',
    (all) => {
      all.addEntries(['a'], '.v');
      all.addEntries(['b'], '.w');
    },
    'a:\n  {{- with .v }}\n  {{- toYaml . | nindent 2 }}\n  {{- end }}\nb:\n  {{- with .w }}\n  {{- toYaml . | nindent 2 }}\n  {{- end }}\n',
  ],
  [
    'adds an item to a list that the manifest lacks',
    'a: 1\n',
    (all) => all.addItem(['b'], { c: all.text('{{ .d }}') }, '.v'),
    'a: 1\nb:\n  {{- if .v }}\n  - c: {{ .d }}\n  {{- end }}\n',
  ],
];

for (const [title, manifest, edit, wanted] of edits) {
  test(`a template ${title}`, () => {
    const template = new ManifestTemplate(manifest);
    edit(template);
    assert.equal(String(template), wanted);
  });
}

test('a template reports a manifest that is not YAML', () => {
  assert.throws(() => new ManifestTemplate('a: [1\n'), /Flow sequence/);
});
