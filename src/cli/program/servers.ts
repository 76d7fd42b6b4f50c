import type { Client } from '../../client/client.ts';
import { serverVersion } from '../../client/discovery.ts';
import { programPages, readinessChecks } from '../../manager/program-pages.ts';
import type { ControllerProgram } from '../../manager/program-pages.ts';
import type { SyncHistory } from '../../manager/sync-history.ts';
import type { MetricsText } from '../../metrics/registry.ts';
import { reportPage } from '../../serving/debug-pages.ts';
import { clockSkewCheck, EventLoopMonitor } from '../../serving/health-checks.ts';
import type { HealthCheck } from '../../serving/health-checks.ts';
import { newProfiling } from '../../serving/profiling.ts';
import type { HttpServerRoutes } from '../../serving/routes.ts';
import type { WithDefaults } from '../../util/check-options.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { redactText } from '../../util/redact.ts';
import type { Runnable } from '../../util/runnable.ts';
import { installCommand, ownCommand } from '../common/own-command.ts';
import type { LogLevel } from '../logs/log-level.ts';
import { debugFlags, endpoints } from './endpoints.ts';
import type { EndpointRoutes, EndpointsConfig, SecureServing } from './endpoints.ts';
import type { ProgramOptions } from './program.ts';

/** Options of `programServers`. */
export interface ServerOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  /** Undefined without debug pages. */
  readonly history: SyncHistory | undefined;
  /** Returns the metrics; without it, none are served. */
  readonly expose?: (() => Promise<MetricsText>) | undefined;
  /** Changed by `/debug/flags/v`. */
  readonly logLevel?: LogLevel | undefined;
  /**
   * Further debug pages and settings.
   * @default none
   */
  readonly debugRoutes?: WithDefaults<Pick<HttpServerRoutes, 'pages' | 'settings'>> | undefined;
  /**
   * Environment of the process, for commands that the user can repeat.
   * @default none
   */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Required if an endpoint needs TLS and authorization. */
  readonly secure?: SecureServing | undefined;
}

/** Returns the endpoints of the flags, and what they need to run. */
export function programServers(
  { name, version, deploy }: Pick<ProgramOptions, 'name' | 'version' | 'deploy'>,
  config: EndpointsConfig,
  options: ServerOptions,
  running: ControllerProgram,
): Runnable[] {
  const { client, clock, log, history, expose, logLevel, debugRoutes, secure } = options;
  const { environment = {} } = options;
  const { profilerAddress } = config;
  const eventLoop = new EventLoopMonitor(clock);
  const profiling =
    profilerAddress === undefined
      ? undefined
      : newProfiling({ clock, log: log.named('profiler') }, profilerAddress);
  const metrics = expose && { metrics: expose };
  const about =
    history &&
    programPages(running, {
      clock,
      history,
      name,
      version: `v${version}`,
      installCommand: deploy && installCommand(name, 'crds', environment),
      checkCommand: ownCommand(name, ['check'], environment),
      redact: redactText,
    });
  const routes: EndpointRoutes = {
    health: {
      livez: [eventLoop.check, clockSkewCheck(clock), ...leaderElectionChecks(running)],
      readyz: readinessChecks(running, clock),
    },
    metrics,
    debug: about && {
      pages: new Map([...about.pages, ...reportPage(redactText), ...(debugRoutes?.pages ?? [])]),
      // `top` reads the metrics from the same address.
      ...metrics,
      settings: new Map([
        ...(logLevel ? debugFlags(logLevel) : []),
        ...(debugRoutes?.settings ?? []),
      ]),
    },
    profiling: profiling && { downloads: profiling.downloads },
  };
  return [
    ...endpoints({ clock, log, routes, secure }, config),
    ...(config.healthProbeBindAddress ? [eventLoop] : []),
    ...(about && config.debugBindAddress ? [about.recorder] : []),
    ...(profiling ? [profiling.profiler] : []),
    logServerVersion(client, log),
  ];
}

/** Logs the version of the API server. Failures are logged elsewhere. */
function logServerVersion(client: Client, log: Logger): Runnable {
  return {
    name: 'server-version',
    run: async (signal) => {
      if (!log.v(1).enabled) return;
      try {
        const { gitVersion, platform } = await serverVersion(client, signal);
        log.v(1).info('Read the version of the API server', { version: gitVersion, platform });
      } catch (error) {
        log.v(4).info('Could not read the version of the API server', { err: error });
      }
    },
  };
}

/** Fails for a leader that neither renewed its lease nor exited. A standby is healthy. */
function leaderElectionChecks({ leadership }: ControllerProgram): HealthCheck[] {
  return leadership ? [{ name: 'leaderElection', check: () => leadership.health() }] : [];
}
