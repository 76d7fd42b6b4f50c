/** p-queue alone: a queue of tasks without keys, so that a key added twice runs twice. */
import PQueue from 'p-queue';
import { measure } from '../contender.ts';

await measure(async (scenario, keys) => {
  const queue = new PQueue({ concurrency: scenario === 'handler' ? 10 : 1 });
  let done = 0;
  const failed = new Set<string>();
  const add = (key: string, priority = 0) =>
    void queue.add(
      async () => {
        if (scenario === 'backoff' && !failed.has(key)) {
          failed.add(key);
          setTimeout(() => add(key), 5);
          return;
        }
        done++;
      },
      { priority },
    );
  // The second addition of a failed key is its retry: all keys run twice in every scenario.
  const times = scenario === 'backoff' ? 1 : 2;
  for (let time = 0; time < times; time++) {
    for (const [number, key] of keys.entries()) {
      add(key, scenario === 'priority' && number % 2 === 0 ? -100 : 0);
    }
  }
  await queue.onIdle();
  while (done < keys.length * times) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    await queue.onIdle();
  }
});
