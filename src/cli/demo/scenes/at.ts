import { PODS } from '../../../api/builtin.ts';
import { timestamp } from '../../../api/conditions.ts';
import { ATS } from '../../../api/generated/at.ts';
import type { Act } from '../act.ts';
import type { Scene } from '../scene.ts';
import { namesOf, ownedBy } from '../view.ts';
import type { View } from '../view.ts';

const NAME = 'example-at';
const POD = 'example-at-pod';

/** How far ahead the command is scheduled at least, in milliseconds: time enough to see it wait. */
const AHEAD_MS = 2000;

/** A command at a time, once. */
export const atScene: Scene = {
  name: 'at',
  kinds: [ATS],
  sample: 'examples/03-at',
  play: async (act) => {
    const { kubectl, clock } = act;
    act.heading('Schedule a command');
    let schedule = '';
    await kubectl.applyChanged('examples/03-at/at.yaml', /2019.*Z/, () => {
      schedule = timestamp(Math.ceil((clock.now() + AHEAD_MS) / 1000) * 1000);
      return schedule;
    });
    await act.sight((now) => (now(ATS).get(NAME)?.status?.phase ? undefined : 'it has no phase'));
    await kubectl.get(ATS, PODS);
    const view = await act.reached('The command succeeds and the phase is DONE', (now) => {
      const { phase, conditions } = now(ATS).get(NAME)?.status ?? {};
      const succeeded = conditions?.find(({ type }) => type === 'Succeeded');
      return phase === 'DONE' && succeeded?.status === 'True'
        ? undefined
        : `the phase is ${phase ?? 'unset'}`;
    });
    await kubectl.get(ATS, PODS);
    const log = await kubectl.logs(POD);
    act.claim(
      'The command prints YAY',
      log === 'YAY\n' ? undefined : `it prints ${JSON.stringify(log)}`,
    );
    act.claim('The phases are PENDING, RUNNING, DONE, in this order', wrongPhases(act));
    act.claim(
      'The At owns one Pod, which was not created before the scheduled time',
      early(view, schedule),
    );

    act.heading('Delete the Pod of a finished At');
    await kubectl.delete(PODS, POD);
    await act.reached('The phase stays DONE and no new Pod is created', (now) => {
      const [pod] = now(PODS).values();
      if (pod) return `${pod.metadata.name} exists`;
      const phase = now(ATS).get(NAME)?.status?.phase;
      return phase === 'DONE' ? undefined : `the phase is ${phase}`;
    });
    await act.rest();
    await kubectl.delete(ATS, NAME);
    await act.reached('The At is deleted', (now) => {
      const left = [...now(ATS).values(), ...now(PODS).values()];
      return left.length === 0 ? undefined : `these still exist: ${namesOf(left)}`;
    });
  },
};

function wrongPhases({ stage }: Act): string | undefined {
  const phases: string[] = [];
  for (const line of stage.linesOf(`at/${NAME}`)) {
    const [phase] = /^[A-Z]+(?=:)/.exec(line) ?? [];
    if (phase !== undefined && phase !== phases.at(-1)) phases.push(phase);
  }
  return phases.join() === 'PENDING,RUNNING,DONE' ? undefined : `they are ${phases.join(', ')}`;
}

function early(view: View, schedule: string): string | undefined {
  const at = view(ATS).get(NAME);
  const [pod, ...others] = at ? ownedBy(view(PODS), at) : [];
  if (!pod || others.length > 0) return `it has ${pod ? others.length + 1 : 0} Pods`;
  const { creationTimestamp } = pod.metadata;
  return Date.parse(creationTimestamp) >= Date.parse(schedule)
    ? undefined
    : `the Pod was created at ${creationTimestamp}`;
}
