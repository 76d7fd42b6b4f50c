import type { Span } from './grid.ts';
import type { PageState, TopState } from './model.ts';

/** Keys, and what they do. */
const HELP: readonly (readonly [keys: string, effect: string])[] = [
  ['Up, Down, k, j', 'Select a row, or scroll'],
  ['PgUp, PgDn, g, G', 'Scroll by a page, to the first and to the last row'],
  ['Tab, Shift-Tab', 'Select the next or the previous table'],
  ['Enter', 'Open the selected queue or key: why it runs, its API calls, errors and retries'],
  ['w', 'Open a key by its name: NAMESPACE/NAME'],
  ['Esc, q', 'Back to the previous page; q on the first page quits'],
  ['Left, Right, <, >', 'Sort the table by the previous or the next column'],
  ['r', 'Reverse the order'],
  ['/', 'Show only rows with a text; Esc removes the filter'],
  ['Space', 'Pause, and resume'],
  ['Ctrl-L', 'Draw the screen again'],
  ['Ctrl-Z', 'Suspend; fg resumes'],
  ['Ctrl-C', 'Quit'],
];

/** Colours, and what they mean. */
const LEGEND: readonly Span[][] = [
  [
    { text: 'Red: ', style: 'alarm' },
    text('errors, stale informers, hot loops, a late event loop'),
  ],
  [{ text: 'Yellow: ', style: 'warning' }, text('all workers are busy, an informer is not synced')],
  [text('NO_COLOR=1 disables colours.')],
];

export function helpLines(): Span[][] {
  const width = Math.max(...HELP.map(([keys]) => keys.length)) + 2;
  return [
    [],
    ...HELP.map(([keys, effect]): Span[] => [
      { text: keys.padEnd(width), style: 'heading' },
      text(effect),
    ]),
    [],
    ...LEGEND,
  ];
}

/** Returns the last line of the screen: the prompt, or the keys of the page. */
export function hintLine({ prompt, isHelp, isPaused }: TopState, page: PageState): Span[] {
  if (prompt) {
    const label = prompt.kind === 'filter' ? '/' : 'Key (NAMESPACE/NAME): ';
    return [
      { text: label, style: 'heading' },
      text(prompt.text),
      { text: ' ', style: 'selected' },
      { text: '  Enter: accept  Esc: cancel', style: 'faint' },
    ];
  }
  if (isHelp) return [text('Press any key to return')];
  const isTable = page.id.kind !== 'key';
  const isFirst = page.id.kind === 'overview';
  return [
    ...(isPaused ? [{ text: 'PAUSED  ', style: 'warning' as const }] : []),
    ...(page.filter ? [{ text: `filter: ${page.filter}  `, style: 'warning' as const }] : []),
    text(
      [
        isFirst ? 'q: quit' : 'q: back',
        '?: help',
        ...(isTable
          ? ['Enter: open', 'Left/Right: sort', '/: filter', 'Tab: next table']
          : ['Up/Down: scroll']),
        'w: key',
      ].join('  '),
    ),
  ];
}

function text(text: string): Span {
  return { text, style: 'plain' };
}
