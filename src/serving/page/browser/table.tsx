import type { ComponentChildren, JSX } from 'preact';
import { isFailedResult } from '../../words.ts';
import type { Tone } from './results.ts';

/** Column of a table. */
export interface Column<R> {
  readonly title: string;
  readonly cell: (row: R) => ComponentChildren;
  /**
   * `number`: aligned to the right. `spare`: shown on demand on narrow screens. `wide`: takes the remaining width, and is
   * cut if it is longer. `text`: takes the remaining width in several lines. `name`: takes a part of the width in several lines.
   */
  readonly class?: string;
}

/** Table with a caption for screen readers, or the text for no rows. */
export function DataTable<R>(props: {
  readonly caption: string;
  readonly columns: readonly Column<R>[];
  readonly rows: readonly R[];
  /** @default the position */
  readonly keyOf?: (row: R) => string;
  readonly nothing: string;
}) {
  const { caption, columns, rows, keyOf, nothing } = props;
  if (rows.length === 0) return <p class="state">{nothing}</p>;
  return (
    <>
      <AllColumns of={columns} />
      <div class="scroll" tabIndex={0} role="group" aria-label={caption}>
        <table>
          <caption class="hidden">{caption}</caption>
          <thead>
            <tr>
              {columns.map((column) => (
                <th scope="col" class={column.class}>
                  {column.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={keyOf?.(row) ?? at}>{cellsOf(columns, row)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Switch that shows the spare columns on a narrow screen. */
export function AllColumns({ of }: { readonly of: readonly Pick<Column<never>, 'class'>[] }) {
  if (!of.some((column) => column.class?.includes('spare'))) return null;
  return (
    <label class="all-columns">
      <input type="checkbox" /> All columns
    </label>
  );
}

/** Returns the cells of a row. The first one is its heading. */
export function cellsOf<R>(columns: readonly Column<R>[], row: R): JSX.Element[] {
  return columns.map((column, at) => {
    const content = column.cell(row);
    if (at > 0) return <td class={column.class}>{content}</td>;
    return (
      <th scope="row" class={column.class}>
        {content}
      </th>
    );
  });
}

/** Each tone has a symbol of its own, so that it differs without its colour. */
const SYMBOLS: Readonly<Record<Tone, string>> = { good: '✓', warning: '▲', bad: '✕', neutral: '○' };

/** Short text with a symbol and a colour. */
export function Badge(props: {
  readonly tone: Tone;
  readonly text: string;
  readonly title?: string | undefined;
}) {
  const { tone, text, title } = props;
  return (
    <span class={`badge ${tone}`} title={title}>
      <span aria-hidden="true">{SYMBOLS[tone]}</span> {text}
    </span>
  );
}

/** Result of a sync with its meaning. */
export function ResultBadge({ result }: { readonly result: string }) {
  return <Badge tone={isFailedResult(result) ? 'bad' : 'good'} text={result} />;
}

/** Part of the page with a heading. */
export function Card(props: {
  readonly title: string;
  readonly class: string;
  readonly children: ComponentChildren;
}) {
  const id = `h-${props.title.toLowerCase().replaceAll(/\W+/g, '-')}`;
  return (
    <section class={`card ${props.class}`} aria-labelledby={id}>
      <h2 id={id}>{props.title}</h2>
      {props.children}
    </section>
  );
}

/** Text that is cut if it is longer than its cell. */
export function Cut({ text, dir }: { readonly text: string; readonly dir?: 'auto' | 'ltr' }) {
  return (
    <span title={text} dir={dir}>
      {text}
    </span>
  );
}

/** Table as a part of the page. */
export function TableCard<R>(
  props: Parameters<typeof DataTable<R>>[0] & { readonly class: string },
) {
  return (
    <Card title={props.caption} class={props.class}>
      <DataTable {...props} />
    </Card>
  );
}
