import { escapeHtml } from '../../../util/go-format.ts';
import { goQuote } from '../../../util/go-quote.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, listIn, objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import type { Node as MutableNode } from '../../../api/builtin.ts';
import { goTypeOf, inspectJson } from '../../json/go-json.ts';
import { isRecord } from '../../../util/values.ts';
import { equalJson } from '../../../api/equal.ts';
import { labelValueProblems } from '../../../api/object-names.ts';
import type { DeepReadonly } from '../../../api/object.ts';
import { fieldError, Verbatim } from '../../../api/field-error.ts';
import { CheckedObject } from '../../objects/checked-object.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';
import { AGE_COLUMN, NAME_COLUMN, column, field, wide } from '../../table/column.ts';
import { validateAmount } from '../pods/container-resources.ts';
import { cidrProblem, cidrWarnings, parseCidr } from '../shared/addresses.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { requireSelectorKey } from '../shared/label-selector-validation.ts';
import { addressWarnings } from '../shared/warnings.ts';

const nodeColumn = column<MutableNode>;

const wideNodeColumn = wide<MutableNode>;

export const NODE: BuiltinKind = {
  resource: 'nodes',
  revalidatesName: 'object',
  keepsStatus: true,
  selectableFields: {
    'spec.unschedulable': (node) => String(objectIn(node, 'spec')?.['unschedulable'] === true),
  },
  // A feature that was removed, and one that a feature gate turns off.
  disabledFields: ['spec.configSource', 'spec.podPreemptionPolicy', 'status.config'],
  hooks: {
    applyDefaults,
    admit: taintNewNode,
  },
  validate,
  validateUpdate,
  columns: [
    NAME_COLUMN,
    nodeColumn('Status', 'Whether the node is ready and schedulable.', nodeStatus),
    nodeColumn('Roles', 'Roles of the node.', (object) => nodeRoles(object) || '<none>'),
    AGE_COLUMN,
    field('Version', 'status.nodeInfo.kubeletVersion'),
    wideNodeColumn('Internal-IP', 'Address inside the cluster.', nodeAddress('InternalIP')),
    wideNodeColumn('External-IP', 'Address outside the cluster.', nodeAddress('ExternalIP')),
    wideNodeColumn(
      'OS-Image',
      'Operating system.',
      ({ status }) => status?.nodeInfo?.osImage || '<unknown>',
    ),
    wideNodeColumn('Kernel-Version', 'Version of the kernel.', ({ status }) => {
      const { kernelVersion, architecture } = status?.nodeInfo ?? {};
      const version = kernelVersion || '<unknown>';
      return architecture ? `${version} (${architecture})` : version;
    }),
    wideNodeColumn(
      'Container-Runtime',
      'Container runtime and its version.',
      ({ status }) => status?.nodeInfo?.containerRuntimeVersion || '<unknown>',
    ),
  ],
  warnings: (node) => nodeWarnings(node.in('spec')),
};

function applyDefaults(node: ApiObject): void {
  const spec = objectIn(node, 'spec');
  const first = textIn(spec, 'podCIDR');
  const ranges = listIn(spec, 'podCIDRs');
  // As upstream, whose conversion keeps the two fields equal.
  if (spec && first !== '' && ranges[0] !== first) spec['podCIDRs'] = [first];
  else if (spec && first === '' && ranges.length > 0) spec['podCIDR'] = ranges[0];
  const status = objectIn(node, 'status');
  if (!status) return;
  if (isSet(status, 'capacity') && !isSet(status, 'allocatable')) {
    status['allocatable'] = { ...objectIn(status, 'capacity') };
  }
}

const NOT_READY = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' } as const;

/** A new node accepts no Pods until it is ready (admission plugin TaintNodesByCondition). */
function taintNewNode(node: ApiObject, previous: StoredObject | undefined): void {
  if (previous) return;
  const spec = objectIn(node, 'spec') ?? {};
  const taints = objectsIn(spec, 'taints');
  const isTainted = taints.some(
    (taint) => textIn(taint, 'key') === NOT_READY.key && textIn(taint, 'effect') === 'NoSchedule',
  );
  if (!isTainted) node['spec'] = { ...spec, taints: [...taints, NOT_READY] };
}

function validate(node: CheckedObject, previous: StoredObject | undefined): void {
  if (!previous) validateSwap(node);
  validateAnnotatedTaints(node.in('metadata').in('annotations'));
  validateAvoidedPods(node.in('metadata').in('annotations'));
  const spec = node.in('spec');
  const ranges = spec.list('podCIDRs');
  for (const [index, range] of ranges.entries()) {
    const problem = cidrProblem(String(range));
    if (problem !== undefined) spec.invalid(`podCIDRs[${index}]`, problem, range);
  }
  const unparsed = ranges.findIndex((range) => !parseCidr(String(range)));
  if (ranges.length > 1 && unparsed !== -1) {
    const why = `invalid CIDR[${unparsed}]: <nil> (invalid CIDR address: ${String(ranges[unparsed])})`;
    const detail = `invalid PodCIDRs. failed to check with dual stack with error:${why}`;
    spec.report({ reason: 'InternalError', field: spec.at('podCIDRs'), detail });
  }
  const families = new Set(ranges.map((range) => parseCidr(String(range))?.bits));
  if (ranges.length > 1 && (unparsed !== -1 || ranges.length > families.size)) {
    spec.invalid('podCIDRs', 'may specify no more than one CIDR for each IP family');
  }
  // A server calls them so.
  validateTaints(node.in('metadata'), 'taints', spec.list('taints'));
  validateStatus(node.in('status'));
}

function validateTaints(metadata: CheckedObject, field: string, taints: readonly unknown[]): void {
  const places = new Set<string>();
  for (const taint of metadata.as({ [field]: taints }).items(field)) {
    const { key = '', effect = '' } = taint.value;
    requireSelectorKey(taint, 'key');
    const problems = labelValueProblems(taint.text('value'));
    if (problems.length > 0) taint.invalid('value', problems.join(';'));
    taint.requireText('effect');
    taint.requireOneOf('effect', ['NoSchedule', 'PreferNoSchedule', 'NoExecute']);
    const place = `${String(effect)}/${String(key)}`;
    if (places.has(place)) {
      taint.report({
        ...fieldError.duplicate(taint.path, new Verbatim(taintText(taint.value))),
        detail: 'taints must be unique by key and effect pair',
      });
    }
    places.add(place);
  }
}

/** A taint with the names of Go's fields, which upstream shows. */
function taintText({ key, value = '', effect, timeAdded = null }: Readonly<JsonObject>): string {
  return escapeHtml(
    JSON.stringify({ Key: key, Value: value, Effect: effect, TimeAdded: timeAdded }),
  );
}

const ANNOTATED_TAINTS = 'scheduler.alpha.kubernetes.io/taints';

/** Taints in an annotation of an older version. */
function validateAnnotatedTaints(annotations: CheckedObject): void {
  const text = annotations.text(ANNOTATED_TAINTS);
  if (text === '') return;
  const { problem } = inspectJson(text);
  const taints: unknown = problem === undefined ? (JSON.parse(text) ?? []) : undefined;
  if (Array.isArray(taints)) validateTaints(annotations, ANNOTATED_TAINTS, taints);
  else {
    const why = `json: cannot unmarshal ${goTypeOf(taints)} into Go value of type []core.Taint`;
    annotations.invalid('', problem ?? why, ANNOTATED_TAINTS);
  }
}

const AVOIDED_PODS = 'scheduler.alpha.kubernetes.io/preferAvoidPods';

/** Each entry of an annotation with Pods that the node avoids names their controller. */
function validateAvoidedPods(annotations: CheckedObject): void {
  const text = annotations.text(AVOIDED_PODS);
  if (text === '') return;
  const { problem } = inspectJson(text);
  const avoided: unknown = problem === undefined ? (JSON.parse(text) ?? {}) : undefined;
  if (!isRecord(avoided)) {
    const why = `json: cannot unmarshal ${goTypeOf(avoided)} into Go value of type v1.AvoidPods`;
    annotations.invalid('AvoidPods', problem ?? why, AVOIDED_PODS);
    return;
  }
  for (const [index, entry] of objectsIn(avoided, 'preferAvoidPods').entries()) {
    const signature = `${AVOIDED_PODS}[${index}].PodSignature`;
    const controller = objectIn(objectIn(entry, 'podSignature'), 'podController');
    if (!controller) annotations.required(signature);
    else if (controller['controller'] !== true) {
      const field = `${signature}.PodController.Controller`;
      annotations.invalid(field, 'must point to a controller', false);
    }
  }
}

const FEATURE = /^[A-Z][a-zA-Z0-9]*(\/[a-zA-Z][a-zA-Z0-9]*)*$/;

/** A server reports it in the metadata, and does not look at it in a write of the status. */
function validateSwap(node: CheckedObject): void {
  const swap = node.in('status').in('nodeInfo').in('swap').number('capacity') ?? 1;
  if (swap > 0) return;
  node.invalid('metadata.nodeSwapStatus.capacity', 'must be greater than zero', swap);
}

function validateStatus(status: CheckedObject): void {
  for (const list of ['capacity', 'allocatable']) {
    for (const [name, amount] of Object.entries(status.in(list).value)) {
      validateAmount(status, `${list}.${name}`, name, String(amount));
    }
  }
  const features = status.list('declaredFeatures').map(String);
  for (const [index, feature] of features.entries()) {
    const field = `declaredFeatures[${index}]`;
    const previous = features[index - 1] ?? '';
    if (feature.length > 253) {
      const why = `invalid feature name ${goQuote(feature)}: must be no more than 253 characters`;
      status.invalid(field, why, feature);
    } else if (!FEATURE.test(feature)) {
      const why = `invalid feature name ${goQuote(feature)}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes`;
      status.invalid(field, why, feature);
    }
    if (index === 0) continue;
    if (feature === previous) status.duplicate(field, feature);
    else if (feature < previous)
      status.invalid(field, 'list must be sorted alphabetically', feature);
  }
}

/** Rejects changes of the Pod networks and of the provider after they are set. */
function validateUpdate(
  node: CheckedObject,
  previous: StoredObject,
  subresource: string | undefined,
): void {
  if (subresource === undefined) validateSwap(node);
  const spec = node.in('spec');
  const before = objectIn(previous, 'spec');
  const ranges = listIn(before, 'podCIDRs');
  if (ranges.length > 0 && !equalJson(ranges, spec.list('podCIDRs'))) {
    const why = 'node updates may not change podCIDR except from "" to valid';
    spec.forbidden('podCIDRs', why);
  }
  const provider = textIn(before, 'providerID');
  if (provider !== '' && provider !== spec.text('providerID')) {
    const change = spec.text('providerID') === '' ? 'cleared' : 'modified';
    spec.invalid('providerID', `field cannot be ${change} once set`, null);
  }
  if (textIn(before, 'externalID') !== spec.text('externalID')) {
    spec.forbidden('externalID', 'may not be updated');
  }
  const taken = new Set<string>();
  for (const address of node.in('status').items('addresses')) {
    // A server shows the names of Go's fields.
    const [type, text] = [address.text('type'), address.text('address')];
    const shown = escapeHtml(JSON.stringify({ Type: type, Address: text }));
    if (taken.has(shown)) address.duplicate('', new Verbatim(shown));
    taken.add(shown);
  }
}

function nodeWarnings(spec: CheckedObject): string[] {
  return [
    ...(spec.text('externalID') === ''
      ? []
      : ['spec.externalID: this field is deprecated, and is unused by Kubernetes']),
    ...addressWarnings(spec, 'podCIDRs', cidrWarnings),
  ];
}

type Node = DeepReadonly<MutableNode>;

function nodeStatus({ spec, status }: Node): string {
  const ready = status?.conditions?.findLast(({ type }) => type === 'Ready');
  const word = !ready ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady';
  return spec?.unschedulable ? `${word},SchedulingDisabled` : word;
}

function nodeRoles({ metadata }: Node): string {
  const prefix = 'node-role.kubernetes.io/';
  const roles = new Set<string>();
  for (const [key, value] of Object.entries(metadata.labels ?? {})) {
    if (key.startsWith(prefix)) roles.add(key.slice(prefix.length));
    else if (key === 'kubernetes.io/role') roles.add(value);
  }
  roles.delete('');
  return [...roles].sort().join(',');
}

function nodeAddress(type: string): (object: Node) => string {
  return ({ status }) =>
    status?.addresses?.find((address) => address.type === type)?.address ?? '<none>';
}
