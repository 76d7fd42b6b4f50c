let last: { readonly value: object; readonly text: string } | undefined;

/**
 * `value` as JSON. A write is sent to whoever made it and to all who watch, one right after the
 * other, so the last text is kept; `value` must not change any more.
 */
export function jsonText(value: object): string {
  if (last?.value !== value) last = { value, text: JSON.stringify(value) };
  return last.text;
}
