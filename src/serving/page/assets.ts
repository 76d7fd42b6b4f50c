import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';

/** Code and style of the page. */
export interface PageAssets {
  readonly script: string;
  readonly style: string;
}

const BROWSER = join(import.meta.dirname, 'browser');

/**
 * Returns the code and the style of the page from the source. `hack/page-assets.ts` replaces this module by its result
 * in `dist/` and in bundles, which have no source.
 */
export function pageAssets(): PageAssets {
  return {
    script: linked(join(BROWSER, 'main.ts')),
    style: readFileSync(join(BROWSER, 'style.css'), 'utf8'),
  };
}

const IMPORT = /^import\s*\{([^}]*)\}\s*from\s*'([^']+)';/gm;
const EXPORT = /^export ((?:async )?(?:function|const|class) (\w+))/gm;

/**
 * Returns one script with a module and the modules that it imports, each in a scope of its own. The modules
 * only use named imports and exported declarations.
 *
 * @throws {SyntaxError} if a module uses another form
 */
function linked(main: string): string {
  const names = new Map<string, string>();
  const scopes: string[] = [];
  const add = (file: string): string => {
    const known = names.get(file);
    if (known !== undefined) return known;
    const exported: string[] = [];
    const code = javaScript(readFileSync(file, 'utf8'))
      .replaceAll(IMPORT, (_, members: string, from: string) => {
        return `const {${members.replaceAll(' as ', ': ')}} = ${add(join(dirname(file), from))};`;
      })
      .replaceAll(EXPORT, (_, declaration: string, name: string) => {
        exported.push(name);
        return declaration;
      });
    if (/^(?:import|export)\b/m.test(code)) {
      throw new SyntaxError(`${file}: only named imports and exported declarations can be linked`);
    }
    const name = `module${names.size}`;
    names.set(file, name);
    scopes.push(`const ${name} = (() => {\n${code}\nreturn { ${exported.join(', ')} };\n})();`);
    return name;
  };
  add(main);
  return scopes.join('\n');
}

/** Removes the types, without the warning that the function of Node.js is experimental. */
function javaScript(typeScript: string): string {
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(typeScript).replaceAll(/[ \t]+$|^\n/gm, '');
  } finally {
    process.emitWarning = emitWarning;
  }
}
