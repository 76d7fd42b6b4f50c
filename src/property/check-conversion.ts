import type { CustomResourceDefinition } from '../api/builtin.ts';
import { formatFieldError } from '../api/field-error.ts';
import { changedPaths, formatPath, valueAt } from '../api/field-path.ts';
import type { Draft, KubernetesObject } from '../api/object.ts';
import { apiVersionOf, groupResourceOf } from '../api/resource.ts';
import { validateRules } from '../cel/validate-rules.ts';
import { applyDefaults } from '../apiserver/schema/defaulting.ts';
import type { JsonSchema } from '../api/json-schema.ts';
import { prune } from '../apiserver/schema/pruning.ts';
import { validateCustom } from '../apiserver/request/embedded-resources.ts';
import { messageOf } from '../util/values.ts';
import { convertObject } from '../webhook/conversion-review.ts';
import type { ConversionEntry } from '../webhook/declaration.ts';
import type { Webhooks } from '../webhook/webhooks.ts';
import type { FastCheck, FastCheckArbitrary } from './fast-check.ts';
import { schemaArbitrary } from './schema-arbitrary.ts';

/** Options of {@link checkConversion}. */
export interface ConversionCheckOptions {
  /** The CRD with the schemas of all versions. */
  readonly crd: Draft<CustomResourceDefinition>;
  /** The webhooks that convert its objects. */
  readonly webhooks: Pick<Webhooks, 'entries'>;
  /**
   * Whether a round trip of an object of the hub through another version restores the whole object. Then the other
   * version must keep the fields that it does not have, for example in an annotation.
   * @default false: fields that the other version does not have can be lost
   */
  readonly lossless?: boolean | undefined;
  /**
   * Reports whether a generated object of any version can exist. Use it for conditions that are not in the schema.
   * @default all objects that the schema of their version permits
   */
  readonly where?:
    ((object: Readonly<KubernetesObject & Record<string, unknown>>) => boolean) | undefined;
  /**
   * Arbitraries of fast-check that replace those of a schema, by version and path:
   * `{ v1: { 'spec.schedule': fc.constant('0 * * * *'), 'spec.ports[].name': …, 'spec.labels.*': … } }`.
   * @default none
   */
  readonly values?:
    Readonly<Record<string, Readonly<Record<string, FastCheckArbitrary>>>> | undefined;
  /**
   * Number of generated objects for each property.
   * @default 100
   */
  readonly numRuns?: number | undefined;
  /**
   * Seed of the generated objects, which a failure prints.
   * @default random
   */
  readonly seed?: number | undefined;
}

type Json = Record<string, unknown>;

/** A version of the kind. */
interface Version {
  readonly name: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly schema: JsonSchema;
}

/** A conversion to a version. */
interface Conversion {
  readonly name: 'up' | 'down';
  readonly to: Version;
  readonly entry: ConversionEntry;
}

/** What is wrong with an object or a conversion. */
class Problem {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Differences that are printed. */
const MAX_DIFFERENCES = 5;

/** Metadata of every generated object. */
const IDENTITY = {
  name: 'example',
  namespace: 'default',
  uid: '00000000-0000-4000-8000-000000000000',
  creationTimestamp: '2026-01-01T00:00:00Z',
  generation: 1,
  resourceVersion: '1',
} as const;

/**
 * Checks the conversions of a kind with objects that fast-check generates from the schemas of both versions. For each
 * version and the hub, it checks that
 *
 * - `down(up(x))` is `x` for each object of the version,
 * - `up(down(y))` loses nothing of an object of the hub that the version can express,
 * - the results have only fields of their schema, and the schema permits them,
 * - the functions change no argument, and convert parts of objects, as for server-side apply.
 *
 * Between two conversions, the object is pruned and gets defaults as in an API server. The error of a failed check has a
 * small counterexample, the paths of the fields that differ, and the seed.
 *
 * @param fc the module `fast-check`
 * @throws {Error} if a check fails
 * @throws {RangeError} if a served version has no conversion, or if objects of a schema cannot be generated
 *
 * @experimental
 */
export function checkConversion(fc: FastCheck, options: ConversionCheckOptions): void {
  const { crd, webhooks } = options;
  const entry = webhooks
    .entries()
    .conversions.find(({ hub }) => groupResourceOf(hub) === crd.metadata.name);
  if (!entry) throw new RangeError(`checkConversion: ${crd.metadata.name} has no conversion`);
  const versions = versionsOf(crd);
  const versionNamed = (name: string): Version => {
    const version = versions.get(name);
    if (version) return version;
    throw new RangeError(`checkConversion: the CRD ${crd.metadata.name} has no version ${name}`);
  };
  requireAll(crd, entry);
  const hub = versionNamed(entry.hub.version);
  for (const { resource } of entry.spokes) {
    const version = versionNamed(resource.version);
    new ConversionCheck(fc, options, version, hub, {
      up: { name: 'up', to: hub, entry },
      down: { name: 'down', to: version, entry },
    }).run();
  }
}

class ConversionCheck {
  readonly #fc: FastCheck;
  readonly #options: ConversionCheckOptions;
  readonly #version: Version;
  readonly #hub: Version;
  readonly #up: Conversion;
  readonly #down: Conversion;

  constructor(
    fc: FastCheck,
    options: ConversionCheckOptions,
    version: Version,
    hub: Version,
    { up, down }: { readonly up: Conversion; readonly down: Conversion },
  ) {
    this.#fc = fc;
    this.#options = options;
    this.#version = version;
    this.#hub = hub;
    this.#up = up;
    this.#down = down;
  }

  run(): void {
    const [version, hub, up, down] = [this.#version, this.#hub, this.#up, this.#down];
    this.#check(version, 'down(up(object)) differs from the object', (object) =>
      roundTrip(object, up, down),
    );
    this.#check(hub, `up(down(object)) loses fields that ${version.name} has`, (object) => {
      const old = convert(object, down);
      return old instanceof Problem ? old : roundTrip(old, up, down);
    });
    if (this.#options.lossless) {
      this.#check(hub, 'up(down(object)) differs from the object', (object) =>
        roundTrip(object, down, up),
      );
    }
    this.#check(version, 'up fails for a part of an object', partially(up), true);
    this.#check(hub, 'down fails for a part of an object', partially(down), true);
  }

  #check(
    version: Version,
    title: string,
    problemOf: (object: Json) => Problem | undefined,
    partial: boolean = false,
  ): void {
    const fc = this.#fc;
    const { numRuns = 100, seed, where = () => true, values = {} } = this.#options;
    let invalid: Problem | undefined;
    const objects = objectArbitrary(fc, version, values[version.name] ?? {}, partial);
    const details = fc.check(
      fc.property(objects, (object) => {
        if (!partial) {
          const problem = invalidity(object, version);
          invalid = problem ?? invalid;
          fc.pre(problem === undefined && where(object as KubernetesObject & Json));
        }
        return problemOf(object) === undefined;
      }),
      { numRuns, ...(seed !== undefined && { seed }) },
    );
    if (!details.failed) return;
    const [object] = details.counterexample ?? [];
    const kind = `${version.kind} ${version.apiVersion}`;
    if (!object) {
      const why = invalid ? `: ${invalid.text}` : '';
      throw new RangeError(
        `checkConversion: too few generated objects of ${kind} are valid${why}. Give arbitraries of such fields in values`,
      );
    }
    throw new Error(
      [
        `${title} (${kind})`,
        problemOf(object)?.text ?? '',
        `Object: ${JSON.stringify(shown(object), undefined, 2)}`,
        `Repeat it with seed: ${details.seed}`,
      ].join('\n'),
    );
  }
}

function versionsOf({ spec }: Draft<CustomResourceDefinition>): Map<string, Version> {
  return new Map(
    (spec?.versions ?? []).map(({ name, schema }) => [
      name,
      {
        name,
        apiVersion: apiVersionOf({ group: spec?.group ?? '', version: name }),
        kind: spec?.names.kind ?? '',
        schema: schema?.openAPIV3Schema ?? {},
      },
    ]),
  );
}

/** @throws {RangeError} if a served version has no conversion */
function requireAll(
  { metadata, spec }: Draft<CustomResourceDefinition>,
  entry: ConversionEntry,
): void {
  const known = [entry.hub, ...entry.spokes.map(({ resource }) => resource)];
  const missing = (spec?.versions ?? []).find(
    ({ name, served }) => served && !known.some(({ version }) => version === name),
  );
  if (missing) {
    throw new RangeError(
      `checkConversion: ${metadata.name} serves ${missing.name}, which has no conversion`,
    );
  }
}

function objectArbitrary(
  fc: FastCheck,
  { apiVersion, kind, schema }: Version,
  values: Readonly<Record<string, FastCheckArbitrary>>,
  partial: boolean,
): FastCheckArbitrary<Json> {
  const texts = fc.dictionary(
    fc.stringMatching(/^[a-z]{1,8}$/),
    fc.stringMatching(/^[a-z0-9]{0,8}$/),
    { minKeys: 1, maxKeys: 2, noNullPrototype: true },
  );
  const metadata = fc.record(
    { labels: texts, annotations: texts },
    { requiredKeys: [], noNullPrototype: true },
  );
  const root = { ...schema, type: 'object', 'x-kubernetes-embedded-resource': true };
  const fields = schemaArbitrary(fc, root, '', { values, partial });
  return fc.tuple(fields, metadata).map(([object, own]) => {
    const head = { apiVersion, kind, metadata: { ...IDENTITY, ...(own as Json) } };
    const whole = Object.assign({}, object as Json, head);
    return partial ? whole : applyDefaults(whole, schema);
  });
}

/** Returns why the schema rejects an object. */
function invalidity(object: Json, { schema }: Version): Problem | undefined {
  const errors = validateCustom(object, schema);
  const all = [...errors, ...validateRules(object, undefined, schema, errors)];
  if (all.length === 0) return undefined;
  return new Problem(all.map(formatFieldError).join('; '));
}

/** Converts an object there and back. */
function roundTrip(object: Json, there: Conversion, back: Conversion): Problem | undefined {
  const converted = convert(object, there);
  if (converted instanceof Problem) return converted;
  const result = convert(converted, back);
  if (result instanceof Problem) return result;
  return difference(normalize(object), normalize(result));
}

/** Converts an object, and prunes and completes the result as an API server does. */
function convert(object: Json, conversion: Conversion): Json | Problem {
  const { name, to } = conversion;
  const converted = call(object, conversion);
  if (converted instanceof Problem) return converted;
  const dropped = prune(converted, to.schema).sort();
  if (dropped.length > 0) {
    return new Problem(
      `${name} returns fields that ${to.name} does not have: ${dropped.join(', ')}`,
    );
  }
  const complete = applyDefaults(converted, to.schema);
  const problem = invalidity(complete, to);
  if (!problem) return complete;
  return new Problem(`the schema of ${to.name} rejects the result of ${name}: ${problem.text}`);
}

function partially(conversion: Conversion): (object: Json) => Problem | undefined {
  return (object) => {
    const result = call(object, conversion);
    return result instanceof Problem ? result : undefined;
  };
}

/** Converts an object as the webhook does. */
function call(object: Json, { name, to, entry }: Conversion): Json | Problem {
  const argument = structuredClone(object);
  let result: unknown;
  try {
    result = convertObject([entry], argument, to.apiVersion);
  } catch (error) {
    return new Problem(`${name} throws: ${messageOf(error)}`);
  }
  const changed = difference(object, argument);
  if (changed) return new Problem(`${name} changes its argument: ${changed.text}`);
  return JSON.parse(JSON.stringify(result)) as Json;
}

/** Returns the object without empty labels and annotations, which the API server does not store. */
function normalize(object: Json): Json {
  const { metadata, ...rest } = structuredClone(object) as Json & { metadata: Json };
  for (const name of ['labels', 'annotations']) {
    if (Object.keys((metadata[name] as Json | undefined) ?? {}).length === 0) delete metadata[name];
  }
  return { ...rest, metadata };
}

function difference(before: Json, after: Json): Problem | undefined {
  const paths = changedPaths(before, after, MAX_DIFFERENCES);
  if (paths.length === 0) return undefined;
  const texts = paths.map((path) => {
    const [from, to] = [valueAt(before, path), valueAt(after, path)].map((value) =>
      value === undefined ? 'absent' : JSON.stringify(value),
    );
    return `  ${formatPath(path)}: ${from} became ${to}`;
  });
  return new Problem(texts.join('\n'));
}

/** Returns the object without the metadata that all objects have. */
function shown({ metadata, ...rest }: Json): Json {
  const { labels, annotations } = metadata as Json;
  const own = {
    ...(labels !== undefined && { labels }),
    ...(annotations !== undefined && { annotations }),
  };
  return Object.keys(own).length > 0 ? { ...rest, metadata: own } : rest;
}
