/**
 * Manifests: read and parse YAML or JSON, and send it by server-side apply.
 *
 * @experimental
 * @module
 */
export type {
  ApplyChange,
  ApplyResult,
  FieldConflict,
  Rejection,
} from './client/apply/apply-result.ts';
export { applyManifests } from './client/apply/apply.ts';
export type { ApplyOptions } from './client/apply/apply.ts';
export { readManifests } from './client/apply/manifest-files.ts';
export type { ReadManifestsOptions } from './client/apply/manifest-files.ts';
export { ManifestError, parseManifests } from './client/apply/manifest.ts';
export type {
  Manifest,
  ManifestObject,
  ManifestPlace,
  ManifestProblem,
  ManifestText,
} from './client/apply/manifest.ts';
