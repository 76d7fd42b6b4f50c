import { done, silentLogger, systemClock } from 'crd-controller';
import { WorkerPool, WorkQueue } from 'crd-controller/workqueue';

const clock = systemClock;
const queue = new WorkQueue<string>({ name: 'mail', clock });
const stop = new AbortController();
let attempts = 0;
const pool = new WorkerPool<string>(
  {
    name: 'mail',
    queue,
    clock,
    log: silentLogger,
    handler: async (key) => {
      attempts += 1;
      if (attempts === 1) throw new Error('the first attempt fails');
      console.log(key, attempts); // prints: alice 2
      stop.abort();
      return done();
    },
  },
  { concurrency: 4 },
);
queue.add('alice');
queue.add('alice'); // Merged with the first.
await pool.run(stop.signal);
