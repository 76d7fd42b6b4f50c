import { SourceMap } from 'node:module';
import type { SourceMapPayload } from 'node:module';

/** Where a logger is asked for something: it may want to know by whom. */
const LOGGING = /\.(?:info|error|enabled)\b/g;

/**
 * The places of a bundle that may log, by line and column as a stack has them, each with what it is
 * in our own source: `{"12:345":"cache/reflector/reflector.ts:110"}`. With it, a running program needs no
 * source map to name the origin of a log line.
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
