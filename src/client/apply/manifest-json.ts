/** A part of a text. */
export interface JsonPiece {
  readonly text: string;
  /** Where it begins, from 1. */
  readonly line: number;
}

/**
 * The JSON objects that stand one after another in `text`, as `jq` prints them; undefined if it is
 * anything else, a single object included. Looks at braces and quotes only: whether the pieces are
 * JSON, their parser says.
 */
export function splitJson(text: string): JsonPiece[] | undefined {
  const pieces: JsonPiece[] = [];
  let piece = { start: 0, line: 1 };
  let line = 1;
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (sign === '\n') line++;
    if (quoted) {
      if (sign === '\\') at++;
      else if (sign === '"') quoted = false;
    } else if (sign === '{') {
      if (depth++ === 0) piece = { start: at, line };
    } else if (depth === 0) {
      if (!isBlank(sign)) return undefined;
    } else if (sign === '"') {
      quoted = true;
    } else if (sign === '}' && --depth === 0) {
      pieces.push({ text: text.slice(piece.start, at + 1), line: piece.line });
    }
  }
  return depth === 0 && pieces.length > 1 ? pieces : undefined;
}

function isBlank(sign: string | undefined): boolean {
  return sign === ' ' || sign === '\n' || sign === '\r' || sign === '\t';
}
