import type { ApplyResult } from './apply-result.ts';
import type { Manifest, ManifestObject } from './manifest.ts';

/** The result of an object, or the error that stops the batch. */
export type ApplyOutcome = ApplyResult | ApplyFailure;

/** An error that all further requests would have. */
export interface ApplyFailure {
  readonly kind: 'failed';
  readonly error: unknown;
}

/** An object whose apply has started and whose result was not read yet. */
interface StartedApply {
  readonly manifest: Manifest;
  readonly outcome: Promise<ApplyOutcome>;
  /** Number of known changes when it was started. */
  readonly changes: number;
  readonly isFirstOfKind: boolean;
}

/** Options of `ApplyWindow`. */
export interface ApplyWindowOptions {
  /** Maximum number of started objects. */
  readonly size: number;
  /** Applies an object. Must not reject. */
  readonly apply: (manifest: Manifest) => Promise<ApplyOutcome>;
}

/**
 * The objects of a batch that are applied at the same time; outcomes are read in the order in which they were started.
 *
 * The first object of each kind is applied alone: its kind may have to be served first, and objects of one kind can
 * depend on those of another, such as Pods on ServiceAccounts. An object that is in the batch twice is applied in order.
 */
export class ApplyWindow {
  readonly #options: ApplyWindowOptions;
  readonly #started: StartedApply[] = [];
  readonly #kinds = new Set<string>();
  /** Number of objects whose outcome was read and that were changed. */
  #changes = 0;

  constructor(options: ApplyWindowOptions) {
    this.#options = options;
  }

  hasRoomFor({ object }: Manifest): boolean {
    const [first] = this.#started;
    return (
      !first ||
      (this.#started.length < this.#options.size &&
        !first.isFirstOfKind &&
        this.#kinds.has(kindOf(object)) &&
        !this.#started.some(({ manifest }) => isSameObject(manifest.object, object)))
    );
  }

  start(manifest: Manifest): void {
    const kind = kindOf(manifest.object);
    this.#started.push({
      manifest,
      outcome: this.#options.apply(manifest),
      changes: this.#changes,
      isFirstOfKind: !this.#kinds.has(kind),
    });
    this.#kinds.add(kind);
  }

  /**
   * Removes the first object and resolves to its outcome. If the server rejected it while objects before it were being
   * changed, it is applied again, because it can depend on them.
   *
   * @returns undefined if no object is started
   */
  async next(): Promise<ApplyOutcome | undefined> {
    const [first] = this.#started;
    if (!first) return undefined;
    let outcome = await first.outcome;
    if (this.#changes > first.changes && isRejectedByServer(outcome)) {
      outcome = await this.#options.apply(first.manifest);
    }
    this.#started.shift();
    if (outcome.kind === 'applied' && outcome.change !== 'unchanged') this.#changes++;
    return outcome;
  }

  /** Resolves when all started objects have an outcome. */
  async settled(): Promise<void> {
    await Promise.all(this.#started.map(({ outcome }) => outcome));
  }
}

function kindOf({ apiVersion, kind }: ManifestObject): string {
  return `${apiVersion} ${kind}`;
}

/** Ignores the API version, because an object can have several, and whether a namespace is the default. */
function isSameObject(a: ManifestObject, b: ManifestObject): boolean {
  const { name, namespace } = a.metadata;
  const other = b.metadata.namespace;
  const isSameNamespace = namespace === other || namespace === undefined || other === undefined;
  return a.kind === b.kind && name === b.metadata.name && isSameNamespace;
}

function isRejectedByServer(outcome: ApplyOutcome): boolean {
  return outcome.kind === 'rejected' && outcome.rejection.reason === 'server';
}
