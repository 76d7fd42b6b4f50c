import { formatCause } from '../../../workqueue/queue-item.ts';
import type { QueuesReport } from '../../queue-pages.ts';
import { duration, rate } from './format.ts';
import { linkToKey } from './route.ts';
import { Badge, Cut, ResultBadge, TableCard } from './table.tsx';
import type { Column } from './table.tsx';

function Ranking<R extends { readonly controller: string; readonly key: string }>(props: {
  readonly title: string;
  /** The columns after the key. */
  readonly columns: readonly Column<R>[];
  readonly rows: readonly R[];
  readonly nothing: string;
}) {
  const { title, columns, rows, nothing } = props;
  const keyColumn: Column<R> = {
    title: 'Key',
    class: 'wide',
    cell: ({ controller, key }) => (
      <>
        <a href={linkToKey(controller, key)} title={key}>
          {key}
        </a>
        <span class="note"> {controller}</span>
      </>
    ),
  };
  return (
    <TableCard
      class="third"
      caption={title}
      columns={[keyColumn, ...columns]}
      rows={rows.slice(0, 8)}
      keyOf={({ controller, key }) => `${controller} ${key}`}
      nothing={nothing}
    />
  );
}

/** The keys that fail, are slow or are synced often. */
export function KeyCards(props: { readonly queues: QueuesReport; readonly nowMs: number }) {
  const { hottest, slowest, failing, controllers } = props.queues;
  const loops = controllers.flatMap(({ controller, hotLoops }) =>
    hotLoops.map((loop) => ({ controller, ...loop })),
  );
  return (
    <>
      <Ranking
        title="Most failing keys"
        columns={[
          {
            title: 'Failed',
            class: 'number',
            cell: ({ failures, syncs }) => `${failures} of ${syncs}`,
          },
          {
            title: 'Last error',
            class: 'wide spare',
            cell: ({ error = '', hasRecovered, startedAt }) => (
              <>
                {hasRecovered && [<Badge tone="good" text="recovered" />, ' ']}
                <span class="note">{duration(props.nowMs - Date.parse(startedAt))} ago</span>{' '}
                <Cut text={error} dir="auto" />
              </>
            ),
          },
        ]}
        rows={failing}
        nothing="None of the last syncs failed."
      />
      <Ranking
        title="Slowest keys"
        columns={[
          { title: 'Took', class: 'number', cell: ({ tookMs }) => duration(tookMs) },
          {
            title: 'Result',
            class: 'spare',
            cell: ({ result }) => <ResultBadge result={result} />,
          },
        ]}
        rows={slowest}
        nothing="No key was synced yet."
      />
      <Ranking
        title="Hottest keys"
        columns={[
          {
            title: 'Syncs/min',
            class: 'number',
            cell: ({ syncsPerMinute }) => rate(syncsPerMinute),
          },
          {
            title: 'Last cause',
            class: 'wide spare',
            cell: ({ causes }) => causes.map(formatCause).join('; '),
          },
        ]}
        rows={hottest}
        nothing="No key was synced twice."
      />
      {loops.length > 0 && (
        <Ranking
          title="Hot loops"
          columns={[
            {
              title: 'Changes',
              class: 'number',
              cell: ({ times, withinMs }) => `${times} in ${duration(withinMs)}`,
            },
            {
              title: 'Fields',
              class: 'wide',
              cell: ({ object, fields }) => `${object}: ${fields.join(', ')}`,
            },
          ]}
          rows={loops}
          nothing=""
        />
      )}
    </>
  );
}
