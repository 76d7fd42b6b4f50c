/** Response of `/debug/timeline`: a recording, for the page. */
export interface TimelineReport {
  /** Name and version of the recorded program. */
  readonly title: string;
  readonly file: string;
  /** Wall-clock time at `ms` 0, in milliseconds since the epoch. Absent if the recording is of virtual time. */
  readonly startMs?: number | undefined;
  /** What a person must know first. */
  readonly notes: readonly TimelineNote[];
  /** Names of the lanes: a cache, a key of a controller, or a participant. */
  readonly lanes: readonly string[];
  /** What happened, in the order in which it was recorded. */
  readonly entries: readonly TimelineEntry[];
}

/** Text above a timeline. */
export interface TimelineNote {
  readonly tone: 'neutral' | 'warning' | 'bad';
  readonly text: string;
}

/** Kinds of entries by their names in the page. */
export const ENTRY_KINDS = {
  change: 'watch event',
  sync: 'sync',
  request: 'request',
  event: 'event',
  timer: 'timer',
  lease: 'lease',
  write: 'write',
  action: 'user action',
  fault: 'fault',
  gap: 'missing lines',
} as const;

/** Something that happened once, or from one time to another. */
export interface TimelineEntry {
  readonly kind: keyof typeof ENTRY_KINDS;
  /** Time since the start, in milliseconds. */
  readonly ms: number;
  /** Index in the lanes. */
  readonly lane: number;
  readonly text: string;
  /** Duration in milliseconds. Absent if it took no time, or its end was not recorded. */
  readonly tookMs?: number;
  /** Index of the first entry after its end. Absent if that is the next one. */
  readonly until?: number;
  readonly result?: string;
  readonly isFailed?: true;
  /** The replay differs here. */
  readonly isDifferent?: true;
}

/** Response of `/debug/timeline/entry`. */
export interface TimelineDetails {
  /** How the replay differs, line by line. */
  readonly differences: readonly string[];
  /** What was recorded: a request with its response, or an object. */
  readonly recorded: unknown;
}
