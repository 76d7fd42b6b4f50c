import { utf8Length } from '../../../util/bytes.ts';
import { isSet, listIn, objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import { nameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type {
  AdmissionHookContext,
  ApiObject,
  StoredObject,
} from '../../objects/resource-definition.ts';
import { column, columns, field } from '../../table/column.ts';
import { portNameProblems } from '../pods/container-validation.ts';
import { canonicalIp } from '../shared/addresses.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { defaultClassName } from '../shared/default-class.ts';
import { IS_DEFAULT_CLASS } from './ingress-class.ts';
import { validateIngressPoint } from '../shared/status-validation.ts';
import { loadBalancerWarnings } from '../shared/warnings.ts';

export const INGRESS: BuiltinKind = {
  resource: 'networking.k8s.io/ingresses',
  revalidatesName: 'object',
  tracksGeneration: true,
  hooks: { admit: setIngressClass },
  validate: validateIngress,
  columns: columns(
    field('Class', 'spec.ingressClassName', '<none>'),
    column('Hosts', 'Hosts of the rules.', (ingress) => {
      const rules = objectsIn(objectIn(ingress, 'spec'), 'rules');
      const hosts = rules.map((rule) => textIn(rule, 'host')).filter((host) => host !== '');
      if (hosts.length === 0) return '*';
      const more = hosts.length > 3 ? ` + ${rules.length - 3} more...` : '';
      return hosts.slice(0, 3).join(',') + more;
    }),
    column('Address', 'Addresses of the load balancer.', (ingress) => {
      const entries = objectsIn(objectIn(objectIn(ingress, 'status'), 'loadBalancer'), 'ingress');
      const addresses = entries.map((entry) => textIn(entry, 'ip') || textIn(entry, 'hostname'));
      return [...new Set(addresses.filter((address) => address !== ''))].sort().join(',');
    }),
    column('Ports', 'Ports of the rules.', (ingress) =>
      listIn(objectIn(ingress, 'spec'), 'tls').length > 0 ? '80, 443' : '80',
    ),
  ),
  warnings: (ingress, previous) =>
    !previous &&
    ingress.value.metadata.annotations?.[CLASS_ANNOTATION] !== undefined &&
    !ingress.in('spec').has('ingressClassName')
      ? [
          `annotation "${CLASS_ANNOTATION}" is deprecated, please use 'spec.ingressClassName' instead`,
        ]
      : [],
  statusWarnings: loadBalancerWarnings,
};

/** A new Ingress without a class gets the default one (admission plugin DefaultIngressClass). */
function setIngressClass(
  ingress: ApiObject,
  previous: StoredObject | undefined,
  { list }: AdmissionHookContext,
): void {
  const spec = objectIn(ingress, 'spec') ?? {};
  if (previous || isSet(spec, 'ingressClassName')) return;
  if (ingress.metadata.annotations?.[CLASS_ANNOTATION] !== undefined) return;
  const classes = list({ group: 'networking.k8s.io', plural: 'ingressclasses' });
  const name = defaultClassName(classes, [IS_DEFAULT_CLASS]);
  if (name !== undefined) ingress['spec'] = { ...spec, ingressClassName: name };
}

const INVALID_PARTS = ['//', '/./', '/../', '%2f', '%2F'];
const INVALID_ENDS = ['/..', '/.'];
const PATH_TYPES = ['Exact', 'ImplementationSpecific', 'Prefix'];

function validateIngress(ingress: CheckedObject, previous: StoredObject | undefined): void {
  const pointsOf = (object: StoredObject | undefined) =>
    objectsIn(objectIn(objectIn(object, 'status'), 'loadBalancer'), 'ingress');
  const former = new Set(pointsOf(previous).map((point) => textIn(point, 'ip')));
  for (const point of ingress.in('status').in('loadBalancer').items('ingress')) {
    validateIngressPoint(point, former);
  }
  const spec = ingress.in('spec');
  const rules = spec.items('rules');
  const backend = spec.get('defaultBackend');
  if (rules.length === 0 && !backend) {
    const why = 'either `defaultBackend` or `rules` must be specified';
    spec.invalid('', why, spec.value['rules'] ?? null);
  }
  if (backend) validateBackend(backend);
  if (spec.has('ingressClassName')) {
    const name = spec.text('ingressClassName');
    spec.problems('ingressClassName', nameProblems(name, 'dns1123Subdomain'), name);
  }
  const annotation = ingress.in('metadata').in('annotations').value[CLASS_ANNOTATION];
  const className = spec.value['ingressClassName'];
  if (
    !previous &&
    annotation !== undefined &&
    className !== undefined &&
    annotation !== className
  ) {
    // The path of upstream.
    const why = 'must match `ingressClassName` when both are specified';
    ingress.invalid(`annotations.${CLASS_ANNOTATION}`, why, annotation);
  }
  for (const tls of spec.items('tls')) {
    for (const [index, host] of tls.list('hosts').map(String).entries()) {
      tls.problems(`hosts[${index}]`, hostProblems(host), host);
    }
    tls.requireFormat('secretName', 'dns1123Subdomain');
  }
  for (const rule of rules) {
    const host = rule.text('host');
    if (canonicalIp(host) !== undefined) {
      rule.invalid('host', 'must be a DNS name, not an IP address');
    }
    if (host !== '') rule.problems('host', hostProblems(host));
    const http = rule.get('http');
    if (!http) continue;
    const paths = http.items('paths');
    if (paths.length === 0) http.required('paths');
    for (const path of paths) validatePath(path);
  }
}

function validatePath(path: CheckedObject): void {
  const type = path.text('pathType');
  if (!path.has('pathType')) return path.required('pathType', 'pathType must be specified');
  const value = path.text('path');
  if (!PATH_TYPES.includes(type)) path.notSupported('pathType', PATH_TYPES);
  else if (!value.startsWith('/') && (type !== 'ImplementationSpecific' || value !== '')) {
    path.invalid('path', 'must be an absolute path', value);
  }
  for (const part of type === 'Exact' || type === 'Prefix' ? INVALID_PARTS : []) {
    if (value.includes(part)) path.invalid('path', `must not contain '${part}'`, value);
  }
  for (const end of type === 'Exact' || type === 'Prefix' ? INVALID_ENDS : []) {
    if (value.endsWith(end)) path.invalid('path', `cannot end with '${end}'`, value);
  }
  validateBackend(path.in('backend'));
}

function validateBackend(backend: CheckedObject): void {
  const service = backend.get('service');
  const resource = backend.get('resource');
  if (service && resource) {
    backend.invalid('', 'cannot set both resource and service backends', '');
  } else if (!service && !resource) {
    backend.invalid('', 'resource or service backend is required', '');
  }
  if (resource) {
    if (service) return;
    if (resource.has('apiGroup')) {
      resource.problems('apiGroup', nameProblems(resource.text('apiGroup'), 'dns1123Subdomain'));
    }
    resource.requireName('kind', 'pathSegment');
    resource.requireName('name', 'pathSegment');
  }
  if (!service) return;
  service.requireText('name');
  service.requireFormat('name', 'dns1123Label');
  const port = service.in('port');
  const number = port.number('number') ?? 0;
  const name = port.text('name');
  if (name !== '' && number !== 0) {
    backend.invalid('', 'cannot set both port name & port number', '');
  } else if (name !== '') port.problems('name', portNameProblems(name));
  else if (number !== 0) port.requirePort('number');
  else backend.required('', 'port name or number is required');
}

const CLASS_ANNOTATION = 'kubernetes.io/ingress.class';

const MAX_LENGTH = 253;
const TOO_LONG = `must be no more than ${MAX_LENGTH} characters`;

const WILDCARD_PROBLEM =
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

function hostProblems(host: string): readonly string[] {
  if (!host.includes('*')) return nameProblems(host, 'dns1123Subdomain');
  const [, domain] = /^\*\.(.*)$/s.exec(host) ?? [];
  const isTooLong = (problem: string) => problem === TOO_LONG;
  const isValid = domain !== undefined && nameProblems(domain, 'dns1123Subdomain').every(isTooLong);
  return [
    ...(utf8Length(host) > MAX_LENGTH ? [TOO_LONG] : []),
    ...(isValid ? [] : [WILDCARD_PROBLEM]),
  ];
}
