import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { runControllers } from '../../src/manager/run-controllers.ts';
import type { ControllerManagerOptions } from '../../src/manager/run-controllers.ts';
import { FlightRecorder } from '../../src/replay/flight-recorder.ts';
import type { FlightRecorderOptions } from '../../src/replay/flight-recorder.ts';
import { lineOf, readRecording } from '../../src/replay/read-recording.ts';
import type { RecordingLine } from '../../src/replay/format.ts';
import { FakeClock } from '../../src/util/fake-clock.ts';

/** Returns a function that returns paths of files, which are deleted after the tests. */
export function recordings(): (name: string) => string {
  const folder = mkdtempSync(join(tmpdir(), 'recordings-'));
  after(() => rmSync(folder, { recursive: true }));
  return (name) => join(folder, name);
}

/** A server and a client, in virtual time, while controllers are recorded. */
export interface RecordedScene {
  readonly clock: FakeClock;
  readonly client: HttpClient;
  /** Aborts at the end. */
  readonly signal: AbortSignal;
  /** Lets the recorded lines reach the file, which takes real time. */
  readonly written: () => Promise<void>;
}

/** Runs controllers against a server in this process, and records them. */
export async function recordRun(
  options: Pick<ControllerManagerOptions, 'controllers' | 'leaderElection'> & FlightRecorderOptions,
  act: (scene: RecordedScene) => Promise<void>,
  prepare: (scene: RecordedScene) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const { controllers, leaderElection, ...recorded } = options;
  const clock = new FakeClock();
  const { handler } = new ApiServer({ clock });
  const client = new HttpClient({
    handler,
    server: 'https://test',
    clock,
    namespace: 'default',
    credentials: {
      headers: () => ({ authorization: 'Bearer c4n4ry-token' }),
      invalidate: () => false,
    },
  });
  const stop = new AbortController();
  const recorder = new FlightRecorder(recorded);
  const written = () => recorder.flush();
  const scene = { clock, client, signal: stop.signal, written };
  await prepare(scene);
  const ending = { hasEnded: false };
  const running = runControllers(
    { client, controllers, clock, recorder, name: 'recorded', leaderElection },
    stop.signal,
  ).finally(() => {
    ending.hasEnded = true;
  });
  await act(scene);
  stop.abort();
  // The end of the file is written in real time.
  while (!ending.hasEnded) {
    await clock.advance(10);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await running;
}

/** Returns the numbers of the syncs with lines of which `is` returns true, in the order of the file. */
export async function syncsWith(
  file: string,
  is: (line: RecordingLine) => boolean,
): Promise<number[]> {
  const { lines } = await readRecording(file);
  const numbers = lines
    .map(lineOf)
    .filter((line) => line !== undefined && is(line))
    .map((line) => (line && 'sync' in line ? line.sync : undefined))
    .filter((each) => each !== undefined);
  return [...new Set(numbers)].sort((a, b) => a - b);
}

/** Returns the lines of a file. */
export function linesOfFile(file: string): string[] {
  return readFileSync(file, 'utf8').split('\n').slice(0, -1);
}
