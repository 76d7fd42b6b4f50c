import { isIP } from 'node:net';
import { parseLabelSelector } from '../../api/label-selector.ts';
import { parseBindAddress } from '../../serving/bind-address.ts';
import { goQuote } from '../../util/go-quote.ts';
import type { VModulePattern } from '../logs/log-level.ts';
import { parseVModule } from '../logs/log-level.ts';
import type { OptionNames } from '../../util/check-options.ts';
import { checkOptions } from '../../util/check-options.ts';
import { didYouMean } from '../../util/did-you-mean.ts';

/** Headings of the flags, in their order. */
export const GROUPS = [
  'Cluster access',
  'Apply',
  'Installation',
  'Controllers',
  'Leader election',
  'API client',
  'Server',
  'Files',
  'Endpoints',
  'Process',
  'Logging',
  'Other',
] as const;

/** Definition of a flag, used by parsing, help, documentation and the log. */
export interface Option<T> {
  readonly group: (typeof GROUPS)[number];
  /** Text for `--help`: one or two sentences without a final period. */
  readonly help: string;
  /** Default value in the syntax of the flag. */
  readonly default: string;
  /**
   * Parses the value.
   *
   * @throws {SyntaxError} with what was expected, without flag and value
   */
  readonly parse: (text: string) => T;
  /** Type in a configuration file, and how several settings are combined. */
  readonly type: ValueType;
  readonly aliases?: readonly string[];
  /** Environment variables that set it, in addition to `CRD_CONTROLLER_<NAME>`. */
  readonly environment?: readonly (string | EnvironmentSource)[];
  /** Whether it cannot be set by the environment and the configuration file. */
  readonly flagOnly?: boolean;
  /** Whether it is omitted from help and documentation. */
  readonly hidden?: boolean;
  /**
   * Shell completion of its value.
   * @default none
   */
  readonly completion?: Completion;
}

/**
 * The setting with the highest precedence wins. For `switches` (`A=true,B=false`) this applies to each
 * switch.
 */
export type ValueType = 'text' | 'boolean' | 'integer' | 'list' | 'switches';

/** Variable whose value has another syntax than the flag. */
export interface EnvironmentSource {
  readonly variable: string;
  /** Converts the value to the syntax of the flag. */
  readonly read: (text: string) => string;
}

/** Words, names of controllers, or paths. */
export type Completion = readonly string[] | 'controllers' | 'file' | 'folder';

/** Options by flag name. */
export type Options = Readonly<Record<string, Option<unknown>>>;

/** Parsed values of the options `O`. */
export type OptionValues<O extends Options> = {
  readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never;
};

/** Option without its heading. */
export type UngroupedOption<T> = Omit<Option<T>, 'group'>;

type Grouped<O> = {
  readonly [K in keyof O]: O[K] extends UngroupedOption<infer T> ? Option<T> : never;
};

/** Returns the options under a heading, unless they have one; `shared` fields apply to all others. */
export function optionGroup<O extends Readonly<Record<string, UngroupedOption<unknown>>>>(
  group: Option<unknown>['group'],
  options: O,
  shared: Pick<Option<unknown>, 'flagOnly'> = {},
): Grouped<O> {
  const entries = Object.entries(options);
  const grouped = entries.map(([name, option]) => [
    name,
    'group' in option ? option : { ...option, ...shared, group },
  ]);
  return Object.fromEntries(grouped) as Grouped<O>;
}

/** Fields that all types of options share. */
interface OptionFields<D> extends Pick<
  Option<unknown>,
  'help' | 'aliases' | 'environment' | 'flagOnly' | 'hidden' | 'completion'
> {
  /** @default false, or an empty text or list */
  readonly default?: D;
}

const FIELDS: OptionNames<OptionFields<unknown>> = {
  help: true,
  aliases: true,
  environment: true,
  flagOnly: true,
  hidden: true,
  completion: true,
  default: true,
};

/** @throws {TypeError} if `about` has an unknown field */
function checked<A extends OptionFields<unknown>>(about: A): A {
  checkOptions<OptionFields<unknown>>(about, FIELDS, 'flag');
  return about;
}

/** Returns the constructor of text options whose values `parse` reads. */
function textOptionOf<T>(parse: (text: string) => T) {
  return (about: OptionFields<string>): UngroupedOption<T> => ({
    default: '',
    ...checked(about),
    type: 'text',
    parse,
  });
}

/** Any text. */
export const textOption = textOptionOf((text) => text);

/** `true` or `false`, as Go spells them; the flag alone is true. */
export function booleanOption(about: OptionFields<boolean>): UngroupedOption<boolean> {
  return {
    ...checked(about),
    type: 'boolean',
    default: String(about.default ?? false),
    parse: (text) => {
      const value = parseGoBoolean(text);
      if (value === undefined) throw new SyntaxError('must be true or false');
      return value;
    },
  };
}

/** `a,b`, or the flag repeated. */
export function listOption(about: OptionFields<string>): UngroupedOption<readonly string[]> {
  return {
    default: '',
    ...checked(about),
    type: 'list',
    parse: (text) =>
      text
        .split(',')
        .map((element) => element.trim())
        .filter((element) => element !== ''),
  };
}

/** One of `choices`. */
export function choiceOption<const C extends string>(
  about: OptionFields<C> & { readonly choices: readonly C[]; readonly default: C },
): UngroupedOption<C> {
  const { choices, ...rest } = about;
  return {
    completion: choices,
    ...checked(rest),
    type: 'text',
    parse: (text) => {
      const choice = choices.find((each) => each === text);
      if (choice === undefined) {
        throw new SyntaxError(`must be ${choices.map((each) => goQuote(each)).join(' or ')}`);
      }
      return choice;
    },
  };
}

/** Any of `choices`, each once, in their order. */
export function choicesOption<const C extends string>(
  about: OptionFields<never> & { readonly choices: readonly C[] },
): UngroupedOption<readonly C[]> {
  const { choices, ...rest } = about;
  const list = listOption(rest);
  return {
    completion: choices,
    ...list,
    parse: (text) => {
      const chosen = new Set<string>(list.parse(text));
      for (const word of chosen) {
        if (!choices.some((choice) => choice === word)) {
          throw new SyntaxError(
            `must be one of ${choices.map((each) => goQuote(each)).join(', ')}`,
          );
        }
      }
      return choices.filter((choice) => chosen.has(choice));
    },
  };
}

/** A whole number from `min` to `max`. */
export function integerOption(
  about: OptionFields<number> & {
    readonly default: number;
    readonly min: number;
    readonly max?: number;
  },
): UngroupedOption<number> {
  const { min, max = Number.MAX_SAFE_INTEGER, ...rest } = about;
  return {
    ...checked(rest),
    type: 'integer',
    default: String(about.default),
    parse: (text) => {
      const value = /^[-+]?\d+$/.test(text) ? Number(text) : Number.NaN;
      if (!(value >= min && value <= max)) {
        throw new SyntaxError(
          max === Number.MAX_SAFE_INTEGER
            ? `must be a whole number, ${min} or more`
            : `must be a whole number from ${min} to ${max}`,
        );
      }
      return value;
    },
  };
}

/** Go duration; the value is in milliseconds, 0 or more. */
export const durationOption = textOptionOf((text) => {
  const ms = parseGoDuration(text);
  if (ms < 0) throw new SyntaxError('must not be negative');
  return ms;
});

/** `:8081`, `127.0.0.1:8081` or `[::1]:8081`; undefined for `0`, which disables the server. */
export const bindAddressOption = textOptionOf((text) => {
  if (text === '0' || text === '') return undefined;
  try {
    parseBindAddress(text);
  } catch {
    throw new SyntaxError('must be HOST:PORT or :PORT, or 0 to disable it');
  }
  return text;
});

export const vmoduleOption = textOptionOf<readonly VModulePattern[]>(parseVModule);

/** A version of an API, as Kubernetes orders them: `v1`, `v1beta2`. */
export const apiVersionOption = textOptionOf((text) => {
  if (!/^v\d{1,9}((alpha|beta)\d{1,9})?$/.test(text)) {
    throw new SyntaxError('must be a version of a Kubernetes API, as in v1, v1beta1 or v1alpha1');
  }
  return text;
});

/** IP address or host name. A malformed address is not accepted as a host name. */
export const hostOption = textOptionOf((text) => {
  const isName = /^(?=.*[a-z])[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/i.test(text);
  if (isIP(text) === 0 && !isName) {
    throw new SyntaxError('must be an IP address or a host name, as in 127.0.0.1 or localhost');
  }
  return text;
});

/** `app=web,tier!=db` */
export const labelSelectorOption = textOptionOf((text) => {
  parseLabelSelector(text);
  return text;
});

const MS_PER_UNIT: ReadonlyMap<string, number> = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['μs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/** Maximum of Go's int64 nanoseconds. */
const LONGEST_MS = 2 ** 63 / 1e6;

/**
 * Parses a Go duration and returns milliseconds: `1h30m`, `500ms`, `-1.5s`. As in Go, a number requires a
 * unit unless it is `0`.
 *
 * @throws {SyntaxError} with the reason
 */
function parseGoDuration(text: string): number {
  const sign = text.startsWith('-') ? -1 : 1;
  const magnitude = /^[-+]/.test(text) ? text.slice(1) : text;
  if (magnitude === '0') return 0;
  if (/^(\d+\.?\d*|\.\d+)$/.test(magnitude)) {
    throw new SyntaxError(`missing unit in duration "${text}": did you mean "${text}s"?`);
  }
  const term = /(\d+\.?\d*|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/y;
  let total = 0;
  do {
    const match = term.exec(magnitude);
    const unit = MS_PER_UNIT.get(match?.[2] ?? '');
    if (unit === undefined) {
      throw new SyntaxError(`invalid duration "${text}": write it as in "1h30m" or "500ms"`);
    }
    total += Number(match?.[1]) * unit;
  } while (term.lastIndex < magnitude.length);
  if (total >= LONGEST_MS) throw new SyntaxError(`invalid duration "${text}": too long`);
  return total === 0 ? 0 : sign * total;
}

/** Values that Go's `strconv.ParseBool` accepts. */
const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const FALSE: ReadonlySet<string> = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

/** Parses a Go boolean; undefined if `text` is invalid. */
export function parseGoBoolean(text: string): boolean | undefined {
  if (TRUE.has(text)) return true;
  return FALSE.has(text) ? false : undefined;
}

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

/** Enabled features. */
export type FeatureGates = Readonly<Record<keyof typeof FEATURE_GATES, boolean>>;

const FEATURE_NAMES = Object.keys(FEATURE_GATES) as readonly (keyof FeatureGates)[];

/** Returns the option for `A=true,B=false`. `KUBE_FEATURE_A=true` sets a gate too, as in Go programs. */
export function featureGatesOption(): UngroupedOption<FeatureGates> {
  const gates = FEATURE_NAMES.map((name) => {
    const { stage, default: initial, help } = FEATURE_GATES[name];
    return `${name} (${stage}, default ${initial}): ${help}`;
  });
  return {
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
  const gates: { -readonly [K in keyof FeatureGates]: boolean } = {
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
