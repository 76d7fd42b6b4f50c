import { groupResourceOf } from '../api/resource.ts';
import { messageOf } from '../util/values.ts';
import { parseCustomResources } from './crd-parser.ts';
import type { CustomResource } from './crd-parser.ts';
import { generateTypes, moduleNameOf } from './generate-types.ts';
import type { GenerateTypesOptions } from './generate-types.ts';

/** A text with CustomResourceDefinitions, and where it comes from. */
export interface Definitions {
  readonly source: string;
  readonly text: string;
}

/** A module that is to be there. */
export interface GeneratedModule {
  /** Of the file, without a folder: `web-app.ts`. */
  readonly fileName: string;
  readonly text: string;
  readonly resource: CustomResource;
}

/**
 * One module for each kind and served version that the definitions define, in their order.
 *
 * @throws {SyntaxError} naming the source that is not YAML
 * @throws {TypeError} naming the source and what is wrong with its definition
 * @throws {Error} if two kinds would be one file, or a source defines nothing
 */
export function generateModules(
  definitions: readonly Definitions[],
  options: Omit<GenerateTypesOptions, 'source'>,
): GeneratedModule[] {
  const modules = new Map<string, GeneratedModule>();
  for (const { source, text } of definitions) {
    const resources = parsed(source, text);
    if (resources.length === 0) throw new Error(`${source}: no CustomResourceDefinition in it`);
    for (const resource of resources) {
      const fileName = `${moduleNameOf(resource)}.ts`;
      const present = modules.get(fileName.toLowerCase());
      if (present) {
        throw new Error(
          `${source}: ${groupResourceOf(resource)} and ${groupResourceOf(present.resource)} would both be ${fileName}: generate them into two folders`,
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

/** Where the modules of users import the types of the library from. */
export const LIBRARY_MODULES: GenerateTypesOptions['modules'] = {
  Condition: PACKAGE,
  KubernetesObject: PACKAGE,
  ObjectMeta: PACKAGE,
  Resource: PACKAGE,
};
