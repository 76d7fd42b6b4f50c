import type { Resource } from '../../api/resource.ts';
import type { Controller } from '../../manager/controller.ts';
import type { OpenTelemetryApi } from '../../util/open-telemetry.ts';
import type { ControllerKit } from '../../manager/run-controllers.ts';
import type { Webhooks } from '../../webhook/webhooks.ts';
import { checkOptions } from '../../util/check-options.ts';
import type { OptionNames } from '../../util/check-options.ts';
import type { Logger } from '../../util/logger.ts';
import type { Completion, UngroupedOption } from '../flags/option.ts';
import type { LogLevel } from '../logs/log-level.ts';
import type { LoggingOptions } from '../logs/logging.ts';

/** Flags of a program or command, by name without leading dashes: `dry-run`. `textOption` and others define them. */
export type Flags = Readonly<Record<Lowercase<string>, UngroupedOption<unknown>>>;

/** Rejects names of flags with capital letters or underscores, such as `dryRun`, with a type error that says why. */
type FlagNames<F extends Flags> = {
  readonly [K in keyof F]: string extends K
    ? unknown
    : K extends `${string}_${string}`
      ? 'flag names have "-" and no "_"'
      : K extends Lowercase<K & string>
        ? unknown
        : 'flag names are lower-case, with "-" between words';
};

/** Parsed values of flags. */
export type FlagValues<F extends Flags> = {
  readonly [K in keyof F]: F[K] extends UngroupedOption<infer T> ? T : never;
};

/**
 * Builds the controller of a name, or several. Called once, before any request is sent. The informers of the kit are
 * those of `--namespaces`, and its controllers have the concurrency of `--concurrent-NAME-syncs`.
 */
export type ControllerBuilder<F extends Flags = Flags> = {
  // A method, because a builder that uses the program's own flags is one for any flags.
  /** Returns the controllers of the kit with the values of the program's own flags. */
  build(kit: ControllerKit, flags: FlagValues<F>): Controller | readonly Controller[];
}['build'];

/** Declares webhooks. Called once, before any request is sent. */
export type WebhooksBuilder<F extends Flags = Flags> = {
  // A method, as for controllers.
  /** Returns the webhooks of the program with the values of its own flags. */
  build(kit: ControllerKit, flags: FlagValues<F>): Webhooks;
}['build'];

/** Controller of a program: either `build` or `load` must be given. */
export interface ProgramController<F extends Flags = Flags> {
  /** The reconciled kind. */
  readonly resource: Resource;
  /**
   * Builds the controller when `run` starts. It may return several controllers, which `--controllers` enables
   * together: with an `objectTimer`, or one for each cluster.
   */
  readonly build?: ControllerBuilder<F>;
  /** Imports the module with the builder when `run` starts, so that `--help` and `version` do not import it. */
  readonly load?: () => Promise<ControllerBuilder<F>>;
  /**
   * Whether `--controllers=*` includes it.
   * @default true
   */
  readonly isOnByDefault?: boolean;
  /**
   * Whether it needs the whole cluster. Then it does not run if `--namespaces` is set.
   * @default true if `resource` is cluster-scoped
   */
  readonly isClusterScoped?: boolean;
}

/** Log, output and signals of the process, for a command. */
export interface CommandContext {
  readonly program: ProgramOptions;
  readonly log: Logger;
  /** Options of `log`, to create another log with a different verbosity. */
  readonly logging: LoggingOptions;
  /** Verbosity of `log`; can change while the process runs. */
  readonly logLevel: LogLevel;
  /** Aborts on SIGTERM, SIGINT and a failed standard output. */
  readonly signal: AbortSignal;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Writes a line of the command's output to standard output. */
  readonly print: (text: string) => void;
  /** Writes a message for the user to standard error, outside the log. */
  readonly warn: (text: string) => void;
  /** Whether standard output has colours: NO_COLOR and FORCE_COLOR override the terminal. */
  readonly colour: boolean;
}

/** Command of a program. */
export interface ProgramCommand<F extends Flags = Flags> {
  readonly name: string;
  /** Line in the list of commands. */
  readonly summary: string;
  /**
   * First paragraph of the command's help.
   * @default the summary
   */
  readonly description?: string;
  /** @default none */
  readonly flags?: F;
  /**
   * Positional arguments as the help shows them: `FILE...`.
   * @default none, positional arguments are rejected
   */
  readonly operands?: string;
  /**
   * Shell completion of the positional arguments.
   * @default none
   */
  readonly operandCompletion?: Completion;
  /**
   * Examples in the help.
   * @default none
   */
  readonly examples?: readonly (readonly [commandLine: string, meaning: string])[];
  /** Runs the command and resolves to the exit code. */
  run(values: FlagValues<F>, context: CommandContext, operands: readonly string[]): Promise<number>;
}

/** Returns `command`. Infers the types of its flags. */
export function programCommand<F extends Flags>(command: ProgramCommand<F>): ProgramCommand {
  return command;
}

/** Options of `runProgram`. */
export interface ProgramOptions<F extends Flags = Flags> {
  /**
   * Lower-case letters, digits and "-". The User-Agent, the Lease, the label `manager` of metrics and the
   * environment variables of flags have this name.
   */
  readonly name: string;
  /** As in `1.2.3`. */
  readonly version: string;
  /**
   * Commit of the build, for `version` and metrics.
   * @default unknown
   */
  readonly revision?: string | undefined;
  /**
   * First paragraph of the help.
   * @default a sentence about controllers
   */
  readonly description?: string | undefined;
  /** By their names in `--controllers`. */
  readonly controllers: Readonly<Record<string, ProgramController<F>>>;
  /**
   * Declaration of webhooks, or a function that declares them with the kit. Every replica serves them, also a standby. A
   * dry run and a single pass do not serve them. `--namespaces` does not limit them: the API server calls them for all
   * namespaces that their webhook configurations select.
   * @default none
   */
  readonly webhooks?: Webhooks | WebhooksBuilder<F> | undefined;
  /**
   * Whether `run` serves the webhooks without `--webhook-bind-address`, and `manifests` prints their manifests.
   * @default true
   */
  readonly webhooksOnByDefault?: boolean | undefined;
  /**
   * Folder of a kustomization, for `manifests` and for the permissions that `check` checks, with a final slash.
   * @default none: there is no command `manifests`
   */
  readonly deploy?: URL | undefined;
  /**
   * Flags of `run` and `check`, in addition to the usual ones. In a test, `flagValues` has their default values.
   * @default none
   */
  readonly flags?: (F & FlagNames<F>) | undefined;
  /** @default none */
  readonly commands?: readonly ProgramCommand[] | undefined;
  /**
   * Creates an OpenTelemetry span for each sync and each of its requests: the module `@opentelemetry/api`.
   * @default none; the flag `--tracing` loads the module
   */
  readonly tracing?: OpenTelemetryApi | undefined;
}

const PROGRAM_OPTIONS: OptionNames<ProgramOptions> = {
  name: true,
  version: true,
  revision: true,
  description: true,
  controllers: true,
  webhooks: true,
  webhooksOnByDefault: true,
  deploy: true,
  flags: true,
  commands: true,
  tracing: true,
};

const COMMAND_OPTIONS: OptionNames<ProgramCommand> = {
  name: true,
  summary: true,
  description: true,
  flags: true,
  operands: true,
  operandCompletion: true,
  examples: true,
  run: true,
};

const CONTROLLER_OPTIONS: OptionNames<ProgramController> = {
  resource: true,
  build: true,
  load: true,
  isOnByDefault: true,
  isClusterScoped: true,
};

/** Name of a program, controller, command or flag. */
const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;

/**
 * Checks the options of a program, which may come from plain JavaScript.
 *
 * @throws {TypeError} on an unknown option, and for a controller without a builder
 * @throws {RangeError} on a malformed name
 */
export function checkProgram(program: ProgramOptions): void {
  checkOptions(program, PROGRAM_OPTIONS, 'runProgram');
  const { controllers, flags = {}, commands = [] } = program;
  for (const each of commands) checkOptions(each, COMMAND_OPTIONS, `command ${each.name}`);
  for (const [name, each] of Object.entries(controllers)) {
    checkOptions(each, CONTROLLER_OPTIONS, `controller ${name}`);
    if (!each.build === !each.load) {
      throw new TypeError(`runProgram: controller ${name}: give either build or load`);
    }
  }
  const names = {
    name: [program.name],
    controllers: Object.keys(controllers),
    flags: Object.keys(flags),
    commands: commands.map(({ name }) => name),
  };
  for (const [option, all] of Object.entries(names)) {
    const bad = all.find((name) => !NAME.test(name));
    if (bad === undefined) continue;
    throw new RangeError(
      `runProgram: ${option}: ${JSON.stringify(bad)} must consist of lower-case letters, digits and single "-" between them`,
    );
  }
  if (names.controllers.length === 0) throw new RangeError('runProgram: controllers is empty');
}

/**
 * Returns the values of a program's own flags as its builders get them: the defaults, except those that are given. For
 * tests.
 */
export function flagValues<F extends Flags>(
  { flags }: Pick<ProgramOptions<F>, 'flags'>,
  given: Partial<FlagValues<F>> = {},
): FlagValues<F> {
  const values = Object.entries<UngroupedOption<unknown>>(flags ?? {}).map(([name, option]) => [
    name,
    Object.hasOwn(given, name) ? given[name as keyof F] : option.parse(option.default),
  ]);
  return Object.freeze(Object.fromEntries(values)) as FlagValues<F>;
}

/** Returns the builders of the controllers `names`, and imports those that are not loaded yet. */
export async function loadBuilders(
  { controllers }: Pick<ProgramOptions, 'controllers'>,
  names: readonly string[],
): Promise<ReadonlyMap<string, ControllerBuilder>> {
  const builders = new Map<string, ControllerBuilder>();
  for (const name of names) {
    const controller = controllers[name];
    const builder = controller?.build ?? (await controller?.load?.());
    if (!builder) throw new RangeError(`Unknown controller "${name}"`);
    builders.set(name, builder);
  }
  return builders;
}

/** Returns whether a controller needs the whole cluster, so that `--namespaces` excludes it. */
export function isClusterScoped({
  resource,
  isClusterScoped: given = !resource.namespaced,
}: Pick<ProgramController, 'resource' | 'isClusterScoped'>): boolean {
  return given;
}

/** Returns the names that `*` includes. */
export function defaultControllers({ controllers }: Pick<ProgramOptions, 'controllers'>): string[] {
  return Object.entries(controllers)
    .filter(([, { isOnByDefault = true }]) => isOnByDefault)
    .map(([name]) => name);
}

/** Returns the prefix of the environment variables of a program: `CRD_CONTROLLER_`. */
export function environmentPrefix({ name }: Pick<ProgramOptions, 'name'>): string {
  return `${name.replaceAll('-', '_').toUpperCase()}_`;
}
