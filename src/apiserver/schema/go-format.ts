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

/** Characters of problems that one answer lists. */
const MAX_CHARACTERS = 1024 * 1024;

/** The problems that an answer lists, and how many it leaves out. */
export interface Listed<T> {
  readonly items: readonly T[];
  readonly texts: readonly string[];
  readonly omitted: number;
}

/**
 * Selects the first problems whose texts have 1 MiB characters together, and at least one. A body of
 * 3 MiB can have 100,000 problems, each at a path of 1 MiB.
 */
export function listed<T>(problems: readonly T[], textOf: (problem: T) => string): Listed<T> {
  const texts: string[] = [];
  let characters = 0;
  for (const problem of problems) {
    const text = textOf(problem);
    characters += text.length;
    if (characters > MAX_CHARACTERS && texts.length > 0) break;
    texts.push(text);
  }
  const items = texts.length < problems.length ? problems.slice(0, texts.length) : problems;
  return { items, texts, omitted: problems.length - texts.length };
}

/** The last entry of a list that leaves `omitted` entries out; none if that is 0. */
export function andMore(omitted: number): readonly string[] {
  return omitted > 0 ? [`and ${omitted} more`] : [];
}
