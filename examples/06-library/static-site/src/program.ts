import type { ProgramOptions } from 'crd-controller/program';
import manifest from '../package.json' with { type: 'json' };
import { staticSiteController } from './controllers/static-site.ts';
import { STATIC_SITES } from './generated/static-site.ts';

/** The program: its controllers, by their names in `--controllers`, and the manifests of its installation. */
export const program: ProgramOptions = {
  name: 'static-site-controller',
  version: manifest.version,
  deploy: new URL('../deploy/', import.meta.url),
  controllers: {
    'static-site': { resource: STATIC_SITES, build: staticSiteController },
  },
};
