import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import { DEFAULT_CONTROLLERS } from '../../src/controllers/registry.ts';
import { consoleSteps, isAsShown } from '../support/console-blocks.ts';
import type { ConsoleStep } from '../support/console-blocks.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { findKubectl } from '../support/kubectl.ts';
import { Program } from '../support/program.ts';
import { WireWorld } from '../support/wire-world.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');

const kubectl = findKubectl();
const isOurs = !process.env['CONTROL_PLANE']?.includes('/');
const skip =
  (kubectl === undefined && 'there is no kubectl: put one on the PATH, or set $KUBECTL') ||
  (!isOurs && 'the namespace default of that cluster is not ours');
if (skip) console.warn(`SKIPPED: ${import.meta.filename}: ${skip}`);

/** Commands that only look: given again until they show what the README does. */
const LOOKS = /^kubectl (get|describe|logs) /;

/** The READMEs, word for word: every command in them is given, and must print what they say. */
describe('given somebody who follows the examples', { skip, timeout: 240_000 }, () => {
  let home: string;
  let plane: ControlPlane;
  let world: WireWorld;

  before(async () => {
    home = mkdtempSync(join(tmpdir(), 'examples-story-'));
    symlinkSync(kubectl ?? '', join(home, 'kubectl'));
    plane = await startControlPlane({ cluster: {} });
    world = await WireWorld.create(plane);
    for (const resource of [COUNTS, WEB_APPS, ATS, FOOS]) await world.installCrd(resource);
  });
  after(async () => {
    await world.end();
    await plane.close();
    rmSync(home, { recursive: true, force: true });
  });

  let stopDaemon: () => Promise<void>;
  afterEach(async () => {
    await stopDaemon();
    const rest = {
      command: 'kubectl get pods',
      output: ['No resources found in default namespace.'],
    };
    await follow(rest);
  });

  const give = async ({ command }: ConsoleStep) => {
    const shell = new Program('sh', ['-c', `cd ${EXAMPLES}/.. && ${command}`], {
      PATH: [home, process.env['PATH'] ?? ''].join(delimiter),
      HOME: home,
      KUBECONFIG: plane.kubeconfigPath,
    });
    const { stdout, stderr } = await shell.ended();
    return stdout + stderr;
  };

  const follow = async (step: ConsoleStep) => {
    let printed = await give(step);
    if (LOOKS.test(step.command)) {
      const deadline = performance.now() + 30_000;
      while (!isAsShown(step, printed) && performance.now() < deadline) {
        await world.pass(100);
        printed = await give(step);
      }
    }
    if (!isAsShown(step, printed)) {
      assert.equal(printed.trimEnd(), step.output.join('\n'), `$ ${step.command}`);
    }
  };

  const followAll = async (example: string, controllers: readonly string[]) => {
    stopDaemon = world.startDaemon({ controllers });
    const steps = consoleSteps(readFileSync(join(EXAMPLES, example, 'README.md'), 'utf8'));
    assert.ok(steps.length > 5, 'its commands were found');
    for (const step of steps) {
      // No kubelet listens behind a server that is not ours.
      if (step.command.startsWith('kubectl logs') && plane.kind !== 'embedded') continue;
      await follow(step);
    }
  };

  for (const example of ['01-count', '02-webapp', '03-at', '04-foo']) {
    it(`${example} goes as its README says`, () => followAll(example, DEFAULT_CONTROLLERS));
  }

  it('05-pod-count goes as its README says', () =>
    followAll('05-pod-count', [...DEFAULT_CONTROLLERS, 'pod-count']));
});
