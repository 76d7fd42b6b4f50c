import { debugPage } from '../serving/page/debug-page.ts';
import type { Page, Pages } from '../serving/routes.ts';
import { printableText } from '../util/printable.ts';
import type { Timeline } from './timeline.ts';

/** Debug page of a recording: `/debug/`, with its data at `/debug/timeline` and `/debug/timeline/entry?at=N`. */
export function timelinePages(timeline: Timeline): Pages {
  return new Map([
    ...debugPage(['recording']),
    ['/debug/timeline', () => json(200, timeline.report)],
    [
      '/debug/timeline/entry',
      (query: URLSearchParams) => {
        const at = query.get('at') ?? '';
        const details = timeline.details(Number(at));
        return details ? json(200, details) : json(404, { error: `There is no entry ${at}` });
      },
    ],
  ]);
}

/** A recording can have 100,000 entries, so the JSON is not indented. */
function json(status: number, value: unknown): Page {
  const body = printableText(JSON.stringify(value));
  return { status, contentType: 'application/json', body };
}
