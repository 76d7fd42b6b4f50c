/** What the page shows, as in the fragment of its URL: `#/key?controller=count&key=default/web`. */
export interface Route {
  readonly view: string;
  readonly query: Readonly<Record<string, string>>;
}

/** Parses the fragment of a URL. */
export function parseRoute(fragment: string): Route {
  const [path = '', query = ''] = fragment.replace(/^#\/?/, '').split('?', 2);
  return { view: path, query: Object.fromEntries(new URLSearchParams(query)) };
}

/** Returns the fragment of a route. Empty parameters are omitted. */
export function linkTo(
  view: string,
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, value]],
  );
  const text = new URLSearchParams(given).toString();
  return `#/${view}${text && `?${text}`}`;
}

/** Returns the fragment of a key's view. */
export function linkToKey(controller: string, key: string): string {
  return linkTo('key', { controller, key });
}
