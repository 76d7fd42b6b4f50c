/** Parts of an installation, by the folders of hack/deploy, in the order in which they are applied. */
export const PARTS = ['namespace', 'crds', 'rbac', 'manager'] as const;

export type Part = (typeof PARTS)[number];
