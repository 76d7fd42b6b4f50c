import { countText } from '../serving/words.ts';
import { describeRequest } from './comparison.ts';
import type { FieldDifference } from './comparison.ts';
import type { RecordingLine } from './format.ts';
import type { ReplayReport } from './replay.ts';
import type { SyncDifference } from './replayed-sync.ts';
import { lineOf, readRecording } from './read-recording.ts';

/** Yields what a person reads about a replay: how each sync differs, and a summary. */
export function* describeReport(report: ReplayReport): Generator<string, void, undefined> {
  for (const difference of report.differences) {
    yield* describeDifference(difference);
    yield '';
  }
  const { compared, differences, skipped, missingLines, isCut, missingCaches } = report;
  for (const [reason, count] of skipped)
    yield `Not compared: ${countText(count, 'sync')}, because ${reason}`;
  if (missingLines > 0) yield `The recording lacks ${countText(missingLines, 'line')}`;
  if (isCut) yield 'The last line is cut off: the recorded program ended without a stop';
  for (const name of missingCaches) {
    yield `The recording has no cache of ${name}: it is empty in the replay`;
  }
  const result =
    differences.length === 0
      ? 'no sync differs'
      : `${countText(differences.length, 'sync')} differ${differences.length === 1 ? 's' : ''}`;
  yield `Replayed ${countText(compared, 'sync')}: ${result}`;
}

function* describeDifference(difference: SyncDifference): Generator<string, void, undefined> {
  const { controller, key, at, sync, causes, writes, result, reads } = difference;
  yield `${at.toISOString()} ${controller} ${key} (sync ${sync}: ${causes.join(', ') || 'no cause'})`;
  for (const { kind, write, fields } of writes) {
    yield `  ${kind}: ${write}`;
    for (const { field, ...values } of fields) yield `    ${field}: ${describeValues(values)}`;
  }
  if (result) yield `  result: ${describeValues(result)}`;
  for (const read of reads) yield `  reads what the recording does not have: ${read}`;
}

function describeValues({ recorded, replayed }: Omit<FieldDifference, 'field'>): string {
  return `recorded ${shortened(recorded)}, now ${shortened(replayed)}`;
}

const MAX_LENGTH = 500;

function shortened(text: string = 'nothing'): string {
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text;
}

/**
 * Yields what happened in a recording: who did what, when.
 *
 * @throws {RecordingError} if the file cannot be read, is no recording, or has another version
 */
export async function* tellRecording(file: string): AsyncGenerator<string, void, undefined> {
  const { header, lines, caches, isCut } = await readRecording(file);
  const names = new Map(caches.map(({ id, name }) => [id, name]));
  const syncs = new Map<number, string>();
  const requests = new Map<number, { readonly who: string; readonly text: string }>();
  const known = new Set<string>();
  const whoOf = (sync: number | undefined) => syncs.get(sync ?? 0) ?? 'program';
  const tell = ({ ms }: { readonly ms: number }, who: string, text: string) =>
    `${new Date(header.startMs + ms).toISOString()}  ${who.padEnd(12)}  ${text}`;
  const { name, version } = header.program;
  if (name !== '') yield tell(header, 'program', `is ${name} ${version}`);
  for (const each of lines) {
    const line: RecordingLine | undefined = lineOf(each);
    switch (line?.kind) {
      case 'set':
      case 'drop': {
        const { namespace, name: objectName } = line.object.metadata;
        const at = [namespace, objectName].filter((part) => part !== undefined).join('/');
        const id = `${line.cache} ${at}`;
        const event = line.kind === 'drop' ? 'DELETED' : known.has(id) ? 'MODIFIED' : 'ADDED';
        if (line.kind === 'drop') known.delete(id);
        else known.add(id);
        yield tell(
          line,
          'program',
          `sees the event of ${names.get(line.cache) ?? '?'}: ${event} ${at}`,
        );
        break;
      }
      case 'sync': {
        syncs.set(line.sync, line.controller);
        const causes = line.causes.map(({ text }) => text).join(', ');
        yield tell(line, line.controller, `syncs ${line.key} (${causes})`);
        break;
      }
      case 'request':
        requests.set(line.request, {
          who: whoOf(line.sync),
          text: inThirdPerson(describeRequest(line.method, line.path, line.body)),
        });
        break;
      case 'response':
      case 'failure': {
        const request = requests.get(line.request);
        requests.delete(line.request);
        if (!request) break;
        const result = line.kind === 'response' ? String(line.status) : line.message;
        yield tell(line, request.who, `${request.text}: ${result}`);
        break;
      }
      case 'event': {
        const { type, reason, message, object } = line.event;
        yield tell(line, whoOf(line.sync), `records ${type} ${reason} of ${object}: ${message}`);
        break;
      }
      case 'end':
        if ('error' in line.ending)
          yield tell(line, whoOf(line.sync), `fails: ${line.ending.error}`);
        break;
      case 'term': {
        const started = line.lease ? 'acquires the Lease' : 'starts the controllers';
        const stopped = line.lease ? 'stops leading' : 'stops the controllers';
        yield tell(line, 'program', line.state === 'started' ? started : stopped);
        break;
      }
      case 'gap':
        yield tell(line, '!', `${countText(line.lines, 'line')} are missing: ${line.reason}`);
        break;
      default:
        break;
    }
  }
  for (const { who, text } of requests.values())
    yield `${''.padEnd(24)}  ${who.padEnd(12)}  ${text}: no response`;
  if (isCut) yield 'The last line is cut off: the recorded program ended without a stop';
}

/** `create pods` becomes `creates pods`. */
function inThirdPerson(request: string): string {
  return request.replace(/^(create|update|delete|get)\b/, '$1s').replace(/^patch\b/, 'patches');
}
