/** What Go's `strconv.ParseBool` takes. */
const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const FALSE: ReadonlySet<string> = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

/** Undefined if `text` is no boolean. */
export function parseGoBoolean(text: string): boolean | undefined {
  if (TRUE.has(text)) return true;
  return FALSE.has(text) ? false : undefined;
}
