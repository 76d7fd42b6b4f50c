import { PODS } from '../../../api/builtin.ts';
import { timestamp } from '../../../api/conditions.ts';
import { ATS } from '../../../api/generated/at.ts';
import type { ScenarioContext, Scenario } from '../scenario.ts';
import { namesOf, ownedBy } from '../observer.ts';
import type { View } from '../observer.ts';

const NAME = 'example-at';
const POD = 'example-at-pod';

/** Least time between now and the scheduled time, in milliseconds: long enough to see the At wait. */
const AHEAD_MS = 2000;

/** Runs a command once, at a scheduled time. */
export const atScenario: Scenario = {
  name: 'at',
  kinds: [ATS],
  sample: 'examples/03-at',
  run: async (context) => {
    const { kubectl, clock } = context;
    context.heading('Schedule a command');
    let schedule = '';
    await kubectl.applyChanged('examples/03-at/at.yaml', /2019.*Z/, () => {
      schedule = timestamp(Math.ceil((clock.now() + AHEAD_MS) / 1000) * 1000);
      return schedule;
    });
    await context.waitFor((now) =>
      now(ATS).get(NAME)?.status?.phase ? undefined : 'it has no phase',
    );
    await kubectl.get(ATS, PODS);
    const view = await context.checkEventually(
      'The command succeeds and the phase is DONE',
      (now) => {
        const { phase, conditions } = now(ATS).get(NAME)?.status ?? {};
        const succeeded = conditions?.find(({ type }) => type === 'Succeeded');
        return phase === 'DONE' && succeeded?.status === 'True'
          ? undefined
          : `the phase is ${phase ?? 'unset'}`;
      },
    );
    await kubectl.get(ATS, PODS);
    const log = await kubectl.logs(POD);
    context.check(
      'The command prints YAY',
      log === 'YAY\n' ? undefined : `it prints ${JSON.stringify(log)}`,
    );
    context.check('The phases are PENDING, RUNNING, DONE, in this order', wrongPhases(context));
    context.check(
      'The At owns one Pod, which was not created before the scheduled time',
      createdTooEarly(view, schedule),
    );

    context.heading('Delete the Pod of a finished At');
    await kubectl.delete(PODS, POD);
    await context.checkEventually('The phase stays DONE and no new Pod is created', (now) => {
      const [pod] = now(PODS).values();
      if (pod) return `${pod.metadata.name} exists`;
      const phase = now(ATS).get(NAME)?.status?.phase;
      return phase === 'DONE' ? undefined : `the phase is ${phase}`;
    });
    await context.checkSteadyState();
    await kubectl.delete(ATS, NAME);
    await context.checkEventually('The At is deleted', (now) => {
      const left = [...now(ATS).values(), ...now(PODS).values()];
      return left.length === 0 ? undefined : `these still exist: ${namesOf(left)}`;
    });
  },
};

function wrongPhases({ observer }: ScenarioContext): string | undefined {
  const phases: string[] = [];
  for (const line of observer.linesOf(`at/${NAME}`)) {
    const [phase] = /^[A-Z]+(?=:)/.exec(line) ?? [];
    if (phase !== undefined && phase !== phases.at(-1)) phases.push(phase);
  }
  return phases.join() === 'PENDING,RUNNING,DONE' ? undefined : `they are ${phases.join(', ')}`;
}

function createdTooEarly(view: View, schedule: string): string | undefined {
  const at = view(ATS).get(NAME);
  const [pod, ...others] = at ? ownedBy(view(PODS), at) : [];
  if (!pod || others.length > 0) return `it has ${pod ? others.length + 1 : 0} Pods`;
  const { creationTimestamp } = pod.metadata;
  return Date.parse(creationTimestamp) >= Date.parse(schedule)
    ? undefined
    : `the Pod was created at ${creationTimestamp}`;
}
