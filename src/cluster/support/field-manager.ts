/** Field manager of all controllers: those of Kubernetes run in one process. */
export const FIELD_MANAGER = 'kube-controller-manager';
