import { groupResourceOf } from '../api/resource.ts';
import { messageOf } from '../util/values.ts';
import { parseCustomResources } from './crd-parser.ts';
import type { CustomResource } from './crd-parser.ts';
import { generateTypes, moduleNameOf } from './generate-types.ts';
import type { GenerateTypesOptions } from './generate-types.ts';

/** A text with CustomResourceDefinitions and its source. */
export interface Definitions {
  readonly source: string;
  readonly text: string;
}

/** A generated TypeScript module. */
export interface GeneratedModule {
  /** Name of the file, without its folder: `web-app.ts`. */
  readonly fileName: string;
  readonly text: string;
  readonly resource: CustomResource;
}

/**
 * Generates a module for each kind and served version, in the order of the definitions.
 *
 * @throws {SyntaxError} if a source is not YAML
 * @throws {TypeError} if a definition is invalid
 * @throws {Error} if two modules have the same file name, or a source has no definition
 */
export function generateModules(
  definitions: readonly Definitions[],
  options: Omit<GenerateTypesOptions, 'source'>,
): GeneratedModule[] {
  const modules = new Map<string, GeneratedModule>();
  for (const { source, text } of definitions) {
    const resources = parsed(source, text);
    if (resources.length === 0) throw new Error(`${source} contains no CustomResourceDefinition`);
    for (const resource of resources) {
      const fileName = `${moduleNameOf(resource)}.ts`;
      const present = modules.get(fileName.toLowerCase());
      if (present) {
        throw new Error(
          `${source}: ${groupResourceOf(resource)} and ${groupResourceOf(present.resource)} have the same file name ${fileName}: generate them into different folders`,
        );
      }
      const module = generateTypes(resource, { ...options, source });
      modules.set(fileName.toLowerCase(), { fileName, text: module, resource });
    }
  }
  return [...modules.values()];
}

function parsed(source: string, text: string): CustomResource[] {
  try {
    return parseCustomResources(text);
  } catch (error) {
    const message = `${source}: ${messageOf(error)}`;
    throw error instanceof SyntaxError
      ? new SyntaxError(message, { cause: error })
      : new TypeError(message, { cause: error });
  }
}

const PACKAGE = 'crd-controller';

/** Modules from which generated modules in user projects import the types of the library. */
export const LIBRARY_MODULES: GenerateTypesOptions['modules'] = {
  Condition: PACKAGE,
  KubernetesObject: PACKAGE,
  ObjectMeta: PACKAGE,
  Resource: PACKAGE,
};
