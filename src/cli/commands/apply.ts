import { applyManifests } from '../../client/apply/apply.ts';
import type { ApplyResult } from '../../client/apply/apply-result.ts';
import type { Client } from '../../client/client.ts';
import { connectCluster } from '../../client/cluster-connection.ts';
import type { Manifest } from '../../client/apply/manifest.ts';
import {
  describePlace,
  describeProblem,
  ManifestError,
  parseManifests,
} from '../../client/apply/manifest.ts';
import { readManifests } from '../../client/apply/manifest-files.ts';
import { clusterAccess, loadCluster, namespaceName, userAgent } from '../program/cluster-access.ts';
import type { CommandContext } from '../program/program.ts';
import { EXIT_FAILURE, EXIT_OK, EXIT_USAGE, UsageError } from '../common/errors.ts';
import { logText } from '../logs/log-value.ts';
import type { Clock } from '../../util/clock.ts';
import type { OptionValues } from '../flags/option.ts';
import type { APPLY_OPTIONS } from '../flags/options.ts';

type Flags = OptionValues<typeof APPLY_OPTIONS>;

const VALIDATION = { strict: 'Strict', warn: 'Warn', ignore: 'Ignore' } as const;

/**
 * Applies the manifests of the flags to a cluster and prints a line for each object, as kubectl does. The
 * exit code is 1 if an object was rejected. It is 2 if a file cannot be read; then nothing was sent.
 *
 * @throws {UsageError} on invalid flags
 */
export async function apply(flags: Flags, context: CommandContext): Promise<number> {
  if (flags.filename.length === 0) {
    throw new UsageError('apply requires -f: a file, a folder, a URL, or - for standard input');
  }
  if (flags['field-manager'] === '') {
    throw new UsageError('invalid value "" for --field-manager: must not be empty');
  }
  const namespace = flags.namespace && namespaceName(flags.namespace, '--namespace');
  const access = clusterAccess(flags);
  const manifests = await manifestsOf(flags, context);
  if (!manifests) return EXIT_USAGE;
  const cluster = await loadCluster(access, context);
  const connection = connectCluster(cluster, {
    log: context.log.named('client'),
    userAgent: userAgent(context.program),
    keepManagedFields: true,
    onWarning: (warning) => warnUser(context, 'Warning', warning),
  });
  try {
    return await applyTo(connection.client, manifests, flags, {
      ...context,
      namespace: namespace || cluster.namespace,
    });
  } finally {
    await connection.close();
  }
}

/** Returns undefined after printing why the manifests cannot be read. */
export async function manifestsOf(
  { filename, recursive }: Pick<Flags, 'filename' | 'recursive'>,
  context: Pick<CommandContext, 'warn' | 'environment' | 'signal'>,
): Promise<Manifest[] | undefined> {
  try {
    const texts = await readManifests(filename, {
      recursive,
      environment: context.environment,
      signal: context.signal,
      onSkipped: (file, reason) => warnUser(context, 'Note', `skipped ${file}: ${reason}`),
    });
    const manifests = parseManifests(texts);
    if (manifests.length > 0) return manifests;
    throw new ManifestError([{ message: `${filename.join(', ')}: no objects to apply` }]);
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error;
    for (const problem of error.problems) warnUser(context, 'Error', describeProblem(problem));
    return undefined;
  }
}

/** Context of `applyTo`. */
export interface ApplyContext extends Pick<CommandContext, 'print' | 'warn' | 'signal'> {
  /** @default systemClock */
  readonly clock?: Clock;
  /** Namespace of objects that name none. */
  readonly namespace: string;
}

export async function applyTo(
  client: Client,
  manifests: readonly Manifest[],
  flags: Pick<
    Flags,
    'field-manager' | 'force-conflicts' | 'dry-run' | 'validate' | 'namespace' | 'timeout'
  >,
  context: ApplyContext,
): Promise<number> {
  const isDryRun = flags['dry-run'] === 'server';
  const results = applyManifests(client, manifests, {
    fieldManager: flags['field-manager'],
    force: flags['force-conflicts'],
    dryRun: isDryRun,
    fieldValidation: VALIDATION[flags.validate],
    namespace: context.namespace,
    enforceNamespace: flags.namespace !== '',
    servedTimeoutMs: flags.timeout,
    clock: context.clock,
    signal: context.signal,
  });
  const count = { applied: 0, rejected: 0 };
  try {
    for await (const result of results) {
      count[result.kind]++;
      printResult(result, context, isDryRun);
    }
  } catch (error) {
    const left = manifests.length - count.applied - count.rejected;
    warnUser(context, 'Stopped', `${left} of ${manifests.length} objects were not applied`);
    throw error;
  }
  if (count.rejected === 0) return EXIT_OK;
  const objects = manifests.length === 1 ? 'object was' : 'objects were';
  warnUser(context, 'Error', `${count.rejected} of ${manifests.length} ${objects} rejected`);
  return EXIT_FAILURE;
}

function printResult(result: ApplyResult, context: ApplyContext, isDryRun: boolean): void {
  const { place, object } = result.manifest;
  switch (result.kind) {
    case 'applied': {
      const what = result.change === 'unknown' ? 'serverside-applied' : result.change;
      context.print(`${nameOf(result)} ${what}${isDryRun ? ' (server dry run)' : ''}`);
      break;
    }
    case 'rejected': {
      const { rejection } = result;
      const next =
        rejection.reason === 'conflict'
          ? '. Omit the fields, or set --force-conflicts to take them over'
          : '';
      const subject = result.resource ? nameOf(result) : `${object.kind}/${object.metadata.name}`;
      warnUser(
        context,
        'Error',
        `${describePlace(place)}: ${subject}: ${rejection.message}${next}`,
      );
      break;
    }
  }
}

/** Returns the name that kubectl prints: `count.demo.mark8s.io/test-count`. */
function nameOf({ resource, manifest: { object } }: ApplyResult): string {
  const group = resource?.group ? `.${resource.group}` : '';
  return `${object.kind.toLowerCase()}${group}/${object.metadata.name}`;
}

/** Replaces control characters, because the text can contain names and messages of others. */
function warnUser(context: Pick<CommandContext, 'warn'>, word: string, text: string): void {
  context.warn(`${word}: ${logText(text).replaceAll(/[^\P{Cc}\n]/gu, '\uFFFD')}`);
}
