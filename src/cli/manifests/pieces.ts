import { posix } from 'node:path';
import { parse } from 'yaml';

/** One file of a kustomization. */
export interface Piece {
  /** Below the folder that holds everything: `rbac/controllers/count.yaml`. */
  readonly path: string;
  readonly text: string;
}

/** The text of a file below the folder that holds everything. @throws {Error} if it is missing */
export type ReadFile = (path: string) => string;

/**
 * The files that the kustomization of `folder` names, directly or through others, in their order: all
 * resources of an installation, for who has no kustomize.
 *
 * @throws {Error} if a kustomization does more than name resources: that takes a real kustomize
 */
export function piecesOf(read: ReadFile, folder: string = ''): Piece[] {
  const file = posix.join(folder, 'kustomization.yaml');
  return resourcesIn(file, read(file)).flatMap((resource) => {
    const path = posix.join(folder, resource);
    return path.endsWith('.yaml') ? [{ path, text: read(path) }] : piecesOf(read, path);
  });
}

/** The files that a component names as its resources. The caller applies what its patches do. */
export function componentPiecesOf(read: ReadFile, folder: string): Piece[] {
  const { resources } = parse(read(posix.join(folder, 'kustomization.yaml'))) as {
    readonly resources: readonly string[];
  };
  return resources.map((resource) => {
    const path = posix.join(folder, resource);
    return { path, text: read(path) };
  });
}

function resourcesIn(file: string, text: string): readonly string[] {
  const { resources, apiVersion, kind, ...others } = parse(text) as {
    readonly apiVersion: string;
    readonly kind: string;
    readonly resources: readonly string[];
  };
  const [more] = Object.keys(others);
  if (more !== undefined)
    throw new Error(`${file} has ${more}, which is not supported: use kustomize`);
  if (!Array.isArray(resources))
    throw new Error(`${file}: ${kind} of ${apiVersion} has no resources`);
  return resources;
}
