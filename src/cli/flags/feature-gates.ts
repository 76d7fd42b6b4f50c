import { didYouMean } from '../../util/did-you-mean.ts';
import { parseGoBoolean } from './go-values.ts';
import { goQuote } from '../../util/go-quote.ts';
import type { Option } from './option.ts';

/** Feature that can be disabled or enabled until it is stable. */
interface FeatureGate {
  readonly stage: 'ALPHA' | 'BETA';
  readonly default: boolean;
  /** Text for `--help`. */
  readonly help: string;
}

/** Feature gates by their Kubernetes names. */
const FEATURE_GATES = {
  WatchListClient: {
    stage: 'BETA',
    default: true,
    help: 'fill caches by a watch instead of lists, if the server supports it',
  },
} as const satisfies Record<string, FeatureGate>;

export type FeatureName = keyof typeof FEATURE_GATES;

/** Enabled features. */
export type FeatureGates = Readonly<Record<FeatureName, boolean>>;

export const FEATURE_NAMES: readonly FeatureName[] = ['WatchListClient'];

/** Returns the option for `A=true,B=false`. `KUBE_FEATURE_A=true` sets a gate too, as in Go programs. */
export function featureGatesOption(
  about: Pick<Option<FeatureGates>, 'group'>,
): Option<FeatureGates> {
  const gates = FEATURE_NAMES.map((name) => {
    const { stage, default: initial, help } = FEATURE_GATES[name];
    return `${name} (${stage}, default ${initial}): ${help}`;
  });
  return {
    ...about,
    help: `Feature gates, as in Name=true. ${gates.join('; ')}`,
    default: '',
    type: 'switches',
    parse: parseFeatureGates,
    environment: FEATURE_NAMES.map((name) => ({
      variable: `KUBE_FEATURE_${name}`,
      read: (text) => `${name}=${text}`,
    })),
    completion: FEATURE_NAMES.flatMap((name) => [`${name}=true`, `${name}=false`]),
  };
}

/** The last setting of a gate wins. */
function parseFeatureGates(text: string): FeatureGates {
  const gates: Record<FeatureName, boolean> = {
    WatchListClient: FEATURE_GATES.WatchListClient.default,
  };
  for (const pair of text.split(',').map((each) => each.trim())) {
    if (pair === '') continue;
    const [name = '', value = ''] = pair.split(/=(.*)/s);
    const known = FEATURE_NAMES.find((each) => each === name);
    if (known === undefined) {
      throw new SyntaxError(
        `unknown feature gate ${goQuote(name)}${didYouMean(name, FEATURE_NAMES)}`,
      );
    }
    const isOn = parseGoBoolean(value);
    if (isOn === undefined) throw new SyntaxError(`${name} must be true or false`);
    gates[known] = isOn;
  }
  return gates;
}
