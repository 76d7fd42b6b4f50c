import type { StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { isRecord } from '../../util/values.ts';
import { labelValueProblems, nameProblems } from '../object-names.ts';
import { fieldError } from '../../api/field-error.ts';
import { validateContainer } from './container-validation.ts';
import { isSet, numberIn, objectIn, objectsIn, textIn } from './fields.ts';
import { Findings } from './findings.ts';

const MAX_INT32 = 2 ** 31 - 1;

export function validatePod(pod: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  validatePodSpec(objectIn(pod, 'spec') ?? {}, 'spec', findings);
  return findings.errors;
}

/** What is wrong with the spec of a Pod, or of a template; `path` is where it is. */
export function validatePodSpec(spec: JsonObject, path: string, findings: Findings): void {
  const volumes = validateVolumes(spec, `${path}.volumes`, findings);
  validateContainers(spec, volumes, `${path}.containers`, findings);
  validateInitContainers(spec, volumes, `${path}.initContainers`, findings);
  findings.requireOneOf(spec, 'restartPolicy', ['Always', 'OnFailure', 'Never'], path);
  findings.requireOneOf(
    spec,
    'dnsPolicy',
    ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'],
    path,
  );
  findings.requireFormat(spec, 'serviceAccountName', 'dns1123Subdomain', path);
  findings.requireFormat(spec, 'nodeName', 'dns1123Subdomain', path);
  const deadline = numberIn(spec, 'activeDeadlineSeconds') ?? 1;
  if (deadline < 1 || deadline > MAX_INT32) {
    findings.invalid(
      `${path}.activeDeadlineSeconds`,
      deadline,
      `must be between 1 and ${MAX_INT32}, inclusive`,
    );
  }
  findings.requireFormat(spec, 'hostname', 'dns1123Label', path);
  findings.requireFormat(spec, 'subdomain', 'dns1123Label', path);
  validateHostnameOverride(spec, path, findings);
  for (const field of ['runAsUser', 'runAsGroup', 'fsGroup']) {
    const id = numberIn(objectIn(spec, 'securityContext'), field) ?? 0;
    if (id >= 0 && id <= MAX_INT32) continue;
    const why = `must be between 0 and ${MAX_INT32}, inclusive`;
    findings.invalid(`${path}.securityContext.${field}`, id, why);
  }
  for (const value of Object.values(objectIn(spec, 'nodeSelector') ?? {})) {
    for (const problem of labelValueProblems(String(value))) {
      findings.invalid(`${path}.nodeSelector`, value, problem);
    }
  }
  validateTolerations(objectsIn(spec, 'tolerations'), `${path}.tolerations`, findings);
}

/** Reports what is wrong with the tolerations of a Pod or of a template. */
export function validateTolerations(
  tolerations: readonly JsonObject[],
  path: string,
  findings: Findings,
): void {
  for (const [index, toleration] of tolerations.entries()) {
    const at = `${path}[${index}]`;
    const [key, value] = [textIn(toleration, 'key'), textIn(toleration, 'value')];
    const operator = textIn(toleration, 'operator');
    if (key === '' && operator !== 'Exists') {
      const why =
        'operator must be Exists when `key` is empty, which means "match all values and all keys"';
      findings.invalid(`${at}.operator`, operator, why);
    }
    if (operator === 'Exists' && value !== '') {
      findings.invalid(`${at}.operator`, value, "value must be empty when `operator` is 'Exists'");
    } else if (operator === 'Equal' || operator === '') {
      for (const problem of labelValueProblems(value))
        findings.invalid(`${at}.operator`, value, problem);
    }
    const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];
    const effect = textIn(toleration, 'effect');
    if (isSet(toleration, 'tolerationSeconds') && effect !== 'NoExecute') {
      const why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
      findings.invalid(`${at}.effect`, effect, why);
    }
    if (effect !== '' && !effects.includes(effect)) {
      findings.notSupported(`${at}.effect`, effect, effects);
    }
  }
}

function validateHostnameOverride(spec: JsonObject, path: string, findings: Findings): void {
  if (!isSet(spec, 'hostnameOverride')) return;
  const at = `${path}.hostnameOverride`;
  for (const field of ['setHostnameAsFQDN', 'hostNetwork']) {
    if (spec[field] === true) findings.forbidden(at, `may not be specified when ${field} is true`);
  }
  const name = textIn(spec, 'hostnameOverride');
  if (name.length > 64) findings.errors.push(fieldError.tooLong(at, 64));
  for (const problem of nameProblems(name, 'dns1123Subdomain')) findings.invalid(at, name, problem);
}

function validateContainers(
  spec: JsonObject,
  volumes: ReadonlySet<string>,
  path: string,
  findings: Findings,
): void {
  const containers = objectsIn(spec, 'containers');
  if (containers.length === 0) findings.required(path);
  const names = new Set<string>();
  for (const [index, container] of containers.entries()) {
    validateContainer(container, volumes, `${path}[${index}]`, findings);
    findings.requireUnique(container, 'name', names, `${path}[${index}]`);
  }
}

/** Names are unique among the init containers and the containers together. */
function validateInitContainers(
  spec: JsonObject,
  volumes: ReadonlySet<string>,
  path: string,
  findings: Findings,
): void {
  const names = new Set(
    objectsIn(spec, 'containers').map((container) => textIn(container, 'name')),
  );
  for (const [index, container] of objectsIn(spec, 'initContainers').entries()) {
    const at = `${path}[${index}]`;
    validateContainer(container, volumes, at, findings);
    findings.requireUnique(container, 'name', names, at);
    if (textIn(container, 'restartPolicy') === 'Always') continue;
    for (const field of ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe']) {
      if (!isSet(container, field)) continue;
      findings.forbidden(
        `${at}.${field}`,
        'may not be set for init containers without restartPolicy=Always',
      );
    }
  }
}

/** Required fields of volume sources. */
const VOLUME_SOURCES = [
  ['configMap', 'name'],
  ['hostPath', 'path'],
  ['persistentVolumeClaim', 'claimName'],
  ['secret', 'secretName'],
] as const;

/** @returns the names that containers may mount */
function validateVolumes(spec: JsonObject, path: string, findings: Findings): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [index, volume] of objectsIn(spec, 'volumes').entries()) {
    const at = `${path}[${index}]`;
    findings.requireText(volume, 'name', at);
    findings.requireFormat(volume, 'name', 'dns1123Label', at);
    findings.requireUnique(volume, 'name', names, at);
    const [, ...superfluous] = Object.keys(volume).filter((key) => isRecord(volume[key]));
    for (const [source, field] of VOLUME_SOURCES) {
      const given = objectIn(volume, source);
      if (given) findings.requireText(given, field, `${at}.${source}`);
    }
    for (const source of superfluous) {
      findings.forbidden(`${at}.${source}`, 'may not specify more than 1 volume type');
    }
  }
  return names;
}
