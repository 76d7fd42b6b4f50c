import { SourceMap } from 'node:module';
import type { SourceMapPayload } from 'node:module';

/** Calls of a logger, which may record the caller. */
const LOGGING = /\.(?:info|error|enabled)\b/g;

/**
 * Returns the source location of each log call of a bundle, by line and column of the bundle:
 * `{"12:345":"cache/reflector.ts:110"}`. With it, a running program finds the caller of a log line
 * without a source map.
 */
export function callersIn(code: string, payload: SourceMapPayload): Record<string, string> {
  const map = new SourceMap(payload);
  const callers: Record<string, string> = {};
  for (const [index, text] of code.split('\n').entries()) {
    for (const { index: dot } of text.matchAll(LOGGING)) {
      const [line, column] = [index + 1, dot + '.'.length + 1];
      const origin = map.findOrigin(line, column);
      const [, place] = ('fileName' in origin && /(?:^|\/)src\/(.*)$/.exec(origin.fileName)) || [];
      const isOurs = 'fileName' in origin && !origin.fileName.includes('node_modules/');
      if (place && isOurs) callers[`${line}:${column}`] = `${place}:${origin.lineNumber}`;
    }
  }
  return callers;
}
