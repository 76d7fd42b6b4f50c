import { readRecording, RecordingError } from '../../replay/read-recording.ts';
import type { Recording } from '../../replay/read-recording.ts';
import { replayRecording } from '../../replay/replay.ts';
import type { ReplayReport } from '../../replay/replay.ts';
import { describeReport, tellRecording } from '../../replay/report.ts';
import { timelinePages } from '../../replay/timeline-pages.ts';
import { Timeline } from '../../replay/timeline.ts';
import { silentLogger } from '../../util/logger.ts';
import { EXIT_FAILURE, EXIT_OK, UsageError } from '../common/errors.ts';
import type { OptionValues } from '../flags/option.ts';
import type { REPLAY_OPTIONS } from '../flags/options.ts';
import { servePage } from '../program/endpoints.ts';
import { loadBuilders } from '../program/program.ts';
import type { CommandContext } from '../program/program.ts';
import { buildControllers } from './run.ts';

type ReplayFlags = Pick<OptionValues<typeof REPLAY_OPTIONS>, 'story' | 'web' | 'web-port'> &
  Readonly<Record<string, unknown>>;

type ReplayContext = Pick<CommandContext, 'program' | 'print' | 'log' | 'signal'> & {
  readonly logging: Pick<CommandContext['logging'], 'verbosity'>;
};

/**
 * Replays a recording with the controllers of the program, and prints how their writes differ, or shows it in a browser.
 *
 * @param flags values of the program's own flags, too
 * @returns 1 if a sync differs
 * @throws {UsageError} if the file cannot be read
 */
export async function replayFile(
  operands: readonly string[],
  flags: ReplayFlags,
  context: ReplayContext,
): Promise<number> {
  const [file] = operands;
  if (file === undefined || operands.length > 1) {
    throw new UsageError(`expected one recording: replay FILE, got ${operands.length}`);
  }
  const { print } = context;
  try {
    if (flags.story) {
      for await (const line of tellRecording(file)) print(line);
      return EXIT_OK;
    }
    const recording = await readRecording(file);
    if (flags.web) return await showPage(file, recording, flags, context);
    const report = await replayWith(recording, flags, context);
    for (const line of describeReport(report)) print(line);
    return report.differences.length === 0 ? EXIT_OK : EXIT_FAILURE;
  } catch (error) {
    if (error instanceof RecordingError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

/** Replays a recording with those of its controllers that the program has. */
async function replayWith(
  recording: Recording,
  flags: ReplayFlags,
  { program, log, logging }: ReplayContext,
): Promise<ReplayReport> {
  const { controllers: recorded, namespaces } = recording.header;
  const controllers = recorded.filter((name) => Object.hasOwn(program.controllers, name));
  const builders = await loadBuilders(program, controllers);
  const config = { controllers, namespaces, concurrentSyncs: new Map<string, number>(), flags };
  return replayRecording(recording, {
    // The log of the replayed program repeats that of the recorded one.
    log: logging.verbosity > 0 ? log : silentLogger,
    controllers: (kit) => buildControllers(program, builders, kit, config),
  });
}

/** Serves a page with the recording until the user stops it. */
async function showPage(
  file: string,
  recording: Recording,
  flags: ReplayFlags,
  context: ReplayContext,
): Promise<number> {
  const { print, log, signal } = context;
  const report = recording.header.schedule
    ? undefined
    : await replayWith(recording, flags, context);
  const pages = timelinePages(new Timeline(file, recording, report));
  const announce = (url: string) =>
    print(`The recording in a browser: ${url}. Press Ctrl-C to stop.`);
  await servePage({ pages, port: flags['web-port'], log, announce }, signal);
  return EXIT_OK;
}
