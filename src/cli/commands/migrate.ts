import { createHash } from 'node:crypto';
import { isApiError, isExpired } from '../../api/api-error.ts';
import type { ApiError } from '../../api/api-error.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../api/builtin.ts';
import type { CustomResourceDefinition } from '../../api/builtin.ts';
import type { ObjectMeta } from '../../api/object.ts';
import { objectKey } from '../../api/object-key.ts';
import { missingRule, parseForbidden } from '../../api/permission.ts';
import { apiVersionOf, groupResourceOf } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import { isFatal } from '../../client/apply/apply-result.ts';
import type { Client } from '../../client/client.ts';
import { connectCluster } from '../../client/cluster-connection.ts';
import { RestMapper } from '../../client/rest-mapper.ts';
import { retryOnConflict } from '../../client/retry-on-conflict.ts';
import { systemClock } from '../../util/clock.ts';
import type { Clock } from '../../util/clock.ts';
import { isRecord } from '../../util/values.ts';
import { clusterAccess, loadCluster, userAgent } from '../program/cluster-access.ts';
import { EXIT_FAILURE, EXIT_OK, UsageError } from '../common/errors.ts';
import type { OptionValues } from '../flags/option.ts';
import type { MIGRATE_OPTIONS } from '../flags/options.ts';
import { logText } from '../logs/log-value.ts';
import type { CommandContext } from '../program/program.ts';

/** Objects of one page of the list, and between two lines of progress. */
const PAGE_SIZE = 500;
/** Concurrent writes. */
const AT_ONCE = 8;
/** Failed objects that are printed. */
const MAX_PRINTED = 10;
/** Time until the API server stores objects in a new storage version, in milliseconds. */
const SWITCH_TIMEOUT_MS = 30_000;

type Flags = OptionValues<typeof MIGRATE_OPTIONS>;

/**
 * Rewrites the stored objects of a kind in the storage version of its CRD, and removes the other versions from
 * `status.storedVersions`.
 *
 * @returns 1 if an object could not be rewritten; then the CRD is unchanged
 * @throws {UsageError} unless there is one operand
 */
export async function migrate(
  operands: readonly string[],
  flags: Flags,
  context: CommandContext,
): Promise<number> {
  const [name, ...others] = operands;
  if (name === undefined || others.length > 0)
    throw new UsageError('migrate requires one KIND, as in counts.demo.mark8s.io');
  const cluster = await loadCluster(clusterAccess(flags), context);
  const connection = connectCluster(cluster, {
    log: context.log.named('client'),
    userAgent: userAgent(context.program),
  });
  try {
    return await migrateIn(connection.client, name, flags['dry-run'], context);
  } finally {
    await connection.close();
  }
}

/** Context of `migrateIn`. */
export interface MigrationContext extends Pick<CommandContext, 'print' | 'warn' | 'signal'> {
  /** @default the machine's clock */
  readonly clock?: Pick<Clock, 'sleep' | 'monotonic'>;
  /** @default 500 */
  readonly pageSize?: number;
}

/**
 * Runs the migration with a client.
 *
 * @param name as kubectl accepts it: `counts`, `Count`, `counts.demo.mark8s.io`
 */
export async function migrateIn(
  client: Client,
  name: string,
  dryRun: boolean,
  context: MigrationContext,
): Promise<number> {
  try {
    return await new Migration(client, dryRun, context).run(name);
  } catch (error) {
    throw withMissingRule(error);
  }
}

type Outcome =
  | 'rewritten'
  /** The object was stored in the storage version. */
  | 'unchanged'
  /** The object was written or deleted by another client, after it was listed. */
  | 'outdated'
  | { readonly error: ApiError };

type Identity = Pick<ObjectMeta, 'namespace' | 'name' | 'uid' | 'resourceVersion'>;

class Migration {
  readonly #client: Client;
  readonly #dryRun: boolean;
  readonly #context: MigrationContext;
  readonly #clock: Pick<Clock, 'sleep' | 'monotonic'>;
  readonly #pageSize: number;

  constructor(client: Client, dryRun: boolean, context: MigrationContext) {
    this.#client = client;
    this.#dryRun = dryRun;
    this.#context = context;
    this.#clock = context.clock ?? systemClock;
    this.#pageSize = context.pageSize ?? PAGE_SIZE;
  }

  async run(name: string): Promise<number> {
    const { signal, print } = this.#context;
    const found = await new RestMapper(this.#client).resolve(name, signal);
    const crd = await this.#definitionOf(found);
    const storage = storageVersion(crd);
    const obsolete = (crd.status?.storedVersions ?? []).filter((version) => version !== storage);
    if (obsolete.length === 0) {
      print(`${crd.metadata.name}: all objects are stored in ${storage}; nothing to do`);
      return EXIT_OK;
    }
    const resource = servedBy(crd, found);
    await this.#untilStoredIn(resource, storage);
    // A missing permission for the last step is found before the first write.
    await this.#prune(crd, storage, true);
    const objects = await this.#objects(resource);
    print(
      `${crd.metadata.name}: rewriting ${count(objects.length)} in ${storage}; stored versions: ${(crd.status?.storedVersions ?? []).join(', ')}`,
    );
    const failures = await this.#rewrite(resource, objects);
    if (failures > 0) {
      this.#warn(
        `${count(failures)} could not be rewritten; status.storedVersions is unchanged. Correct the causes, and run the command again`,
      );
      return EXIT_FAILURE;
    }
    if (!this.#dryRun) await this.#prune(crd, storage, false);
    const verb = this.#dryRun ? 'would remove' : 'removed';
    print(`${crd.metadata.name}: ${verb} ${obsolete.join(', ')} from status.storedVersions`);
    return EXIT_OK;
  }

  async #definitionOf(resource: Resource): Promise<CustomResourceDefinition> {
    const name = groupResourceOf(resource);
    try {
      return await this.#client.get(
        CUSTOM_RESOURCE_DEFINITIONS,
        { name },
        { signal: this.#context.signal },
      );
    } catch (error) {
      if (!isApiError(error, 'notFound')) throw error;
      throw new Error(
        `${name} is not defined by a CustomResourceDefinition; only custom resources can be migrated`,
        { cause: error },
      );
    }
  }

  /**
   * Waits until the API server stores objects in the version. Its discovery has a hash of the version in which it
   * stores objects. A server without the hash is not waited for.
   */
  async #untilStoredIn(resource: Resource, storage: string): Promise<void> {
    const { signal } = this.#context;
    const { group, plural, kind } = resource;
    const digest = createHash('sha256').update(`${group}/${storage}/${kind}`).digest();
    const expected = digest.subarray(0, 8).toString('base64');
    const deadlineMs = this.#clock.monotonic() + SWITCH_TIMEOUT_MS;
    for (;;) {
      const list = await this.#client.raw({ path: `/apis/${apiVersionOf(resource)}`, signal });
      const entries: unknown[] =
        isRecord(list) && Array.isArray(list['resources']) ? list['resources'] : [];
      const entry = entries.filter(isRecord).find((each) => each['name'] === plural);
      const hash = entry?.['storageVersionHash'];
      if (hash === undefined || hash === expected) return;
      if (this.#clock.monotonic() >= deadlineMs) {
        throw new Error(
          `the API server does not store ${groupResourceOf(resource)} in ${storage} yet; run the command again later`,
        );
      }
      await this.#clock.sleep(1000, signal);
    }
  }

  /** Lists all objects before the first write, because a list that takes minutes expires. */
  async #objects(resource: Resource): Promise<Identity[]> {
    const { signal } = this.#context;
    let objects: Identity[] = [];
    let continueToken: string | undefined;
    for (;;) {
      try {
        const options = { metadataOnly: true, limit: this.#pageSize, continueToken, signal };
        const page = await this.#client.list(resource, options);
        for (const { metadata } of page.items) objects.push(identityOf(metadata));
        continueToken = page.continueToken;
        if (continueToken === undefined) return objects;
      } catch (error) {
        if (!isExpired(error) || continueToken === undefined) throw error;
        objects = [];
        continueToken = undefined;
      }
    }
  }

  /** Returns the number of objects that could not be rewritten. */
  async #rewrite(resource: Resource, objects: readonly Identity[]): Promise<number> {
    const { print } = this.#context;
    const counts = { rewritten: 0, unchanged: 0, outdated: 0, failed: 0 };
    let printed = 0;
    for (let at = 0; at < objects.length; at += AT_ONCE) {
      if (at - printed >= this.#pageSize) {
        print(`${at} of ${count(objects.length)} done`);
        printed = at;
      }
      const batch = objects.slice(at, at + AT_ONCE);
      const outcomes = await Promise.all(batch.map((each) => this.#rewriteOne(resource, each)));
      for (const [index, outcome] of outcomes.entries()) {
        if (typeof outcome === 'string') {
          counts[outcome]++;
          continue;
        }
        counts.failed++;
        const { namespace, name } = batch[index] ?? { name: '' };
        if (counts.failed <= MAX_PRINTED)
          this.#warn(`${objectKey(namespace, name)}: ${outcome.error.message}`);
      }
    }
    const written = this.#dryRun
      ? `Would rewrite up to ${count(counts.rewritten + counts.unchanged)}`
      : `Rewrote ${count(counts.rewritten)}; ${counts.unchanged} were up to date`;
    print(`${written}; ${counts.outdated} changed meanwhile`);
    return counts.failed;
  }

  /**
   * Sends a patch without changes. The API server writes an object that is stored in another version or encoding. As in the
   * storage version migrator of Kubernetes, a conflict means that another client has written the object.
   */
  async #rewriteOne(resource: Resource, metadata: Identity): Promise<Outcome> {
    const { signal } = this.#context;
    const { uid, resourceVersion } = metadata;
    try {
      const written = await this.#client.patch(
        resource,
        metadata,
        { type: 'merge', body: { metadata: { uid, resourceVersion } } },
        { dryRun: this.#dryRun, signal },
      );
      return written.metadata.resourceVersion === resourceVersion ? 'unchanged' : 'rewritten';
    } catch (error) {
      if (isApiError(error, 'conflict', 'notFound')) return 'outdated';
      // The next object would fail in the same way.
      if (!isApiError(error) || isFatal(error) || error.kind === 'forbidden') throw error;
      return { error };
    }
  }

  /** @throws {Error} if the CRD has changed since `before` */
  async #prune(before: CustomResourceDefinition, storage: string, dryRun: boolean): Promise<void> {
    const { signal } = this.#context;
    const { name, uid, generation } = before.metadata;
    await retryOnConflict(
      async () => {
        const { metadata } = await this.#client.get(
          CUSTOM_RESOURCE_DEFINITIONS,
          { name },
          { signal },
        );
        // With another storage version in between, objects can be stored in it.
        if (metadata.uid !== uid || metadata.generation !== generation) {
          throw new Error(
            `${name} changed during the migration; status.storedVersions is unchanged. Run the command again`,
          );
        }
        const { resourceVersion } = metadata;
        await this.#client.patch(
          CUSTOM_RESOURCE_DEFINITIONS,
          { name },
          {
            type: 'merge',
            body: { metadata: { resourceVersion }, status: { storedVersions: [storage] } },
          },
          { subresource: 'status', dryRun, signal },
        );
      },
      { signal, clock: this.#clock },
    );
  }

  #warn(text: string): void {
    this.#context.warn(`Error: ${logText(text)}`);
  }
}

/** Keeps little of each object, because there can be many. */
function identityOf({ namespace, name, uid, resourceVersion }: ObjectMeta): Identity {
  return { ...(namespace !== undefined && { namespace }), name, uid, resourceVersion };
}

function storageVersion({ spec }: CustomResourceDefinition): string {
  return spec.versions.find(({ storage }) => storage)?.name ?? '';
}

/** Returns the resource in the storage version, which needs no conversion, or in another version if that is not served. */
function servedBy({ spec }: CustomResourceDefinition, found: Resource): Resource {
  const version = spec.versions.find(({ storage, served }) => storage && served)?.name;
  return version === undefined ? found : { ...found, version };
}

function count(objects: number): string {
  return `${objects} ${objects === 1 ? 'object' : 'objects'}`;
}

/** Adds the RBAC rule that a forbidden request needs. */
function withMissingRule(error: unknown): unknown {
  const denial = isApiError(error, 'forbidden') ? parseForbidden(error.message) : undefined;
  if (!denial || !isApiError(error)) return error;
  return new Error(
    `${error.message}. Add this rule to a ClusterRole of the user: ${missingRule(denial)}`,
  );
}
