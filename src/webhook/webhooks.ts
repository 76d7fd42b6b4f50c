import type { KubernetesObject } from '../api/object.ts';
import { apiVersionOf, groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';
import type {
  AdmissionEntry,
  AdmissionOptions,
  CelRule,
  CompleteAdmissionOptions,
  Conversion,
  ConversionEntry,
  Defaulter,
  DefaultingOptions,
  RuleEntry,
  RuleOptions,
  Spoke,
  Validator,
  WebhookEntries,
} from './declaration.ts';

import { Reviewer } from './reviewer.ts';
import type { ReviewerDeps, ReviewFunction } from './reviewer.ts';

const OPTIONS: OptionNames<AdmissionOptions> = {
  name: true,
  operations: true,
  subresources: true,
  whileDeleting: true,
  failurePolicy: true,
  timeoutSeconds: true,
  matchConditions: true,
  namespaceSelector: true,
  objectSelector: true,
  sideEffects: true,
};

const NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

/**
 * Functions that the API server calls: they set defaults, validate objects, and convert custom resources between
 * versions. A declaration has no effect by itself: pass it to `runControllers` or `runProgram`, and in tests pass its
 * `functions` to the embedded API server.
 */
export class Webhooks {
  readonly #admission = new Map<string, AdmissionEntry>();
  readonly #rules = new Map<string, RuleEntry>();
  readonly #conversions = new Map<string, { hub: Resource; spokes: Spoke[] }>();

  /**
   * Declares a function that sets defaults. It changes a draft of the object; the patch is what has changed. It may be
   * called again for an object that has the defaults.
   *
   * @throws {TypeError} if an option is unknown
   * @throws {RangeError} if an option is invalid, or if the kind has such a function with the same name
   */
  defaults<T extends KubernetesObject>(
    resource: Resource<T>,
    run: Defaulter<T>,
    options: DefaultingOptions = {},
  ): this {
    const path = `/mutate-${suffixOf(resource, options)}`;
    // The objects of requests have the kind of the resource.
    const entry = { type: 'mutating', run: run as unknown as Defaulter<KubernetesObject> } as const;
    return this.#add({ ...entry, path, resource, options: complete(options, 'defaults') });
  }

  /**
   * Declares a function that validates objects. It returns errors in fields, which the API server answers as it answers
   * those of schemas. It can throw `AdmissionDenied` instead.
   *
   * @throws {TypeError} if an option is unknown
   * @throws {RangeError} if an option is invalid, or if the kind has such a function with the same name
   */
  validates<T extends KubernetesObject>(
    resource: Resource<T>,
    run: Validator<T>,
    options: AdmissionOptions = {},
  ): this {
    const path = `/validate-${suffixOf(resource, options)}`;
    const entry = {
      type: 'validating',
      run: run as unknown as Validator<KubernetesObject>,
    } as const;
    return this.#add({ ...entry, path, resource, options: complete(options, 'validates') });
  }

  /**
   * Declares rules in CEL for the objects of a kind. They need no server: the API server evaluates them, from a
   * ValidatingAdmissionPolicy or from the schema of the CRD, which are part of the manifests.
   *
   * @throws {TypeError} if an option is unknown
   * @throws {RangeError} if an option is invalid, or if the kind has such rules with the same name
   */
  rules(resource: Resource, rules: readonly CelRule[], options: RuleOptions = {}): this {
    const { as = 'policy', ...rest } = options;
    const entry = { resource, rules: [...rules], as, options: complete(rest, 'rules') };
    const { operations } = entry.options;
    if (operations.includes('DELETE') && operations.length > 1) {
      throw new RangeError(
        'rules: declare the rules for DELETE separately, because `self` is then the deleted object',
      );
    }
    const [extra] = as === 'schema' ? Object.keys(rest).filter((option) => option !== 'name') : [];
    if (extra !== undefined) {
      throw new RangeError(`rules: the option ${extra} is for rules in a policy, not in a schema`);
    }
    const key = `${as} ${suffixOf(resource, rest)}`;
    if (this.#rules.has(key)) {
      throw new RangeError(`${resource.kind} has rules in a ${as} already: set the option name`);
    }
    this.#rules.set(key, entry);
    return this;
  }

  /**
   * Declares the conversions between a version and the hub of its kind. A kind has one hub, which is usually the storage
   * version. Two other versions are converted through it.
   *
   * @throws {TypeError} if a function is unknown
   * @throws {RangeError} if the two are not versions of one kind, if the kind has another hub, or if the version is declared
   */
  converts<V extends KubernetesObject, Hub extends KubernetesObject>(
    version: Resource<V>,
    hub: Resource<Hub>,
    conversion: Conversion<V, Hub>,
  ): this {
    const name = groupResourceOf(hub);
    if (groupResourceOf(version) !== name || version.kind !== hub.kind) {
      throw new RangeError(
        `converts: ${version.kind} in ${apiVersionOf(version)} and ${hub.kind} in ${apiVersionOf(hub)} are not versions of one kind`,
      );
    }
    const known = this.#conversions.get(name);
    const entry = known ?? { hub, spokes: [] };
    if (entry.hub.version !== hub.version) {
      throw new RangeError(`converts: the hub of ${name} is ${entry.hub.version}`);
    }
    const declared = [entry.hub, ...entry.spokes.map(({ resource }) => resource)];
    if (declared.some((one) => one.version === version.version)) {
      throw new RangeError(`converts: the version ${version.version} of ${name} exists already`);
    }
    const { up, down } = conversion;
    // The objects of requests have the kind and the version of the resource.
    const untyped = { up, down } as unknown as Conversion<KubernetesObject, KubernetesObject>;
    entry.spokes.push({ resource: version, ...untyped });
    this.#conversions.set(name, entry);
    return this;
  }

  /** Returns what is declared, in the order of the declarations. */
  entries(): WebhookEntries {
    const conversions: ConversionEntry[] = Array.from(
      this.#conversions.values(),
      ({ hub, spokes }) => ({ hub, spokes: [...spokes] }),
    );
    const rules = [...this.#rules.values()];
    return { admission: [...this.#admission.values()], conversions, rules };
  }

  /**
   * Returns the functions by URL, for the embedded API server, which then calls them in this process.
   *
   * @param baseUrl start of the URLs in webhook configurations: `https://NAME.NAMESPACE.svc` for a Service
   */
  functions(baseUrl: string, deps: ReviewerDeps = {}): Readonly<Record<string, ReviewFunction>> {
    return new Reviewer(this.entries(), deps).functions(baseUrl);
  }

  #add(entry: AdmissionEntry): this {
    const { path, resource, type } = entry;
    if (this.#admission.has(path)) {
      throw new RangeError(
        `${resource.kind} has a ${type} function at ${path} already: set the option name`,
      );
    }
    this.#admission.set(path, entry);
    return this;
  }
}

/** Returns the end of a path, as controller-runtime forms it. */
function suffixOf(
  { group, version, kind }: Resource,
  { name }: Pick<AdmissionOptions, 'name'>,
): string {
  const kindPath = `${group.replaceAll('.', '-')}-${version}-${kind.toLowerCase()}`;
  return name === undefined ? kindPath : `${kindPath}-${name}`;
}

function complete(options: AdmissionOptions, where: string): CompleteAdmissionOptions {
  checkOptions(options, OPTIONS, where);
  const { name, timeoutSeconds = 10, operations = ['CREATE', 'UPDATE'] } = options;
  if (name !== undefined && !NAME.test(name)) {
    throw new RangeError(
      `${where}: name must consist of lower-case letters, digits and "-": got ${JSON.stringify(name)}`,
    );
  }
  if (!Number.isInteger(timeoutSeconds) || timeoutSeconds < 1 || timeoutSeconds > 30) {
    throw new RangeError(`${where}: timeoutSeconds must be 1 to 30: got ${timeoutSeconds}`);
  }
  if (operations.length === 0) throw new RangeError(`${where}: operations is empty`);
  return {
    ...options,
    timeoutSeconds,
    operations,
    subresources: options.subresources ?? [''],
    whileDeleting: options.whileDeleting ?? false,
    failurePolicy: options.failurePolicy ?? 'Fail',
    matchConditions: options.matchConditions ?? [],
    sideEffects: options.sideEffects ?? 'None',
  };
}
