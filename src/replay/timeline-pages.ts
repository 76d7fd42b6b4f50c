import { debugPage } from '../serving/page/debug-page.ts';
import { compactJsonPage } from '../serving/routes.ts';
import type { Pages } from '../serving/routes.ts';
import type { Timeline } from './timeline.ts';

/** Debug page of a recording: `/debug/`, with its data at `/debug/timeline` and `/debug/timeline/entry?at=N`. */
export function timelinePages(timeline: Timeline): Pages {
  return new Map([
    ...debugPage(['recording']),
    ['/debug/timeline', () => compactJsonPage(200, timeline.report)],
    [
      '/debug/timeline/entry',
      (query: URLSearchParams) => {
        const at = query.get('at') ?? '';
        const details = timeline.details(Number(at));
        return details
          ? compactJsonPage(200, details)
          : compactJsonPage(404, { error: `There is no entry ${at}` });
      },
    ],
  ]);
}
