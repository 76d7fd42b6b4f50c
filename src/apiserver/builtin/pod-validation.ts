import { labelValueProblems, nameProblems } from '../../api/object-names.ts';
import type { CheckedObject } from '../objects/checked-object.ts';
import { ipProblem } from './addresses.ts';
import { validateContainer } from './container-validation.ts';

const MAX_INT32 = 2 ** 31 - 1;
const DNS_POLICIES = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'];

/** Reports what is wrong with the spec of a Pod or of a template. */
export function validatePodSpec(spec: CheckedObject): void {
  const volumes = validateVolumes(spec);
  validateContainers(spec, volumes);
  validateInitContainers(spec, volumes);
  spec.requireOneOf('restartPolicy', ['Always', 'OnFailure', 'Never']);
  spec.requireOneOf('dnsPolicy', DNS_POLICIES);
  spec.requireFormat('serviceAccountName', 'dns1123Subdomain');
  spec.requireFormat('nodeName', 'dns1123Subdomain');
  const deadline = spec.number('activeDeadlineSeconds') ?? 1;
  if (deadline < 1 || deadline > MAX_INT32) {
    spec.invalid('activeDeadlineSeconds', `must be between 1 and ${MAX_INT32}, inclusive`);
  }
  spec.requireFormat('hostname', 'dns1123Label');
  spec.requireFormat('subdomain', 'dns1123Label');
  validateHostnameOverride(spec);
  const security = spec.in('securityContext');
  for (const field of ['runAsUser', 'runAsGroup', 'fsGroup']) {
    const id = security.number(field) ?? 0;
    if (id >= 0 && id <= MAX_INT32) continue;
    security.invalid(field, `must be between 0 and ${MAX_INT32}, inclusive`);
  }
  for (const value of Object.values(spec.in('nodeSelector').value)) {
    spec.problems('nodeSelector', labelValueProblems(String(value)), value);
  }
  for (const toleration of spec.items('tolerations')) validateToleration(toleration);
  for (const alias of spec.items('hostAliases')) requireIp(alias, 'ip', alias.text('ip'));
  const dns = spec.in('dnsConfig');
  for (const [index, server] of dns.list('nameservers').map(String).entries()) {
    requireIp(dns, `nameservers[${index}]`, server);
  }
}

function requireIp(holder: CheckedObject, field: string, address: string): void {
  const problem = ipProblem(address);
  if (problem !== undefined) holder.invalid(field, problem, address);
}

function validateToleration(toleration: CheckedObject): void {
  const value = toleration.text('value');
  const operator = toleration.text('operator');
  if (toleration.text('key') === '' && operator !== 'Exists') {
    const why =
      'operator must be Exists when `key` is empty, which means "match all values and all keys"';
    toleration.invalid('operator', why, operator);
  }
  if (operator === 'Exists' && value !== '') {
    toleration.invalid('operator', "value must be empty when `operator` is 'Exists'", value);
  } else if (operator === 'Equal' || operator === '') {
    toleration.problems('operator', labelValueProblems(value), value);
  }
  const effect = toleration.text('effect');
  if (toleration.has('tolerationSeconds') && effect !== 'NoExecute') {
    const why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
    toleration.invalid('effect', why, effect);
  }
  toleration.requireOneOf('effect', ['NoSchedule', 'PreferNoSchedule', 'NoExecute']);
}

function validateHostnameOverride(spec: CheckedObject): void {
  const field = 'hostnameOverride';
  if (!spec.has(field)) return;
  for (const other of ['setHostnameAsFQDN', 'hostNetwork']) {
    if (spec.value[other] !== true) continue;
    spec.forbidden(field, `may not be specified when ${other} is true`);
  }
  const name = spec.text(field);
  if (name.length > 64) spec.tooLong(field, 64);
  spec.problems(field, nameProblems(name, 'dns1123Subdomain'));
}

function validateContainers(spec: CheckedObject, volumes: ReadonlySet<string>): void {
  const containers = spec.items('containers');
  if (containers.length === 0) spec.required('containers');
  const names = new Set<string>();
  for (const container of containers) {
    validateContainer(container, volumes);
    container.requireUnique('name', names);
  }
}

/** Names are unique among the init containers and the containers together. */
function validateInitContainers(spec: CheckedObject, volumes: ReadonlySet<string>): void {
  const names = new Set(spec.items('containers').map((container) => container.text('name')));
  for (const container of spec.items('initContainers')) {
    validateContainer(container, volumes);
    container.requireUnique('name', names);
    if (container.text('restartPolicy') === 'Always') continue;
    for (const field of ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe']) {
      if (!container.has(field)) continue;
      const why = 'may not be set for init containers without restartPolicy=Always';
      container.forbidden(field, why);
    }
  }
}

/** The sources of a volume in the order in which upstream validates them. */
const VOLUME_SOURCES =
  'emptyDir hostPath gitRepo gcePersistentDisk awsElasticBlockStore secret nfs iscsi glusterfs flocker persistentVolumeClaim rbd cinder cephfs quobyte downwardAPI fc flexVolume configMap azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk storageos projected scaleIO csi ephemeral image'.split(
    ' ',
  );

const REQUIRED_FIELDS: ReadonlyMap<string, string> = new Map([
  ['configMap', 'name'],
  ['hostPath', 'path'],
  ['persistentVolumeClaim', 'claimName'],
  ['secret', 'secretName'],
]);

/** @returns the names that containers may mount */
function validateVolumes(spec: CheckedObject): ReadonlySet<string> {
  const names = new Set<string>();
  for (const volume of spec.items('volumes')) {
    volume.requireText('name');
    volume.requireFormat('name', 'dns1123Label');
    volume.requireUnique('name', names);
    const [source = '', ...others] = VOLUME_SOURCES.filter((field) => volume.get(field));
    const required = REQUIRED_FIELDS.get(source);
    if (required) volume.in(source).requireText(required);
    for (const field of others) volume.forbidden(field, 'may not specify more than 1 volume type');
  }
  return names;
}
