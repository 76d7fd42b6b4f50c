import { readFileSync } from 'node:fs';
import { packageRoot } from '../package.ts';
import type { ReadFile } from './pieces.ts';

/** The manifests that this package has. */
export const readDeployed: ReadFile = (path) =>
  readFileSync(new URL(`hack/deploy/${path}`, packageRoot()), 'utf8');
