/** Baseline: a Map for deduplication, arrays for the order and timers for delays; no guarantees. */
import { measure, objectOf } from '../contender.ts';

await measure(async (scenario, keys) => {
  if (scenario === 'indexer') {
    indexAll(keys);
    return;
  }
  const waiting = new Map<string, boolean>();
  const high: string[] = [];
  const low: string[] = [];
  const failed = new Set<string>();
  let left = keys.length;

  const add = (key: string, isLow = false) => {
    if (waiting.has(key)) return;
    waiting.set(key, isLow);
    (isLow ? low : high).push(key);
  };
  const retry = (key: string) =>
    new Promise<void>((resolve) => {
      setTimeout(() => {
        add(key);
        resolve();
      }, 5);
    });
  const drain = async () => {
    for (const line of [high, low]) {
      // A loop over an array includes elements that are added during the loop.
      for (const key of line) {
        waiting.delete(key);
        if (scenario === 'handler') await handle();
        left--;
      }
      line.length = 0;
    }
  };

  for (let time = 0; time < 2; time++) {
    for (const [number, key] of keys.entries())
      add(key, scenario === 'priority' && number % 2 === 0);
  }
  if (scenario === 'backoff') {
    const again = high.splice(0).map((key) => {
      waiting.delete(key);
      failed.add(key);
      return retry(key);
    });
    await Promise.all(again);
  }
  await drain();
  if (left !== 0) throw new Error(`${left} keys are left`);
});

async function handle(): Promise<void> {}

function indexAll(keys: readonly string[]): void {
  const objects = new Map<string, ReturnType<typeof objectOf>>();
  const index = new Map<string, Set<string>>();
  for (let version = 1; version <= 2; version++) {
    for (const key of keys) {
      const before = objects.get(key);
      if (before) index.get(before.metadata.labels.app)?.delete(key);
      const object = objectOf(key, version);
      objects.set(key, object);
      const { app } = object.metadata.labels;
      let entry = index.get(app);
      if (!entry) index.set(app, (entry = new Set()));
      entry.add(key);
    }
  }
  let found = 0;
  for (const entry of index.values()) {
    found += Array.from(entry, (key) => objects.get(key)).length;
  }
  if (found !== keys.length) throw new Error(`${found} objects are in the index`);
}
