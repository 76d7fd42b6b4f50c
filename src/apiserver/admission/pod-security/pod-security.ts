import type { FieldError } from '../../../api/field-error.ts';
import { fieldError, formatFieldError } from '../../../api/field-error.ts';
import { controllerOf } from '../../../api/metadata.ts';
import { equalJson } from '../../../api/equal.ts';
import { groupResourceOf } from '../../../api/resource.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import { POD_PATHS } from '../../builtin/pods/pod-paths.ts';
import type { ResourceDefinition, StoredObject } from '../../objects/resource-definition.ts';
import { forbiddenError, invalidError } from '../../objects/status-error.ts';
import type { ObjectStore } from '../../storage/object-store.ts';
import type { Attributes } from '../attributes.ts';
import type { CheckedPod, PodViolation } from './checked-pod.ts';
import { violationsOf } from './checks.ts';
import { shownName } from '../policies.ts';

const PREFIX = 'pod-security.kubernetes.io/';

/** Annotation of audit events. */
const ENFORCED = `${PREFIX}enforce-policy`;

/** From the least to the most restrictive one. */
const LEVELS = ['privileged', 'baseline', 'restricted'] as const;

type Mode = 'enforce' | 'audit' | 'warn';

interface LevelVersion {
  readonly level: (typeof LEVELS)[number];
  /** Minor version of Kubernetes; infinite for the latest one. */
  readonly minor: number;
}

interface SecurityPolicy extends Readonly<Record<Mode, LevelVersion>> {
  readonly errors: readonly FieldError[];
}

const DEFAULT: LevelVersion = { level: 'privileged', minor: Infinity };

const IGNORED_SUBRESOURCES: ReadonlySet<string> = new Set(['binding', 'eviction', 'status']);

/** Maximum number of Pods that a new level of a namespace is checked for. */
const MAX_PODS = 3000;

const NAMESPACES = { group: '', plural: 'namespaces' };
const PODS = { group: '', plural: 'pods' };

/** Whether the admission plugin PodSecurity applies to a kind. */
export function isOfPodSecurity(definition: ResourceDefinition): boolean {
  return POD_PATHS.has(groupResourceOf(definition)) || isNamespace(definition);
}

function isNamespace(definition: ResourceDefinition): boolean {
  return groupResourceOf(definition) === groupResourceOf(NAMESPACES);
}

/**
 * The admission plugin PodSecurity: the labels of a namespace forbid Pods, or cause warnings for Pods and their templates.
 *
 * @throws {StatusError} 403 for a forbidden Pod, 422 for invalid labels of a namespace
 */
export function requirePodSecurity(attributes: Attributes, store: ObjectStore): void {
  const { object, operation, definition, subresource } = attributes;
  if (!object || !(operation === 'CREATE' || operation === 'UPDATE')) return;
  if (isNamespace(definition)) {
    if (subresource === '') requireLabels(attributes, object, store);
    return;
  }
  const path = POD_PATHS.get(groupResourceOf(definition));
  if (!path) return;
  const isPod = path.length === 0;
  const { annotations, namespace, oldObject } = attributes;
  if (isPod ? IGNORED_SUBRESOURCES.has(subresource) : subresource !== '') return;
  const policy = policyOf(store.collection(NAMESPACES).get(undefined, namespace));
  const { enforce, audit, warn, errors } = policy;
  const isQuiet =
    audit.level === 'privileged' && warn.level === 'privileged' && errors.length === 0;
  if (!isPod) {
    const template = path.reduce<JsonObject | undefined>(objectIn, object);
    if (template && !isQuiet) evaluate(attributes, policy, podOf(template), false);
  } else if (isQuiet && enforce.level === 'privileged') {
    annotations.set(ENFORCED, textOf(DEFAULT));
  } else if (!oldObject || isSignificant(object, oldObject)) {
    evaluate(attributes, policy, podOf(object), true);
  }
}

function podOf(owner: JsonObject): CheckedPod {
  return { metadata: objectIn(owner, 'metadata') ?? {}, spec: objectIn(owner, 'spec') ?? {} };
}

function evaluate(
  attributes: Attributes,
  { enforce, audit, warn, errors }: SecurityPolicy,
  pod: CheckedPod,
  isEnforced: boolean,
): void {
  const { annotations, warnings, definition } = attributes;
  if (errors.length > 0) {
    const why = errors.map(formatFieldError);
    const text = why.length === 1 ? why[0] : `[${why.join(', ')}]`;
    annotations.set(`${PREFIX}error`, `Failed to parse policy: ${text}`);
  }
  if (isEnforced) annotations.set(ENFORCED, textOf(enforce));
  const audited = violations(pod, audit);
  if (audited.length > 0) {
    const text = `would violate PodSecurity "${textOf(audit)}": ${detailOf(audited)}`;
    annotations.set(`${PREFIX}audit-violations`, text);
  }
  const enforced = isEnforced ? violations(pod, enforce) : [];
  if (enforced.length > 0) {
    const why = `violates PodSecurity "${textOf(enforce)}": ${detailOf(enforced)}`;
    throw forbiddenError(definition, shownName(attributes), why);
  }
  // Mostly the level that is enforced.
  if (isEnforced && textOf(warn) === textOf(enforce)) return;
  const warned = violations(pod, warn);
  if (warned.length === 0) return;
  warnings.push(`would violate PodSecurity "${textOf(warn)}": ${detailOf(warned)}`);
}

function violations(pod: CheckedPod, { level, minor }: LevelVersion): readonly PodViolation[] {
  return level === 'privileged' ? [] : violationsOf(pod, level, minor);
}

function detailOf(found: readonly PodViolation[]): string {
  return found.map(({ reason, detail }) => `${reason} (${detail})`).join(', ');
}

function textOf({ level, minor }: LevelVersion): string {
  return `${level}:${minor === Infinity ? 'latest' : `v1.${minor}`}`;
}

/** Whether an update changes what the checks see: a container or an image. */
function isSignificant(pod: StoredObject, previous: StoredObject): boolean {
  const imagesOf = (object: StoredObject, field: string) =>
    objectsIn(objectIn(object, 'spec'), field).map((container) => textIn(container, 'image'));
  const isChanged = ['containers', 'initContainers'].some(
    (field) => !equalJson(imagesOf(pod, field), imagesOf(previous, field)),
  );
  if (isChanged) return true;
  const ephemeral = (object: StoredObject) =>
    objectsIn(objectIn(object, 'spec'), 'ephemeralContainers');
  const images = new Map(
    ephemeral(previous).map((each) => [textIn(each, 'name'), textIn(each, 'image')]),
  );
  return ephemeral(pod).some((each) => images.get(textIn(each, 'name')) !== textIn(each, 'image'));
}

function policyOf(namespace: StoredObject | undefined): SecurityPolicy {
  const labels = namespace?.metadata.labels ?? {};
  const errors: FieldError[] = [];
  const refuse = (label: string, detail: string) => {
    errors.push(fieldError.invalid(`metadata.labels[${label}]`, labels[label], detail));
  };
  /** @param invalid the level if the label has none */
  const levelOf = (mode: Mode, invalid: LevelVersion['level']) => {
    const label = PREFIX + mode;
    const text = labels[label];
    if (text === undefined) return DEFAULT.level;
    const level = LEVELS.find((each) => each === text);
    if (level === undefined) refuse(label, `must be one of ${LEVELS.join(', ')}`);
    return level ?? invalid;
  };
  const minorOf = (mode: Mode) => {
    const label = `${PREFIX}${mode}-version`;
    const text = labels[label];
    if (text === undefined || text === 'latest') return DEFAULT.minor;
    const minor = Number(/^v1\.(\d|[1-9]\d*)$/.exec(text)?.[1] ?? Number.NaN);
    if (minor < 2 ** 63) return minor;
    refuse(label, 'must be "latest" or "v1.x"');
    return DEFAULT.minor;
  };
  const enforce = { level: levelOf('enforce', 'restricted'), minor: minorOf('enforce') };
  const isEnforceValid = errors.every(({ field }) => !field.endsWith('/enforce]'));
  const audit = { level: levelOf('audit', 'privileged'), minor: minorOf('audit') };
  const warn = { level: levelOf('warn', 'privileged'), minor: minorOf('warn') };
  // As upstream, what is enforced is also a warning, for the templates of Pods.
  const isFromEnforce =
    labels[`${PREFIX}warn`] === undefined && isEnforceValid && enforce.level !== 'privileged';
  const minor = labels[`${PREFIX}warn-version`] === undefined ? enforce.minor : warn.minor;
  return { enforce, audit, warn: isFromEnforce ? { level: enforce.level, minor } : warn, errors };
}

function requireLabels(attributes: Attributes, namespace: StoredObject, store: ObjectStore): void {
  const { enforce, errors } = policyOf(namespace);
  const previous = attributes.oldObject && policyOf(attributes.oldObject);
  if (errors.length > 0 && !(previous && equalJson(errors, previous.errors))) {
    throw invalidError(attributes.definition, namespace.metadata.name, errors);
  }
  if (!previous || enforce.level === 'privileged') return;
  const isStricter = LEVELS.indexOf(enforce.level) > LEVELS.indexOf(previous.enforce.level);
  if (enforce.minor === previous.enforce.minor && !isStricter) return;
  const { name } = namespace.metadata;
  const pods = store.collection(PODS).list(name);
  for (const text of warningsOfPods(pods, name, enforce)) attributes.warnings.push(text);
}

/** Returns warnings about the existing Pods that a new level of their namespace does not allow. */
function warningsOfPods(
  pods: readonly StoredObject[],
  namespace: string,
  enforce: LevelVersion,
): string[] {
  const controllers = new Set<string>();
  const [first, others]: [StoredObject[], StoredObject[]] = [[], []];
  // One Pod of each controller comes first.
  for (const pod of pods) {
    const uid = controllerOf(pod)?.uid;
    const isKnown = uid !== undefined && controllers.has(uid);
    if (uid !== undefined) controllers.add(uid);
    (isKnown ? others : first).push(pod);
  }
  const checked = [...first, ...others].slice(0, MAX_PODS);
  const reasonOf = (pod: StoredObject) =>
    violations(podOf(pod), enforce)
      .map(({ reason }) => reason)
      .join(', ');
  const byReason = Map.groupBy(checked, reasonOf);
  // Those of Pods that are allowed.
  byReason.delete('');
  const warnings: string[] = [];
  if (checked.length < pods.length) {
    warnings.push(
      `new PodSecurity enforce level only checked against the first ${checked.length} of ${pods.length} existing pods`,
    );
  }
  if (byReason.size > 0) {
    warnings.push(
      `existing pods in namespace "${namespace}" violate the new PodSecurity enforce level "${textOf(enforce)}"`,
    );
  }
  const lines = Array.from(byReason, ([reason, violating]) => {
    const [name, ...rest] = violating.map(({ metadata }) => metadata.name).sort();
    const noun = rest.length === 1 ? 'pod' : 'pods';
    return `${name}${rest.length === 0 ? '' : ` (and ${rest.length} other ${noun})`}: ${reason}`;
  });
  return [...warnings, ...lines.sort()];
}
