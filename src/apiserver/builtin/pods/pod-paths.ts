/** Path of the metadata and spec of a Pod in each kind that has them, by resource. */
export const POD_PATHS: ReadonlyMap<string, readonly string[]> = new Map([
  ['pods', []],
  ['podtemplates', ['template']],
  ['replicationcontrollers', ['spec', 'template']],
  ['daemonsets.apps', ['spec', 'template']],
  ['deployments.apps', ['spec', 'template']],
  ['replicasets.apps', ['spec', 'template']],
  ['statefulsets.apps', ['spec', 'template']],
  ['jobs.batch', ['spec', 'template']],
  ['cronjobs.batch', ['spec', 'jobTemplate', 'spec', 'template']],
]);
