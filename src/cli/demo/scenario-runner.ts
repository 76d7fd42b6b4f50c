import { DEPLOYMENTS } from '../../api/builtin.ts';
import { isApiError } from '../../api/api-error.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { groupResourceOf } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import { ScenarioContext, DemoCheckError } from './scenario.ts';
import type { ScenarioDeps, Scenario } from './scenario.ts';
import { holds } from './view.ts';
import { didYouMean } from '../../util/did-you-mean.ts';
import { UsageError } from '../exit-codes.ts';
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

/** A kind that is installed is served within moments; for so long it is asked for, in steps of 50 ms. */
const SERVED_ATTEMPTS = 100;

/** The scenarios, one after another. The first check that is not so ends the runner. */
export class ScenarioRunner {
  readonly #deps: ScenarioRunnerDeps;
  readonly #scenarios: readonly Scenario[];

  constructor(deps: ScenarioRunnerDeps, scenarios: readonly Scenario[]) {
    this.#deps = deps;
    this.#scenarios = scenarios;
  }

  /** Before the daemon comes: without their CRDs its controllers would wait. */
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

  /** Something for the user to run with. */
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

  /** Which kind the server does not know even after a while. */
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

/** False if something that was claimed is not so; that has been told. */
async function succeeds(run: () => Promise<void>): Promise<boolean> {
  try {
    await run();
    return true;
  } catch (error) {
    if (error instanceof DemoCheckError) return false;
    throw error;
  }
}

/** One for each controller, in the order in which they are played. */
export const SCENARIOS: readonly Scenario[] = [
  countScenario,
  webAppScenario,
  atScenario,
  fooScenario,
  podCountScenario,
];

/**
 * The scenarios of the controllers in `only`, in their order; all, if it is empty.
 *
 * @throws {UsageError} on a name that is no controller's
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
