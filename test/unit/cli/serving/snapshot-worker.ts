import { text } from 'node:stream/consumers';
import { V8Profiler } from '../../../../src/cli/serving/v8-profiler.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';

/** Something to be found in the snapshot. */
class HoardedSecret {
  readonly token: string = ['canary', 'of', 'the', 'worker'].join('-');
}
const secret = new HoardedSecret();

const { nodes, strings } = JSON.parse(await text(new V8Profiler(new FakeClock()).heapSnapshot()));
const found = {
  nodes: nodes.length,
  hasClass: strings.includes(HoardedSecret.name),
  hasToken: strings.includes(secret.token),
};
process.stdout.write(JSON.stringify(found));
