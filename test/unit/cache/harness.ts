import assert from 'node:assert/strict';
import type { Delta } from '../../../src/cache/delta-queue.ts';
import { Informer } from '../../../src/cache/informer.ts';
import type { EventHandler } from '../../../src/cache/event-handler.ts';
import type { InformerOptions } from '../../../src/cache/informer.ts';
import { Reflector } from '../../../src/cache/reflector.ts';
import type { ReflectorDeps } from '../../../src/cache/reflector.ts';
import type { ReflectorOptions } from '../../../src/cache/reflector-options.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { FakeSource, THINGS } from '../../support/fake-source.ts';
import type { Thing, WatchListMode } from '../../support/fake-source.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import type { LogLine } from '../../support/recording-logger.ts';

interface Fixture {
  readonly clock: FakeClock;
  readonly source: FakeSource;
  readonly lines: LogLine[];
  /** Lines at the default verbosity. */
  readonly shown: () => string[];
}

export interface ReflectorFixture extends Fixture {
  readonly reflector: Reflector<Thing>;
  readonly deltas: Delta<Thing>[];
  readonly start: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** Reflector of things with an array as its sink; without jitter unless `random` is given. */
export function reflectorFixture(
  watchList: WatchListMode = 'refused',
  deps: Partial<ReflectorDeps<Thing>> = {},
  options: ReflectorOptions = {},
): ReflectorFixture {
  const clock = new FakeClock();
  const source = new FakeSource(clock, { watchList });
  const { log, lines } = recordingLogger();
  const deltas: Delta<Thing>[] = [];
  const sink = {
    push(delta: Delta<Thing>) {
      deltas.push(delta);
      return undefined;
    },
  };
  const reflector = new Reflector<Thing>(
    'things',
    { source, sink, clock, log, random: () => 0, ...deps },
    options,
  );
  return {
    clock,
    source,
    lines,
    shown: () => shown(lines),
    reflector,
    deltas,
    ...life(clock, (signal) => reflector.run(signal)),
  };
}

export interface InformerFixture extends Fixture {
  readonly informer: Informer<Thing>;
  readonly start: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** Informer of things with frozen objects. */
export function informerFixture(
  options: InformerOptions<Thing> = {},
  watchList: WatchListMode = 'on',
): InformerFixture {
  const clock = new FakeClock();
  const source = new FakeSource(clock, { watchList });
  const { log, lines } = recordingLogger();
  const informer = new Informer(THINGS, source, {
    clock,
    log,
    random: () => 0,
    freeze: true,
    ...options,
  });
  return {
    clock,
    source,
    lines,
    shown: () => shown(lines),
    informer,
    ...life(clock, (signal) => informer.run(signal)),
  };
}

/** Handler that records its calls: `+a=1` (`!` initial), `~a=1→2`, `-a` (`?` without final state). */
export function recordingHandler(): { notes: string[]; handler: EventHandler<Thing> } {
  const notes: string[] = [];
  const handler: EventHandler<Thing> = {
    onAdd: (object, initial) => {
      notes.push(`+${object.metadata.name}=${object.spec.value}${initial ? '!' : ''}`);
    },
    onUpdate: (old, object) => {
      notes.push(`~${object.metadata.name}=${old.spec.value}→${object.spec.value}`);
    },
    onDelete: (lastKnown, finalStateKnown) => {
      notes.push(`-${lastKnown.metadata.name}${finalStateKnown ? '' : '?'}`);
    },
  };
  return { notes, handler };
}

/** Formats deltas: `changed a@11`, `replaced a,b@12`. */
export function brief(delta: Delta<Thing>): string {
  switch (delta.type) {
    case 'changed':
      return `changed ${delta.object.metadata.name}@${delta.object.metadata.resourceVersion}`;
    case 'deleted':
      return `deleted ${delta.lastKnown.metadata.name}@${delta.lastKnown.metadata.resourceVersion}`;
    case 'replaced':
      return `replaced ${delta.objects.map(({ metadata }) => metadata.name).join()}@${delta.resourceVersion}`;
    case 'synced':
      return `synced @${delta.resourceVersion}`;
    case 'resync':
      return 'resync';
  }
}

function shown(lines: readonly LogLine[]): string[] {
  return lines
    .filter(({ level }) => level === 0 || level === 'error')
    .map(({ message }) => message);
}

function life(clock: FakeClock, run: (signal: AbortSignal) => Promise<void>) {
  const controller = new AbortController();
  let running: Promise<void> = Promise.resolve();
  return {
    start: async (): Promise<void> => {
      running = run(controller.signal);
      await settle();
    },
    stop: async (): Promise<void> => {
      controller.abort(new Error('the test is over'));
      await running;
      assert.equal(clock.pending, 0, 'timers are left');
    },
  };
}
