import { countText } from '../serving/words.ts';
import { describeRequest } from './comparison.ts';
import type { FieldDifference, WriteDifference } from './comparison.ts';
import type { RecordingLine } from './format.ts';
import type { ReplayReport } from './replay.ts';
import type { SyncDifference } from './replayed-sync.ts';
import { CacheEvents, describeGap, describeTerm } from './line-texts.ts';
import { lineOf, readRecording } from './read-recording.ts';

/** Yields what a person reads about a replay: how each sync differs, and a summary. */
export function* describeReport(report: ReplayReport): Generator<string, void, undefined> {
  for (const difference of report.differences) {
    const { controller, key, at, sync, causes } = difference;
    yield `${at.toISOString()} ${controller} ${key} (sync ${sync}: ${causes.join(', ') || 'no cause'})`;
    for (const line of describeDifference(difference)) yield `  ${line}`;
    yield '';
  }
  yield* summarize(report);
}

/** Yields what a replay compared, and its result in the last line. */
export function* summarize(report: ReplayReport): Generator<string, void, undefined> {
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

/** Yields how a sync differs. */
export function* describeDifference({
  writes,
  result,
  reads,
}: SyncDifference): Generator<string, void, undefined> {
  for (const write of writes) yield* describeWrite(write);
  if (result) yield `result: ${describeValues(result)}`;
  for (const read of reads) yield `reads what the recording does not have: ${read}`;
}

/** Yields how a write differs. */
export function* describeWrite({
  kind,
  write,
  fields,
}: WriteDifference): Generator<string, void, undefined> {
  yield `${kind}: ${write}`;
  for (const { field, ...values } of fields) yield `  ${field}: ${describeValues(values)}`;
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
  const events = new CacheEvents(caches);
  const syncs = new Map<number, string>();
  const requests = new Map<number, { readonly who: string; readonly text: string }>();
  const whoOf = (sync: number | undefined) => syncs.get(sync ?? 0) ?? 'program';
  const tell = ({ ms }: { readonly ms: number }, who: string, text: string) =>
    `${new Date(header.startMs + ms).toISOString()}  ${who.padEnd(12)}  ${text}`;
  const { name, version } = header.program;
  if (name !== '') yield tell(header, 'program', `is ${name} ${version}`.trimEnd());
  for (const each of lines) {
    const line: RecordingLine | undefined = lineOf(each);
    switch (line?.kind) {
      case 'set':
      case 'drop': {
        const { type, cache, process = 'program', key } = events.next(line);
        yield tell(line, process, `sees the event of ${cache}: ${type} ${key}`);
        break;
      }
      case 'sync': {
        const who = line.process ?? line.controller;
        syncs.set(line.sync, who);
        const causes = line.causes.map(({ text }) => text).join(', ');
        yield tell(line, who, `syncs ${line.key} (${causes})`);
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
      case 'term':
        yield tell(line, line.process ?? 'program', describeTerm(line));
        break;
      case 'write':
        yield tell(line, line.process, line.text);
        break;
      case 'fault':
        yield tell(line, '!', line.text);
        break;
      case 'action':
        yield tell(line, '>', line.text);
        break;
      case 'gap':
        yield tell(line, '!', describeGap(line));
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
