import type { JSX } from 'preact';
import { AllColumns, cellsOf } from './table.tsx';
import type { Column } from './table.tsx';

/** Height of a row in pixels, as in the style, and number of rows beyond the visible ones. */
const ROW_PX = 34;
const SPARE_ROWS = 12;

/** Table of which only the visible rows have elements. */
export function VirtualTable<R, C extends Column<R>>(props: {
  readonly id: string;
  readonly caption: string;
  readonly columns: readonly C[];
  readonly rows: readonly R[];
  readonly keyOf: (row: R) => string | number;
  /** @default the title of the column */
  readonly heading?: (column: C) => JSX.Element;
  readonly isSelected?: (row: R) => boolean;
  readonly redraw: () => void;
}) {
  const { id, caption, columns, rows, keyOf, heading, isSelected, redraw } = props;
  const box = document.querySelector(`#${id}`);
  const top = box?.scrollTop ?? 0;
  const height = box?.clientHeight ?? 600;
  const from = Math.max(0, Math.min(rows.length, Math.floor(top / ROW_PX)) - SPARE_ROWS);
  const to = Math.min(rows.length, Math.ceil((top + height) / ROW_PX) + SPARE_ROWS);
  return (
    <>
      <AllColumns of={columns} />
      <div
        class="scroll virtual"
        id={id}
        tabIndex={0}
        role="group"
        aria-label={caption}
        onScroll={redraw}
      >
        <table aria-rowcount={rows.length + 1}>
          <caption class="hidden">{caption}</caption>
          <thead>
            <tr aria-rowindex={1}>
              {columns.map(
                (column) =>
                  heading?.(column) ?? (
                    <th scope="col" class={column.class}>
                      {column.title}
                    </th>
                  ),
              )}
            </tr>
          </thead>
          <tbody>
            <Spacer key="above" rows={from} columns={columns.length} />
            {rows.slice(from, to).map((row, at) => (
              <tr
                key={keyOf(row)}
                aria-rowindex={from + at + 2}
                class={isSelected?.(row) ? 'selected' : undefined}
              >
                {cellsOf(columns, row)}
              </tr>
            ))}
            <Spacer key="below" rows={rows.length - to} columns={columns.length} />
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Takes the place of rows that are not visible. */
function Spacer({ rows, columns }: { readonly rows: number; readonly columns: number }) {
  if (rows === 0) return null;
  return (
    <tr aria-hidden="true" class="spacer">
      <td colSpan={columns} style={{ height: `${rows * ROW_PX}px` }} />
    </tr>
  );
}

/** Scrolls a table so that a row is visible. */
export function scrollToRow(id: string, index: number): void {
  const box = document.querySelector(`#${id}`);
  if (!box || index < 0) return;
  // The heading covers the first row.
  const top = index * ROW_PX;
  const isVisible = top >= box.scrollTop && top + 2 * ROW_PX <= box.scrollTop + box.clientHeight;
  if (!isVisible) box.scrollTop = top - box.clientHeight / 2;
}
