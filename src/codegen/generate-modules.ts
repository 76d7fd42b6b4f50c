import { groupResourceOf } from '../api/resource.ts';
import { messageOf } from '../util/values.ts';
import { parseCustomResources } from './crd-parser.ts';
import type { ParsedResource } from './crd-parser.ts';
import { generateTypes, moduleNameOf } from './generate-types.ts';
import type { GenerateTypesOptions } from './generate-types.ts';

/** A text with CustomResourceDefinitions and its source. */
export interface Definitions {
  readonly source: string;
  readonly text: string;
  /** Whether the text may have no definition. @default false */
  readonly isOptional?: boolean;
}

/** A generated TypeScript module. */
export interface GeneratedModule {
  /** Name of the file, without its folder: `web-app.ts`. */
  readonly fileName: string;
  readonly text: string;
  readonly resource: ParsedResource;
}

/**
 * Generates a module for each kind and served version, in the order of the definitions. Kinds of the same name
 * have their groups in the names of their files.
 *
 * @throws {SyntaxError} if a source is not YAML
 * @throws {TypeError} if a definition is invalid
 * @throws {Error} if two kinds of a group have the same file name, or a required source has no definition
 */
export function generateModules(
  definitions: readonly Definitions[],
  options: Omit<GenerateTypesOptions, 'source'>,
): GeneratedModule[] {
  const found = definitions.flatMap(({ source, text, isOptional = false }) => {
    const resources = parse(source, text);
    if (resources.length === 0 && !isOptional) {
      throw new Error(`${source} contains no CustomResourceDefinition`);
    }
    return resources.map((resource) => ({ source, resource, name: moduleNameOf(resource) }));
  });
  const namesakes = Map.groupBy(found, ({ name }) => name);
  const present = new Map<string, ParsedResource>();
  return found.map(({ source, resource, name }) => {
    const groups = new Set(namesakes.get(name)?.map((namesake) => namesake.resource.group));
    const suffix = groups.size > 1 ? `-${resource.group.replaceAll('.', '-')}` : '';
    const fileName = `${name}${suffix}.ts`;
    const other = present.get(fileName);
    if (other) {
      throw new Error(
        `${source}: ${groupResourceOf(resource)} and ${groupResourceOf(other)} have the same file name ${fileName}: generate them into different folders`,
      );
    }
    present.set(fileName, resource);
    return { fileName, text: generateTypes(resource, { ...options, source }), resource };
  });
}

function parse(source: string, text: string): ParsedResource[] {
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
  Resource: PACKAGE,
};
