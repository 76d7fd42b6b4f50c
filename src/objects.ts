/**
 * Functions and types for Kubernetes objects: comparison, conditions, label selectors, resource versions.
 *
 * @public
 * @module
 */
export type { ApiErrorKind } from './api/api-error.ts';
export { removeCondition, setCondition } from './api/conditions.ts';
export { covers, equalJson } from './api/equal.ts';
export { formatLabelSelector, matchesLabels, parseLabelSelector } from './api/label-selector.ts';
export type { LabelSelector } from './api/label-selector.ts';
export type {
  ApplyConfiguration,
  ChangedObject,
  MergePatch,
  NewObject,
  ObjectList,
  ObjectMeta,
  OwnerReference,
  StrategicMergePatch,
  UnstructuredObject,
  WatchEvent,
} from './api/object.ts';
export { compareResourceVersions } from './api/resource-version.ts';
export { apiVersionOf, groupResourceOf } from './api/resource.ts';
export type { ShardRange } from './api/shard-range.ts';
