import { h } from './dom.ts';
import type { Content, Element_ } from './dom.ts';

/** Column of a table. */
export interface Column<R> {
  readonly title: string;
  readonly cell: (row: R) => Content;
  /** Aligned to the right, with digits of equal width. */
  readonly isNumber?: boolean;
  /** Omitted on narrow screens. */
  readonly isSpare?: boolean;
  /** Takes the remaining width, and is cut if it is longer. */
  readonly isWide?: boolean;
}

/** Returns a table with a caption for screen readers, or the text for no rows. */
export function table<R>(
  caption: string,
  columns: readonly Column<R>[],
  rows: readonly R[],
  { keyOf, nothing }: { readonly keyOf: (row: R, at: number) => string; readonly nothing: string },
): Element_ {
  if (rows.length === 0) return h('p', { class: 'state' }, nothing);
  return h(
    'div',
    { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': caption },
    h(
      'table',
      {},
      h('caption', { class: 'hidden' }, caption),
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          columns.map((column) => h('th', { scope: 'col', class: classOf(column) }, column.title)),
        ),
      ),
      h(
        'tbody',
        {},
        rows.map((row, position) =>
          h(
            'tr',
            { key: keyOf(row, position) },
            columns.map((column, at) =>
              at === 0
                ? h('th', { scope: 'row', class: classOf(column) }, column.cell(row))
                : h('td', { class: classOf(column) }, column.cell(row)),
            ),
          ),
        ),
      ),
    ),
  );
}

/** Returns the class of a column's cells. */
export function classOf({
  isNumber,
  isSpare,
  isWide,
}: Pick<Column<unknown>, 'isNumber' | 'isSpare' | 'isWide'>): string | undefined {
  const classes = [isNumber && 'number', isSpare && 'spare', isWide && 'wide'].filter(Boolean);
  return classes.length > 0 ? classes.join(' ') : undefined;
}

/** Meaning of a badge; each has a symbol of its own, so that it differs without its colour. */
export type Tone = 'good' | 'warning' | 'bad' | 'neutral';

const SYMBOLS: Readonly<Record<Tone, string>> = { good: '✓', warning: '▲', bad: '✕', neutral: '○' };

/** Returns a short text with a symbol and a colour. */
export function badge(tone: Tone, text: string, title?: string): Element_ {
  return h(
    'span',
    { class: `badge ${tone}`, title },
    h('span', { 'aria-hidden': 'true' }, SYMBOLS[tone]),
    ` ${text}`,
  );
}

/** Returns whether a sync with this result failed. */
export function isFailedResult(result: string | undefined): boolean {
  return result !== undefined && /error|panic/i.test(result);
}

/** Returns the result of a sync with its meaning. */
export function resultBadge(result: string): Element_ {
  return badge(isFailedResult(result) ? 'bad' : 'good', result);
}

/** Returns a part of the page with a heading. */
export function card(title: string, className: string, ...content: Content[]): Element_ {
  const id = `h-${title.toLowerCase().replaceAll(/\W+/g, '-')}`;
  return h(
    'section',
    { class: `card ${className}`, 'aria-labelledby': id, key: id },
    h('h2', { id }, title),
    content,
  );
}
