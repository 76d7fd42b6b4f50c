let last: { readonly value: object; readonly text: string } | undefined;

/**
 * Encodes `value` as JSON. Caches the last text, because a write is sent to its client and to all
 * watchers in succession. `value` must not change afterwards.
 */
export function jsonText(value: object): string {
  if (last?.value !== value) last = { value, text: JSON.stringify(value) };
  return last.text;
}
