/** The views of the page, which Node.js cannot run from source because they contain JSX. */
import { buildSync } from 'esbuild';
import { isValidElement } from 'preact';
import type { ComponentChildren, FunctionComponent } from 'preact';
import type * as Cluster from '../../../../../src/serving/page/browser/cluster.tsx';
import type * as Key from '../../../../../src/serving/page/browser/key.tsx';
import type * as Keys from '../../../../../src/serving/page/browser/keys.tsx';
import type * as Overview from '../../../../../src/serving/page/browser/overview.tsx';
import type * as Objects from '../../../../../src/serving/page/browser/objects.tsx';

type Views = typeof Cluster & typeof Key & typeof Keys & typeof Overview & typeof Objects;

const FILES = ['cluster', 'key', 'keys', 'objects', 'overview'];

/** Imports the views, built as for the page. */
export async function importViews(): Promise<Views> {
  const { outputFiles } = buildSync({
    stdin: {
      contents: FILES.map((file) => `export * from './${file}.tsx';`).join('\n'),
      resolveDir: `${import.meta.dirname}/../../../../../src/serving/page/browser`,
    },
    tsconfigRaw: { compilerOptions: { jsx: 'react-jsx', jsxImportSource: 'preact' } },
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2024',
  });
  const code = Buffer.from(outputFiles[0]?.contents ?? []).toString('base64');
  return (await import(`data:text/javascript;base64,${code}`)) as Views;
}

/** Element that a view describes. */
export interface ViewElement {
  readonly tag: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly children: readonly (ViewElement | string)[];
}

/** Returns the elements and texts of a view, without components. */
export function expanded(content: ComponentChildren): (ViewElement | string)[] {
  if (Array.isArray(content)) return content.flatMap(expanded);
  if (isValidElement(content)) {
    const { type } = content;
    const { children, ...attributes } = content.props as { readonly children?: ComponentChildren };
    if (typeof type === 'string') return [{ tag: type, attributes, children: expanded(children) }];
    return expanded((type as FunctionComponent<unknown>)(content.props));
  }
  return typeof content === 'string' || typeof content === 'number' ? [String(content)] : [];
}
