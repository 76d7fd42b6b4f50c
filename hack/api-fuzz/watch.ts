import type { Json } from './requests.ts';

/** A watch of one server. Keeps its events until they are compared. */
export interface FuzzWatch {
  readonly path: string;
  /** The events so far, without periodic bookmarks, and `END` if the server ended the watch. */
  readonly events: readonly Json[];
  close(): Promise<void>;
}

/** Time within which the bookmark after the initial state, or the end of a short watch, arrives. */
const DEADLINE_MS = 3000;

/** Reads a watch in the background. With initial events or a short timeout, waits until they have been sent. */
export async function openWatch(
  body: AsyncIterable<Uint8Array>,
  stop: AbortController,
  path: string,
): Promise<FuzzWatch> {
  const events: Json[] = [];
  let wake = () => undefined as void;
  const reading = (async () => {
    const decoder = new TextDecoder();
    let rest = '';
    try {
      for await (const chunk of body) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
        rest = lines.pop() ?? '';
        events.push(...lines.map((line) => JSON.parse(line)).filter((event) => !isPeriodic(event)));
        wake();
      }
      events.push('END');
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    }
    wake();
  })();
  const marksInitial = /sendInitialEvents=true/.test(path) && /allowWatchBookmarks=true/.test(path);
  const isShort = path.includes('timeoutSeconds=1');
  const isReady = () =>
    (!marksInitial && !isShort) ||
    events.at(-1) === 'END' ||
    (marksInitial && !isShort && events.at(-1)?.type === 'BOOKMARK');
  const deadline = Date.now() + DEADLINE_MS;
  while (!isReady() && Date.now() < deadline) {
    await new Promise<void>((resolve) => {
      wake = resolve;
      setTimeout(resolve, deadline - Date.now());
    });
  }
  return {
    path,
    events,
    async close() {
      stop.abort(new Error('the sequence has ended'));
      await reading;
    },
  };
}

function isPeriodic({ type, object }: Json): boolean {
  return type === 'BOOKMARK' && !JSON.stringify(object).includes('initial-events-end');
}
