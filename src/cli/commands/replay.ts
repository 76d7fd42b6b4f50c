import { replay } from '../../replay/replay.ts';
import { readRecording, RecordingError } from '../../replay/read-recording.ts';
import { describeReport, tellRecording } from '../../replay/report.ts';
import { silentLogger } from '../../util/logger.ts';
import { EXIT_FAILURE, EXIT_OK, UsageError } from '../common/errors.ts';
import type { OptionValues } from '../flags/option.ts';
import type { REPLAY_OPTIONS } from '../flags/options.ts';
import { loadBuilders } from '../program/program.ts';
import type { CommandContext } from '../program/program.ts';
import { buildControllers } from './run.ts';

/**
 * Replays a recording with the controllers of the program, and prints how their writes differ.
 *
 * @param flags values of the program's own flags, too
 * @returns 1 if a sync differs
 * @throws {UsageError} if the file cannot be read
 */
export async function replayFile(
  operands: readonly string[],
  flags: Pick<OptionValues<typeof REPLAY_OPTIONS>, 'story'> & Readonly<Record<string, unknown>>,
  { program, print, log, logging }: Pick<CommandContext, 'program' | 'print' | 'log' | 'logging'>,
): Promise<number> {
  const [file] = operands;
  if (file === undefined || operands.length > 1) {
    throw new UsageError(`expected one recording: replay FILE, got ${operands.length}`);
  }
  try {
    if (flags.story) {
      for await (const line of tellRecording(file)) print(line);
      return EXIT_OK;
    }
    const { header } = await readRecording(file);
    const controllers = header.controllers.filter((name) =>
      Object.hasOwn(program.controllers, name),
    );
    const builders = await loadBuilders(program, controllers);
    const { namespaces } = header;
    const config = { controllers, namespaces, concurrentSyncs: new Map<string, number>(), flags };
    const report = await replay({
      file,
      // The log of the replayed program repeats that of the recorded one.
      log: logging.verbosity > 0 ? log : silentLogger,
      controllers: (kit) => buildControllers(program, builders, kit, config),
    });
    for (const line of describeReport(report)) print(line);
    return report.differences.length === 0 ? EXIT_OK : EXIT_FAILURE;
  } catch (error) {
    if (error instanceof RecordingError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}
