import { silentLogger } from 'crd-controller';
import { HttpServer } from 'crd-controller/serving';

let isReady = false;
const server = new HttpServer(
  { log: silentLogger },
  {
    name: 'health',
    bindAddress: '127.0.0.1:0',
    routes: { readyz: [{ name: 'cache', check: () => (isReady ? undefined : 'not synced') }] },
  },
);
const stop = new AbortController();
const running = server.run(stop.signal);
const address = await server.listening;
const readyz = async () => (await fetch(`http://${address}/readyz`)).status;
console.log(await readyz()); // prints: 500
isReady = true;
console.log(await readyz()); // prints: 200
stop.abort();
await running;
