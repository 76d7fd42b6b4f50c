import { isObject } from './json-value.ts';

/** A string as Go's `%q` prints it: what the API's error messages contain. */
export function goQuote(text: string): string {
  const escaped = text.replace(/[\\"\p{C}\u2028\u2029]/gu, (character) => {
    const short = SHORT.get(character);
    if (short !== undefined) return short;
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x80) return `\\x${hex(code, 2)}`;
    return code < 0x10000 ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
  });
  return `"${escaped}"`;
}

/** A number as Go's `%v` prints it. */
export function goNumber(value: number): string {
  const size = Math.abs(value);
  if (Number.isSafeInteger(value) || (size >= 1e-4 && size < 1e21)) return String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
}

/** A value as Go's `json.Marshal` prints it: keys in order, `<`, `>` and `&` escaped. */
export function goJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(goJson).join(',')}]`;
  if (!isObject(value)) return escapeHtml(JSON.stringify(value) ?? 'null');
  const members = Object.keys(value)
    .sort()
    .map((key) => `${escapeHtml(JSON.stringify(key))}:${goJson(value[key])}`);
  return `{${members.join(',')}}`;
}

const SHORT: ReadonlyMap<string, string> = new Map([
  ['\\', '\\\\'],
  ['"', '\\"'],
  ['\u0007', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
]);

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0');
}

function escapeHtml(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, (character) => `\\u${hex(character.charCodeAt(0), 4)}`);
}
