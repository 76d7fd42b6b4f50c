import { silentLogger, systemClock } from 'crd-controller';
import { Manager } from 'crd-controller/manager';

const stopped: string[] = [];
const runnable = (name: string) => ({
  name,
  run: async (signal: AbortSignal) => {
    await systemClock.sleep(60_000, signal);
    stopped.push(name);
  },
});
const manager = new Manager({ clock: systemClock, log: silentLogger })
  .add('servers', runnable('server'))
  .add('controllers', runnable('controller'));
const running = manager.run(new AbortController().signal);
manager.stop();
await running;
console.log(stopped.join()); // prints: controller,server
