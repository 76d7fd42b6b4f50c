import { HttpClient, silentLogger, systemClock } from 'crd-controller';
import { LeaderElector } from 'crd-controller/leaderelection';
import { ApiServer } from 'crd-controller/testing';

const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
const deps = { client, clock: systemClock, log: silentLogger, random: Math.random };
const options = { namespace: 'default', name: 'example', identity: 'replica-1' };
const elector = new LeaderElector(deps, options);
const stop = new AbortController();
const running = elector.run(stop.signal);
console.log(await elector.acquired(stop.signal)); // prints: true
console.log(elector.mayWrite()); // prints: true
stop.abort(); // Releases the Lease.
await running;
