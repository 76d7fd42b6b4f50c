import type {
  TimelineDetails,
  TimelineEntry,
  TimelineNote,
  TimelineReport,
} from '../serving/page/timeline-report.ts';
import { countText } from '../serving/words.ts';
import { describeEnding, describeRequest, eventWrite } from './comparison.ts';
import type { EndLine, Header, RecordingLine, SyncLine } from './format.ts';
import { CacheEvents, describeGap, describeTerm } from './line-texts.ts';
import { lineOf } from './read-recording.ts';
import type { LazyLine, Recording } from './read-recording.ts';
import type { ReplayReport } from './replay.ts';
import type { SyncDifference } from './replayed-sync.ts';
import { describeDifference, describeWrite, summarize } from './report.ts';

type NewEntry = { -readonly [N in keyof TimelineEntry]: TimelineEntry[N] };

/** Lanes of the recording itself come first, then caches, then keys. */
const RANKS = { faults: 0, user: 1, server: 2, program: 3, cache: 4, key: 5 } as const;

/** The name of the program's own lane. */
const PROGRAM = 'program';

/** A recording as entries in lanes, for the page. */
export class Timeline {
  readonly report: TimelineReport;
  readonly #recorded: readonly (readonly LazyLine[])[];
  readonly #differences: ReadonlyMap<number, readonly string[]>;

  /** @param replayed marks what differs */
  constructor(file: string, recording: Recording, replayed?: ReplayReport) {
    const builder = new TimelineBuilder(recording, replayed?.differences ?? []);
    for (const line of recording.lines) builder.add(line);
    const { header } = recording;
    this.report = {
      title: `${header.program.name} ${header.program.version}`.trim(),
      file,
      ...(!header.schedule && { startMs: header.startMs }),
      notes: [...notesOf(recording, builder.missingLines, replayed)],
      ...builder.result(),
    };
    this.#recorded = builder.recorded;
    this.#differences = builder.differences;
  }

  /** Returns everything about an entry. */
  details(at: number): TimelineDetails | undefined {
    const lines = this.#recorded[at]?.map(lineOf).filter((line) => line !== undefined);
    if (!lines) return undefined;
    return { differences: this.#differences.get(at) ?? [], recorded: contentOf(lines) };
  }
}

function* notesOf(
  { header, isCut }: Recording,
  missingLines: number,
  replayed: ReplayReport | undefined,
): Generator<TimelineNote, void, undefined> {
  const { schedule } = header;
  if (schedule) {
    yield { tone: 'bad', text: `Violated: ${schedule.rule}. ${schedule.detail}` };
    const faults = schedule.replay.map((each) => JSON.stringify(each)).join(', ');
    yield { tone: 'neutral', text: `Repeat it with the option replay: [${faults}]` };
  }
  if (replayed) {
    const tone = replayed.differences.length > 0 ? 'bad' : 'neutral';
    for (const text of summarize(replayed)) yield { tone, text };
    return;
  }
  if (missingLines > 0) {
    yield { tone: 'warning', text: `The recording lacks ${countText(missingLines, 'line')}` };
  }
  if (isCut) {
    const text = 'The last line is cut off: the recorded program ended without a stop';
    yield { tone: 'warning', text };
  }
}

/** Collects the entries of a recording, line by line. */
class TimelineBuilder {
  readonly #header: Header;
  readonly #differing: ReadonlyMap<number, SyncDifference>;
  readonly #lanes = new Map<string, { readonly index: number; readonly rank: number }>();
  readonly #entries: NewEntry[] = [];
  readonly #events: CacheEvents;
  /** Whether lanes have the names of their processes. */
  readonly #hasProcesses: boolean;
  /** Running syncs, requests and timers: those of a sync and of a request by number, timers by lane. */
  readonly #syncs = new Map<number, { readonly line: SyncLine; readonly at: number }>();
  readonly #requests = new Map<number, number>();
  readonly #timers = new Map<number, number>();
  /** The lines of each entry. */
  readonly recorded: LazyLine[][] = [];
  readonly differences = new Map<number, readonly string[]>();
  missingLines: number;

  constructor({ header, caches, unreadable }: Recording, differing: readonly SyncDifference[]) {
    this.#header = header;
    this.#differing = new Map(differing.map((each) => [each.sync, each]));
    this.#events = new CacheEvents(caches);
    this.#hasProcesses = new Set(caches.map(({ process }) => process)).size > 1;
    this.missingLines = unreadable;
  }

  /** Returns the lanes in their order, and the entries with their places in them. */
  result(): Pick<TimelineReport, 'lanes' | 'entries'> {
    const sorted = [...this.#lanes].sort(([, a], [, b]) => a.rank - b.rank || a.index - b.index);
    const places = new Map(sorted.map(([, { index }], place) => [index, place]));
    for (const entry of this.#entries) entry.lane = places.get(entry.lane) ?? 0;
    return { lanes: sorted.map(([name]) => name), entries: this.#entries };
  }

  add(lazy: LazyLine): void {
    const line = lineOf(lazy);
    switch (line?.kind) {
      case undefined:
        this.missingLines++;
        break;
      case 'set':
      case 'drop': {
        const { type, cache, process, key } = this.#events.next(line);
        const lane = this.#lane('cache', cache, process);
        this.#add({ kind: 'change', ms: line.ms, lane, text: `${type} ${cache} ${key}` }, lazy);
        break;
      }
      case 'sync':
        this.#startSync(line);
        break;
      case 'end':
        this.#endSync(line);
        break;
      case 'request': {
        const lane = this.#laneOf(line.sync, line.process);
        const text = describeRequest(line.method, line.path, line.body);
        const result = 'no response';
        const at = this.#add({ kind: 'request', ms: line.ms, lane, text, result }, line);
        this.#requests.set(line.request, at);
        this.#mark(line.sync, at, text);
        break;
      }
      case 'response':
      case 'failure': {
        const at = this.#requests.get(line.request);
        this.#requests.delete(line.request);
        if (at === undefined) break;
        const entry = this.#end(at, line.ms);
        const isFailed = line.kind === 'failure' || line.status >= 400;
        if (entry && isFailed) entry.isFailed = true;
        if (entry) entry.result = line.kind === 'failure' ? line.message : String(line.status);
        this.recorded[at]?.push(line);
        break;
      }
      case 'event': {
        const { text } = eventWrite(line.event);
        const lane = this.#laneOf(line.sync);
        const at = this.#add({ kind: 'event', ms: line.ms, lane, text: text.slice(6) }, line);
        this.#mark(line.sync, at, text);
        break;
      }
      case 'term': {
        const text = describeTerm(line);
        const lane = this.#lane('program', PROGRAM, line.process);
        this.#add({ kind: 'lease', ms: line.ms, lane, text }, line);
        break;
      }
      case 'gap': {
        this.missingLines += line.lines;
        const text = describeGap(line);
        const lane = this.#lane('program', PROGRAM);
        this.#add(
          { kind: 'gap', ms: line.ms, lane, text, result: 'missing', isFailed: true },
          line,
        );
        break;
      }
      case 'write': {
        const lane = this.#lane('server', 'API server');
        this.#add({ kind: 'write', ms: line.ms, lane, text: `${line.process} ${line.text}` }, line);
        break;
      }
      case 'fault': {
        const lane = this.#lane('faults', 'faults');
        this.#add(
          { kind: 'fault', ms: line.ms, lane, text: line.text, result: 'fault', isFailed: true },
          line,
        );
        break;
      }
      case 'action':
        this.#add(
          { kind: 'action', ms: line.ms, lane: this.#lane('user', 'users'), text: line.text },
          line,
        );
        break;
      case 'cache':
      case 'synced':
      case 'complete':
        break;
    }
  }

  #startSync(line: SyncLine): void {
    const lane = this.#lane('key', `${line.controller} ${line.key}`, line.process);
    const timer = this.#timers.get(lane);
    this.#timers.delete(lane);
    // A key that is synced earlier has no timer any more.
    const isEarlier = timer !== undefined && this.#dueMs(timer) > line.ms;
    if (isEarlier) this.#end(timer, line.ms);
    else if (timer !== undefined) this.#end(timer, this.#dueMs(timer));
    const causes = line.causes.map((cause) => cause.text).join(', ') || 'no cause';
    const text = `syncs ${line.key}: ${causes}`;
    const result = 'not ended';
    const at = this.#add({ kind: 'sync', ms: line.ms, lane, text, result }, line);
    this.#syncs.set(line.sync, { line, at });
    const difference = this.#differing.get(line.sync);
    if (difference) this.#differ(at, [...describeDifference(difference)]);
  }

  #endSync(line: EndLine): void {
    const { at = -1 } = this.#syncs.get(line.sync) ?? {};
    const started = this.#entries[at];
    if (!started) return;
    const { ending } = line;
    const { lane } = started;
    for (const write of this.#differing.get(line.sync)?.writes ?? []) {
      if (write.kind !== 'additional') continue;
      const added = { kind: 'request', ms: line.ms, lane, text: write.write } as const;
      this.#differ(this.#add({ ...added, result: 'only in the replay' }), [
        ...describeWrite(write),
      ]);
    }
    this.#end(at, line.ms);
    started.result = describeEnding(ending);
    if ('error' in ending) started.isFailed = true;
    this.recorded[at]?.push(line);
    this.#syncs.delete(line.sync);
    if (!('outcome' in ending) || ending.outcome.kind === 'done') return;
    const { outcome } = ending;
    const delayMs =
      outcome.kind === 'requeueAt' ? outcome.atMs - this.#header.startMs - line.ms : outcome.ms;
    const text = describeEnding(ending);
    const tookMs = Math.max(0, delayMs);
    this.#timers.set(lane, this.#add({ kind: 'timer', ms: line.ms, lane, text, tookMs }, line));
  }

  #dueMs(timer: number): number {
    const { ms = 0, tookMs = 0 } = this.#entries[timer] ?? {};
    return ms + tookMs;
  }

  #add(entry: NewEntry, ...lines: readonly LazyLine[]): number {
    this.recorded.push([...lines]);
    return this.#entries.push(entry) - 1;
  }

  #end(at: number, ms: number): NewEntry | undefined {
    const entry = this.#entries[at];
    if (!entry) return undefined;
    entry.tookMs = Math.max(0, ms - entry.ms);
    if (this.#entries.length > at + 1) entry.until = this.#entries.length;
    return entry;
  }

  /** Marks a write of a sync if it differs. */
  #mark(sync: number | undefined, at: number, text: string): void {
    const writes = sync === undefined ? [] : (this.#differing.get(sync)?.writes ?? []);
    const lines: string[] = [];
    for (const difference of writes) {
      const isRecorded = difference.kind !== 'additional' && difference.write === text;
      if (isRecorded) lines.push(...describeWrite(difference));
    }
    if (lines.length > 0) this.#differ(at, lines);
  }

  #differ(at: number, lines: readonly string[]): void {
    const entry = this.#entries[at];
    if (entry) entry.isDifferent = true;
    this.differences.set(at, lines);
  }

  #laneOf(sync: number | undefined, process?: string): number {
    const { at = -1 } = this.#syncs.get(sync ?? -1) ?? {};
    return this.#entries[at]?.lane ?? this.#lane('program', PROGRAM, process);
  }

  #lane(rank: keyof typeof RANKS, text: string, process?: string): number {
    const name = process !== undefined && this.#hasProcesses ? `${process}: ${text}` : text;
    const known = this.#lanes.get(name);
    if (known) return known.index;
    const lane = { index: this.#lanes.size, rank: RANKS[rank] };
    this.#lanes.set(name, lane);
    return lane.index;
  }
}

/** Returns what the lines of an entry contain, without what the entry has. */
function contentOf(lines: readonly RecordingLine[]): unknown {
  const [first] = lines;
  if (first && 'object' in first) return first.object;
  const parts = lines.map((line) => {
    const { kind, ms: _, ...content } = line;
    return kind === 'response' ? { response: content } : content;
  });
  return Object.assign({}, ...parts) as unknown;
}
