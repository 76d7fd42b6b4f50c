import type { JsonObject } from '../../../util/json-value.ts';
import {
  isSet,
  numberIn,
  objectIn,
  objectsIn,
  setDefault,
  setOwn,
  textIn,
} from '../../../util/json-value.ts';
import { isRecord } from '../../../util/values.ts';

/** Defaults of a Pod that a template does not have. */
export function applyPodDefaults(pod: JsonObject): void {
  alignAddresses(objectIn(pod, 'status') ?? {});
  const spec = objectIn(pod, 'spec');
  if (!spec) return;
  applyPodSpecDefaults(spec);
  const grace = 'terminationGracePeriodSeconds';
  if ((numberIn(spec, grace) ?? 0) < 0) spec[grace] = 1;
  for (const container of [
    ...objectsIn(spec, 'containers'),
    ...objectsIn(spec, 'initContainers'),
  ]) {
    requestWhatIsLimited(container);
  }
  setDefault(spec, 'enableServiceLinks', true);
  if (spec['hostNetwork'] === true) exposeOnHost(spec);
}

/** The one address is the first of all; where they disagree, the one was written by an old kubelet. */
function alignAddresses(status: JsonObject): void {
  const address = textIn(status, 'podIP');
  const first = textIn(objectsIn(status, 'podIPs')[0], 'ip');
  if (address === first) return;
  if (address === '') status['podIP'] = first;
  else status['podIPs'] = [{ ip: address }];
}

/** Defaults of the spec of a Pod and of a template. */
function applyPodSpecDefaults(spec: JsonObject): void {
  setDefault(spec, 'restartPolicy', 'Always');
  setDefault(spec, 'dnsPolicy', 'ClusterFirst');
  setDefault(spec, 'schedulerName', 'default-scheduler');
  setDefault(spec, 'terminationGracePeriodSeconds', 30);
  setDefault(spec, 'securityContext', {});
  aliasServiceAccount(spec);
  for (const volume of objectsIn(spec, 'volumes')) applyVolumeDefaults(volume);
  for (const list of ['containers', 'initContainers', 'ephemeralContainers'] as const) {
    for (const container of objectsIn(spec, list)) applyContainerDefaults(container, list);
  }
}

/** The older name of the field follows the newer one. */
function aliasServiceAccount(spec: JsonObject): void {
  const name = textIn(spec, 'serviceAccountName') || textIn(spec, 'serviceAccount');
  if (name === '') return;
  setDefault(spec, 'serviceAccountName', name);
  if (spec['serviceAccount'] !== name) spec['serviceAccount'] = name;
}

function applyContainerDefaults(
  container: JsonObject,
  list: 'containers' | 'initContainers' | 'ephemeralContainers',
): void {
  setDefault(container, 'terminationMessagePath', '/dev/termination-log');
  setDefault(container, 'terminationMessagePolicy', 'File');
  setDefault(container, 'imagePullPolicy', pullPolicyOf(textIn(container, 'image')));
  if (list !== 'ephemeralContainers') setDefault(container, 'resources', {});
  for (const port of objectsIn(container, 'ports')) setDefault(port, 'protocol', 'TCP');
  for (const variable of objectsIn(container, 'env')) {
    const fieldRef = objectIn(objectIn(variable, 'valueFrom'), 'fieldRef');
    if (fieldRef) setDefault(fieldRef, 'apiVersion', 'v1');
  }
  for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe'] as const) {
    const probe = objectIn(container, name);
    if (probe) applyProbeDefaults(probe);
  }
  const lifecycle = objectIn(container, 'lifecycle');
  for (const hook of ['postStart', 'preStop'] as const) {
    const httpGet = objectIn(objectIn(lifecycle, hook), 'httpGet');
    if (httpGet) applyHttpGetDefaults(httpGet);
  }
}

const COMPONENT = String.raw`[a-z\d]+(?:(?:\.|__?|-+)[a-z\d]+)*`;
const HOST = String.raw`(?:[A-Za-z\d](?:[A-Za-z\d.-]*[A-Za-z\d])?|\[[\da-fA-F:]+\])(?::\d+)?`;

/** A reference to an image: `registry.example.com:5000/team/app:1.2@sha256:…`. */
const IMAGE = new RegExp(
  String.raw`^(?:(?=[^/]*[.:A-Z]|localhost/)${HOST}/)?(?<path>${COMPONENT}(?:/${COMPONENT})*)(?::(?<tag>\w[\w.-]{0,127}))?(?<digest>@[A-Za-z][\w+.-]*:[\da-fA-F]{32,})?$`,
);

/** `latest`, given or understood, may change under its name: it is pulled each time. */
function pullPolicyOf(image: string): 'Always' | 'IfNotPresent' {
  const { path = '', tag, digest } = IMAGE.exec(image)?.groups ?? {};
  const isValid = path !== '' && path.length <= 255 && !/^[\da-f]{64}$/.test(image);
  const isLatest = tag === 'latest' || (tag === undefined && digest === undefined);
  return isValid && isLatest ? 'Always' : 'IfNotPresent';
}

/** In a probe a zero is no value. */
function applyProbeDefaults(probe: JsonObject): void {
  const defaults = {
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  };
  for (const [field, value] of Object.entries(defaults)) {
    if (numberIn(probe, field) === 0) probe[field] = value;
    setDefault(probe, field, value);
  }
  const httpGet = objectIn(probe, 'httpGet');
  if (httpGet) applyHttpGetDefaults(httpGet);
  const grpc = objectIn(probe, 'grpc');
  if (grpc) setDefault(grpc, 'service', '');
}

function applyHttpGetDefaults(httpGet: JsonObject): void {
  if (textIn(httpGet, 'path') === '') httpGet['path'] = '/';
  if (textIn(httpGet, 'scheme') === '') httpGet['scheme'] = 'HTTP';
}

const READABLE_BY_ALL = 0o644;

function applyVolumeDefaults(volume: JsonObject): void {
  const sources = Object.keys(volume).filter((key) => key !== 'name' && isSet(volume, key));
  if (sources.length === 0) volume['emptyDir'] = {};
  for (const kind of ['secret', 'configMap', 'downwardAPI', 'projected'] as const) {
    const source = objectIn(volume, kind);
    if (source) setDefault(source, 'defaultMode', READABLE_BY_ALL);
  }
  const hostPath = objectIn(volume, 'hostPath');
  if (hostPath) setDefault(hostPath, 'type', '');
  const claim = objectIn(objectIn(objectIn(volume, 'ephemeral'), 'volumeClaimTemplate'), 'spec');
  if (claim) claim['volumeMode'] ??= 'Filesystem';
  const image = objectIn(volume, 'image');
  if (image) setDefault(image, 'pullPolicy', pullPolicyOf(textIn(image, 'reference')));
  const projections = objectsIn(objectIn(volume, 'projected'), 'sources');
  for (const projection of projections) {
    const token = objectIn(projection, 'serviceAccountToken');
    if (token) setDefault(token, 'expirationSeconds', 3600);
  }
  for (const downward of [volume, ...projections].map((holder) =>
    objectIn(holder, 'downwardAPI'),
  )) {
    for (const item of objectsIn(downward, 'items')) {
      const fieldRef = objectIn(item, 'fieldRef');
      if (fieldRef) setDefault(fieldRef, 'apiVersion', 'v1');
    }
  }
}

function requestWhatIsLimited(container: JsonObject): void {
  const resources = objectIn(container, 'resources');
  const limits = objectIn(resources, 'limits');
  if (!resources || !limits) return;
  const requests = objectIn(resources, 'requests') ?? {};
  for (const name of Object.keys(limits)) {
    if (isSet(requests, name)) continue;
    resources['requests'] = requests;
    setOwn(requests, name, limits[name]);
  }
}

function exposeOnHost(spec: JsonObject): void {
  for (const container of [
    ...objectsIn(spec, 'containers'),
    ...objectsIn(spec, 'initContainers'),
  ]) {
    for (const port of objectsIn(container, 'ports')) {
      if (!numberIn(port, 'hostPort')) port['hostPort'] = port['containerPort'];
    }
  }
}

/** The spec inside of a Pod template, wherever one is. */
export function applyTemplateDefaults(parent: JsonObject): void {
  const template = objectIn(parent, 'template');
  if (!template) return;
  const spec = template['spec'];
  if (isRecord(spec)) applyPodSpecDefaults(spec);
}
