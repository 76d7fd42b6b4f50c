import type { Builtin } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';

export type ConfigMap = Builtin<{ data?: Record<string, string> }>;

/** Objects that every server has, and that no controller of ours has to do with. */
export const CONFIG_MAPS: Resource<ConfigMap> = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};
