import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { fileURLToPath } from 'node:url';

/** `file:///app/program.cjs:12:345` in a stack. */
const POSITION = /(file:\/\/[^\s()]+):(\d+):(\d+)/g;

/**
 * Returns the stack of an error with the positions of a bundle replaced by those of its source, if its source
 * map is beside it. `--enable-source-maps` does the same for every stack that is formatted, and keeps the map,
 * which takes 50 MiB. This function reads the map again for each stack, and keeps nothing.
 */
export function sourceStack(error: Error): string {
  const { stack = '' } = error;
  if (process.sourceMapsEnabled) return stack;
  const maps = new Map<string, SourceMap | undefined>();
  return stack.replaceAll(POSITION, (place, url: string, line: string, column: string) => {
    if (!maps.has(url)) maps.set(url, mapBeside(url));
    const origin = maps.get(url)?.findOrigin(Number(line), Number(column));
    return origin && 'fileName' in origin
      ? `${origin.fileName}:${origin.lineNumber}:${origin.columnNumber}`
      : place;
  });
}

/** If the file is missing or invalid, the position in the bundle is used. */
function mapBeside(url: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(fileURLToPath(`${url}.map`), 'utf8')));
  } catch {
    return undefined;
  }
}
