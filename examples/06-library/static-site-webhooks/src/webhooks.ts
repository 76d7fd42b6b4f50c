import { invalid, Webhooks } from 'crd-controller/webhook';
import { STATIC_SITES } from '../../static-site/src/generated/static-site.ts';

/**
 * Functions that the API server calls before it stores a StaticSite. A condition that CEL can express is better in the
 * schema, or in `rules`: the API server then checks it also while the program does not run.
 */
export const webhooks = new Webhooks()
  .defaults(
    STATIC_SITES,
    ({ metadata }, { user }) => {
      metadata.annotations = { ...metadata.annotations, 'example.com/created-by': user.username };
    },
    { operations: ['CREATE'] },
  )
  .validates(STATIC_SITES, ({ spec }, { old }) => {
    if (!old || old.spec.image === spec.image || old.spec.replicas === spec.replicas) return [];
    return [invalid('spec.replicas', 'must not change together with the image')];
  });
