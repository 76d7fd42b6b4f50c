/** An answer of a page. */
export interface Page {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Pages by their paths. */
export type Pages = ReadonlyMap<string, (query: URLSearchParams) => Page>;

/**
 * Makes pages of JSON, for people: indented, numbers to a thousandth, credentials masked.
 *
 * @param redact masks credentials in texts, as for the log
 */
export function jsonPages(
  redact: (text: string) => string = (text) => text,
): (status: number, value: unknown) => Page {
  const shown = (_: string, member: unknown): unknown => {
    if (typeof member === 'string') return redact(member);
    return typeof member === 'number' ? Math.round(member * 1000) / 1000 : member;
  };
  return (status, value) => ({
    status,
    contentType: 'application/json',
    body: `${JSON.stringify(value, shown, 2)}\n`,
  });
}
