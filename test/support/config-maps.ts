import type { Builtin } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';

export type ConfigMap = Builtin<{ data?: Record<string, string> }>;

/** A built-in resource that our controllers do not use. */
export const CONFIG_MAPS: Resource<ConfigMap> = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};
