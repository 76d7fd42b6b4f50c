import type { Deployment } from '../../api/builtin.ts';
import { textOf, valueAtPath } from '../objects/field-path.ts';
import type { StoredObject, TableColumn } from '../objects/resource-definition.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { numberIn, objectIn, objectsIn, textIn, textsIn } from '../../util/json-value.ts';
import { compareText, isRecord } from '../../util/values.ts';
import type { KindColumns } from './column.ts';
import {
  AGE_COLUMN,
  NAME_COLUMN,
  ageOf,
  column,
  columns,
  count,
  field,
  humanDuration,
  numeric,
  qualified,
  trueCondition,
  wide,
} from './column.ts';

/** Columns with the containers of the Pod template at a path. */
function containerColumns(template: readonly string[], priority: 0 | 1 = 1): TableColumn[] {
  const texts = (name: 'name' | 'image') => (object: StoredObject) => {
    const spec = valueAtPath(object, [...template, 'spec']);
    return objectsIn(isRecord(spec) ? spec : {}, 'containers')
      .map((container) => textIn(container, name))
      .join(',');
  };
  const options = { priority };
  return [
    column('Containers', 'Names of the containers in the template.', texts('name'), options),
    column('Images', 'Images of the containers in the template.', texts('image'), options),
  ];
}

const CONTAINERS = containerColumns(['spec', 'template']);

/** Columns with the containers of the Pods of a workload, and their label selector. */
const POD_COLUMNS = [
  ...CONTAINERS,
  wide('Selector', 'Selector of the Pods of the object.', (object) =>
    selectorCell(objectIn(objectIn(object, 'spec'), 'selector')),
  ),
];

export const SCALE_COLUMNS: readonly TableColumn[] = [
  column('Name', 'Name of the scaled object.', ({ metadata }) => metadata.name),
  numeric('Desired', 'spec.replicas'),
  numeric('Available', 'status.replicas'),
  AGE_COLUMN,
];

export const WORKLOAD_COLUMNS: KindColumns = {
  podtemplates: [
    NAME_COLUMN,
    ...containerColumns(['template'], 0),
    column('Pod Labels', 'Labels of the template.', (object) =>
      labelsText(object, ['template', 'metadata', 'labels']),
    ),
  ],
  replicationcontrollers: [
    ...columns(
      numeric('Desired', 'spec.replicas'),
      numeric('Current', 'status.replicas'),
      numeric('Ready', 'status.readyReplicas'),
    ),
    ...CONTAINERS,
    wide('Selector', 'Labels of the Pods of the controller.', (controller) =>
      labelsText(controller, ['spec', 'selector']),
    ),
  ],
  'apps/deployments': [
    ...columns(
      column<Deployment>(
        'Ready',
        'Number of ready pods, and of desired pods.',
        ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`,
      ),
      numeric('Up-to-date', 'status.updatedReplicas', 'string'),
      numeric('Available', 'status.availableReplicas', 'string'),
    ),
    ...POD_COLUMNS,
  ],
  'apps/replicasets': [
    ...columns(
      numeric('Desired', 'spec.replicas'),
      numeric('Current', 'status.replicas'),
      numeric('Ready', 'status.readyReplicas'),
    ),
    ...POD_COLUMNS,
  ],
  'apps/daemonsets': [
    ...columns(
      numeric('Desired', 'status.desiredNumberScheduled'),
      numeric('Current', 'status.currentNumberScheduled'),
      numeric('Ready', 'status.numberReady'),
      numeric('Up-to-date', 'status.updatedNumberScheduled'),
      numeric('Available', 'status.numberAvailable'),
      column('Node Selector', 'Labels of the nodes that run the Pods.', (set) =>
        labelsText(set, ['spec', 'template', 'spec', 'nodeSelector']),
      ),
    ),
    ...POD_COLUMNS,
  ],
  'apps/statefulsets': [
    ...columns(
      column('Ready', 'Ready Pods, of all desired ones.', (set) => {
        const ready = numberIn(objectIn(set, 'status'), 'readyReplicas') ?? 0;
        return `${ready}/${numberIn(objectIn(set, 'spec'), 'replicas') ?? 0}`;
      }),
    ),
    ...CONTAINERS,
  ],
  'apps/controllerrevisions': columns(
    column('Controller', 'Owner of the revision.', ({ metadata }) => {
      const owner = metadata.ownerReferences?.find(({ controller }) => controller);
      if (!owner) return '<none>';
      const group = owner.apiVersion.includes('/') ? (owner.apiVersion.split('/')[0] ?? '') : '';
      return `${qualified(owner.kind.toLowerCase(), group)}/${owner.name}`;
    }),
    numeric('Revision', 'revision', 'string'),
  ),
  'batch/jobs': [
    ...columns(
      column('Status', 'Status of the job.', (job) => {
        const ended = trueCondition(job, ['Complete', 'Failed']);
        if (ended) return ended;
        if (job.metadata.deletionTimestamp) return 'Terminating';
        const states = ['Suspended', 'FailureTarget', 'SuccessCriteriaMet'];
        return trueCondition(job, states) ?? 'Running';
      }),
      column('Completions', 'Succeeded Pods, of all required ones.', (job) => {
        const spec = objectIn(job, 'spec');
        const succeeded = numberIn(objectIn(job, 'status'), 'succeeded') ?? 0;
        const completions = numberIn(spec, 'completions');
        if (completions !== undefined) return `${succeeded}/${completions}`;
        const parallelism = numberIn(spec, 'parallelism') ?? 0;
        return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
      }),
      column('Duration', 'Time between start and completion.', (job, nowMs) => {
        const status = objectIn(job, 'status');
        const started = textIn(status, 'startTime');
        const completed = textIn(status, 'completionTime');
        if (started === '') return '';
        return humanDuration((completed ? Date.parse(completed) : nowMs) - Date.parse(started));
      }),
    ),
    ...POD_COLUMNS,
  ],
  'batch/cronjobs': [
    ...columns(
      field('Schedule', 'spec.schedule'),
      field('Timezone', 'spec.timeZone', '<none>'),
      column(
        'Suspend',
        'Whether no new job is started.',
        (job) => {
          const { suspend } = objectIn(job, 'spec') ?? {};
          return typeof suspend === 'boolean' ? (suspend ? 'True' : 'False') : '<unset>';
        },
        { type: 'boolean' },
      ),
      count('Active', 'status.active'),
      column('Last Schedule', 'Time since the last job was started.', (job, nowMs) => {
        const last = textIn(objectIn(job, 'status'), 'lastScheduleTime');
        return last === '' ? '<none>' : ageOf(last, nowMs);
      }),
    ),
    ...containerColumns(['spec', 'jobTemplate', 'spec', 'template']),
    wide('Selector', 'Selector of the Pods of a job.', (job) => {
      const template = objectIn(objectIn(job, 'spec'), 'jobTemplate');
      return selectorCell(objectIn(objectIn(template, 'spec'), 'selector'));
    }),
  ],
  'autoscaling/horizontalpodautoscalers': columns(
    column('Reference', 'Kind and name of the scaled object.', (autoscaler) => {
      const target = objectIn(objectIn(autoscaler, 'spec'), 'scaleTargetRef');
      return `${textIn(target, 'kind')}/${textIn(target, 'name')}`;
    }),
    column('Targets', 'Current and target values of the metrics.', (autoscaler) => {
      const current = objectsIn(objectIn(autoscaler, 'status'), 'currentMetrics');
      const all = objectsIn(objectIn(autoscaler, 'spec'), 'metrics').map((metric, index) =>
        metricText(metric, current[index]),
      );
      const more = all.length > 2 ? ` + ${all.length - 2} more...` : '';
      return all.slice(0, 2).join(', ') + more || '<none>';
    }),
    field('MinPods', 'spec.minReplicas', '<unset>'),
    numeric('MaxPods', 'spec.maxReplicas', 'string'),
    numeric('Replicas', 'status.currentReplicas', 'string'),
  ),
};

/** The source of a metric is in the field of its type: `containerResource` of ContainerResource. */
function metricText(metric: JsonObject, current: JsonObject | undefined): string {
  const type = textIn(metric, 'type');
  const key = type.charAt(0).toLowerCase() + type.slice(1);
  const source = objectIn(metric, key);
  if (!source) return '<unknown type>';
  const target = objectIn(source, 'target') ?? {};
  const value = objectIn(objectIn(current, key), 'current') ?? {};
  const amount = (name: string) =>
    `${textOf(value[name], '<unknown>')}/${textOf(target[name], '<auto>')}`;
  if (type === 'Resource' || type === 'ContainerResource') {
    const name = textIn(source, 'name');
    if (target['averageValue'] !== undefined) return `${name}: ${amount('averageValue')}`;
    const percent = (holder: JsonObject, absent: string) => {
      const utilization = numberIn(holder, 'averageUtilization');
      return utilization === undefined ? absent : `${utilization}%`;
    };
    return `${name}: ${percent(value, '<unknown>')}/${percent(target, '<auto>')}`;
  }
  if (type === 'Pods') return amount('averageValue');
  return target['averageValue'] === undefined ? amount('value') : `${amount('averageValue')} (avg)`;
}

/** The labels at a path, ordered by key. */
export function labelsText(object: StoredObject, path: readonly string[]): string {
  const labels = valueAtPath(object, path);
  const pairs = Object.entries(isRecord(labels) ? labels : {});
  const texts = pairs.map(([key, value]) => `${key}=${String(value)}`);
  return texts.sort().join(',') || '<none>';
}

/** A label selector as servers print it: requirements ordered by key, their values ordered too. */
export function selectorCell(selector: JsonObject | undefined): string {
  const equalities = Object.entries(objectIn(selector, 'matchLabels') ?? {}).map(
    ([key, value]) => ({ key, text: `${key}=${String(value)}` }),
  );
  const expressions = objectsIn(selector, 'matchExpressions').map((requirement) => {
    const key = textIn(requirement, 'key');
    const values = textsIn(requirement, 'values').sort().join(',');
    return { key, text: expressionText(key, textIn(requirement, 'operator'), values) };
  });
  const all = [...equalities, ...expressions].sort((a, b) => compareText(a.key, b.key));
  return all.map(({ text }) => text).join(',') || '<none>';
}

function expressionText(key: string, operator: string, values: string): string {
  switch (operator) {
    case 'Exists':
      return key;
    case 'DoesNotExist':
      return `!${key}`;
    default:
      return `${key} ${operator.toLowerCase()} (${values})`;
  }
}
