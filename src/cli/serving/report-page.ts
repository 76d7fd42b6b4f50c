import { jsonPages } from '../../manager/serving/page.ts';
import type { Pages } from '../../manager/serving/page.ts';

/**
 * `/debug/report`: what Node.js tells of its process now, as it would at a crash: stacks, heap, handles,
 * limits, libraries. Without the environment, where secrets are; and without names of peers, which
 * would be looked up one by one while everything waits.
 *
 * @param redact masks credentials in texts, as for the log: flags are shown
 */
export function reportPage(
  redact: (text: string) => string,
  report: Pick<NodeJS.ProcessReport, 'getReport'> = process.report,
): Pages {
  const json = jsonPages(redact);
  return new Map([
    [
      '/debug/report',
      () => {
        // Node.js has it, its types have not.
        Object.assign(report, { excludeNetwork: true });
        return json(200, withoutEnvironment(report.getReport()));
      },
    ],
  ]);
}

/** The report holds one of each worker thread, which shows the environment of the process again. */
function withoutEnvironment(report: object): object {
  const { environmentVariables: _, workers, ...shown } = report as Record<string, unknown>;
  if (!Array.isArray(workers)) return shown;
  return { ...shown, workers: workers.map(withoutEnvironment) };
}
