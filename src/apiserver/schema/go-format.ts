import { isRecord } from '../../util/values.ts';

/** A number as Go's `%v` prints it. */
export function goNumber(value: number): string {
  const size = Math.abs(value);
  if (Number.isSafeInteger(value) || (size >= 1e-4 && size < 1e21)) return String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
}

/** A value as Go's `json.Marshal` prints it: keys in order, `<`, `>` and `&` escaped. */
export function goJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(goJson).join(',')}]`;
  if (!isRecord(value)) return escapeHtml(JSON.stringify(value) ?? 'null');
  const members = Object.keys(value)
    .sort()
    .map((key) => `${escapeHtml(JSON.stringify(key))}:${goJson(value[key])}`);
  return `{${members.join(',')}}`;
}

function escapeHtml(json: string): string {
  return json.replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
