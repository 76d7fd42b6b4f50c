import type { GenerateTypesOptions } from './generate-types.ts';

const PACKAGE = 'crd-controller';

/** Where the modules of users import the types of the library from. */
export const LIBRARY_MODULES: GenerateTypesOptions['modules'] = {
  Condition: PACKAGE,
  KubernetesObject: PACKAGE,
  ObjectMeta: PACKAGE,
  Resource: PACKAGE,
};
