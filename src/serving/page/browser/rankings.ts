import { formatCause } from '../../../workqueue/queue-item.ts';
import type { QueuesReport } from '../../queue-pages.ts';
import { h } from './dom.ts';
import type { Element_ } from './dom.ts';
import { duration, rate } from './format.ts';
import { linkToKey } from './route.ts';
import { badge, card, resultBadge, table } from './table.ts';
import type { Column } from './table.ts';

interface RankedKey {
  readonly controller: string;
  readonly key: string;
}

function ranking<R extends RankedKey>(
  title: string,
  figure: Column<R>,
  reason: Column<R>,
  rows: readonly R[],
  nothing: string,
): Element_ {
  const columns: readonly Column<R>[] = [
    {
      title: 'Key',
      isWide: true,
      cell: ({ controller, key }) => [
        h('a', { href: linkToKey(controller, key), title: key }, key),
        h('span', { class: 'note' }, ` ${controller}`),
      ],
    },
    figure,
    reason,
  ];
  return card(
    title,
    'third',
    table(title, columns, rows.slice(0, 8), {
      keyOf: ({ controller, key }) => `${controller} ${key}`,
      nothing,
    }),
  );
}

/** Returns the keys that fail, are slow or are synced often. */
export function keyCards(
  { hottest, slowest, failing, controllers }: QueuesReport,
  nowMs: number,
): Element_[] {
  const loops = controllers.flatMap(({ controller, hotLoops }) =>
    hotLoops.map((loop) => ({ controller, ...loop })),
  );
  return [
    ranking(
      'Most failing keys',
      { title: 'Failed', isNumber: true, cell: ({ failures, syncs }) => `${failures} of ${syncs}` },
      {
        title: 'Last error',
        isWide: true,
        isSpare: true,
        cell: ({ error, hasRecovered, startedAt }) => [
          hasRecovered && [badge('good', 'recovered'), ' '],
          h('span', { class: 'note' }, `${duration(nowMs - Date.parse(startedAt))} ago`),
          h('span', { title: error, dir: 'auto' }, ` ${error}`),
        ],
      },
      failing,
      'None of the last syncs failed.',
    ),
    ranking(
      'Slowest keys',
      { title: 'Took', isNumber: true, cell: ({ tookMs }) => duration(tookMs) },
      { title: 'Result', isSpare: true, cell: ({ result }) => resultBadge(result) },
      slowest,
      'No key was synced yet.',
    ),
    ranking(
      'Hottest keys',
      { title: 'Syncs/min', isNumber: true, cell: ({ syncsPerMinute }) => rate(syncsPerMinute) },
      {
        title: 'Last cause',
        isWide: true,
        isSpare: true,
        cell: ({ causes }) => causes.map(formatCause).join('; '),
      },
      hottest,
      'No key was synced twice.',
    ),
    ...(loops.length === 0
      ? []
      : [
          ranking(
            'Hot loops',
            {
              title: 'Changes',
              isNumber: true,
              cell: ({ times, withinMs }) => `${times} in ${duration(withinMs)}`,
            },
            {
              title: 'Fields',
              isWide: true,
              cell: ({ object, fields }) => `${object}: ${fields.join(', ')}`,
            },
            loops,
            '',
          ),
        ]),
  ];
}
