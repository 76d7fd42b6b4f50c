import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { stripSource } from '../../hack/strip-source.ts';

describe('The code of the package', () => {
  const cases: Readonly<Record<string, readonly [source: string, code: string]>> = {
    'keeps each position, and has no types and comments': [
      '/** Adds. */\nexport const add = (a: number, b: number) => a + b; // sum\nadd(1, 2);',
      '\nexport const add = (a        , b        ) => a + b;\nadd(1, 2);',
    ],
    'keeps what looks like a comment, an import or white space in a template or an expression': [
      "const x = `// y  \nimport './c.ts';\n`;\nconst r = /\\/\\*/;",
      "const x = `// y  \nimport './c.ts';\n`;\nconst r = /\\/\\*/;",
    ],
    'imports files by their compiled names': [
      "import { a } from './a.ts';\nexport * from '../b.ts';\nawait import('./c.ts');\nimport d from 'd.ts';",
      "import { a } from './a.js';\nexport * from '../b.js';\nawait import('./c.js');\nimport d from 'd.ts';",
    ],
    'keeps the first line of a program': [
      '#!/usr/bin/env node\n// Starts it.\nstart();',
      '#!/usr/bin/env node\n\nstart();',
    ],
    'keeps the columns after characters of other scripts': [
      '/* ü */ const ß = "ö" as Ä; ok();',
      '        const ß = "ö"    \u00a0; ok();',
    ],
  };
  for (const [title, [source, code]] of Object.entries(cases)) {
    test(title, () => assert.equal(stripSource(source), code));
  }
});
