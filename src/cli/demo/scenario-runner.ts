import { DEPLOYMENTS } from '../../api/builtin.ts';
import { isApiError } from '../../api/api-error.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { groupResourceOf } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import { ScenarioContext, DemoCheckError } from './scenario.ts';
import type { ScenarioDeps, Scenario } from './scenario.ts';
import { holds } from './observer.ts';
import { didYouMean } from '../../util/did-you-mean.ts';
import { UsageError } from '../common/errors.ts';
import { goQuote } from '../../util/go-quote.ts';
import { atScenario } from './scenarios/at.ts';
import { countScenario } from './scenarios/count.ts';
import { fooScenario } from './scenarios/foo.ts';
import { podCountScenario } from './scenarios/pod-count.ts';
import { webAppScenario } from './scenarios/webapp.ts';

/** Dependencies of `ScenarioRunner`. */
export interface ScenarioRunnerDeps extends ScenarioDeps {
  readonly client: Pick<Client, 'list'>;
}

/** Maximum attempts, 50 ms apart, until the server serves an installed kind. */
const SERVED_ATTEMPTS = 100;

/** Runs the scenarios in order. The first failed check ends the run. */
export class ScenarioRunner {
  readonly #deps: ScenarioRunnerDeps;
  readonly #scenarios: readonly Scenario[];

  constructor(deps: ScenarioRunnerDeps, scenarios: readonly Scenario[]) {
    this.#deps = deps;
    this.#scenarios = scenarios;
  }

  /** Installs the CRDs before the program starts, because its controllers wait for them. */
  installKinds(signal: AbortSignal): Promise<boolean> {
    return succeeds(async () => {
      const kinds = this.#scenarios.flatMap((scenario) => scenario.kinds);
      if (kinds.length === 0) return;
      const context = new ScenarioContext(this.#deps, signal);
      context.heading(kinds.length === 1 ? 'Install a CRD' : 'Install the CRDs');
      const [first, ...others] = kinds.map((kind) => `crds/${groupResourceOf(kind)}.yaml`);
      await context.kubectl.apply(first === undefined || others.length > 0 ? 'crds' : first);
      const missing = await this.#notServed(kinds, signal);
      const names = kinds.map(({ kind }) => `${kind}s`).join(', ');
      context.check(`The API server serves ${names}`, missing && `${missing} is not served`);
    });
  }

  run(signal: AbortSignal): Promise<boolean> {
    return succeeds(async () => {
      for (const scenario of this.#scenarios)
        await scenario.run(new ScenarioContext(this.#deps, signal));
    });
  }

  /** Applies the samples again, for the user. */
  applySamples(signal: AbortSignal): Promise<boolean> {
    return succeeds(async () => {
      const context = new ScenarioContext(this.#deps, signal);
      context.heading('Apply the examples again');
      const objects = await context.kubectl.apply(...this.#scenarios.map(({ sample }) => sample));
      await context.checkEventually('All objects are ready', (view) => {
        for (const { resource, name } of objects) {
          const object: KubernetesObject | undefined = view(resource).get(name);
          const type = resource.kind === DEPLOYMENTS.kind ? 'Available' : 'Ready';
          if (!object || !holds(object, type)) return `${name} is not ready`;
        }
        return undefined;
      });
    });
  }

  /** Returns a kind that the server does not serve in time. */
  async #notServed(kinds: readonly Resource[], signal: AbortSignal): Promise<string | undefined> {
    const { client, clock } = this.#deps;
    let attempts = 0;
    for (const kind of kinds) {
      while (!(await isServed(client, kind, signal))) {
        if (++attempts >= SERVED_ATTEMPTS) return kind.kind;
        await clock.sleep(50, signal);
        signal.throwIfAborted();
      }
    }
    return undefined;
  }
}

async function isServed(
  client: Pick<Client, 'list'>,
  kind: Resource,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await client.list(kind, { limit: 1, signal });
    return true;
  } catch (error) {
    if (isApiError(error, 'notFound')) return false;
    throw error;
  }
}

/** Returns false if a check failed. */
async function succeeds(run: () => Promise<void>): Promise<boolean> {
  try {
    await run();
    return true;
  } catch (error) {
    if (error instanceof DemoCheckError) return false;
    throw error;
  }
}

/** One scenario for each controller, in the order in which they run. */
export const SCENARIOS: readonly Scenario[] = [
  countScenario,
  webAppScenario,
  atScenario,
  fooScenario,
  podCountScenario,
];

/**
 * Returns the scenarios of the controllers in `only`, in their order; all, if it is empty.
 *
 * @throws {UsageError} on an unknown controller
 */
export function selectScenarios(only: readonly string[]): readonly Scenario[] {
  const names = SCENARIOS.map(({ name }) => name);
  const unknown = only.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new UsageError(
      `unknown controller ${goQuote(unknown)} in --only: must be one of ${names.join(', ')}${didYouMean(unknown, names)}`,
    );
  }
  return only.length === 0 ? SCENARIOS : SCENARIOS.filter(({ name }) => only.includes(name));
}
